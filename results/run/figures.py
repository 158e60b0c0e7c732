"""Files of a run folder that are computed from measurements: metrics, verdict, and flat tables of them.

Changes when a figure gets a file. ``results.run.metrics`` makes ``metrics.json``. The flat files are for jq, SQLite and
spreadsheets: ``flows.jsonl`` has one line per flow and edge, ``ports.json`` the ports, ``buffers.json`` the classes at
ports, ``transfers.jsonl`` the transfers. Files of a job: ``iterations.jsonl``, ``spans.jsonl``, ``placement.jsonl`` and
``counters.json``. Files of a client that ran alongside a job: ``client-iterations.jsonl`` and ``client-spans.jsonl``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pydantic import TypeAdapter

from hpn.failover.analysis.buffers import ClassUse
from hpn.failover.analysis.job import Iteration, JobMetrics, SpanTime
from hpn.failover.analysis.model import DrillMetrics, FlowEdgeResult
from hpn.failover.analysis.placement import DataPath, Placement
from hpn.failover.analysis.ports import PortMetrics
from hpn.failover.analysis.transfers import Transfer, Transfers
from hpn.results.judge.verdict import Verdict
from hpn.results.run.metrics import metrics_json

VERDICT = TypeAdapter(Verdict)
SPAN = TypeAdapter(SpanTime)
COUNTERS = TypeAdapter(Mapping[str, Mapping[str, int]])
_FLOW_EDGE = TypeAdapter(FlowEdgeResult)
_PORTS = TypeAdapter(PortMetrics)
_BUFFERS = TypeAdapter(tuple[ClassUse, ...])
_TRANSFER = TypeAdapter(Transfer)
_ITERATION = TypeAdapter(Iteration)
_WAY = TypeAdapter(DataPath)
_OF_JOBS = ("iterations.jsonl", "counters.json", "spans.jsonl", "placement.jsonl")
_OF_CLIENTS = ("client-iterations.jsonl", "client-spans.jsonl")  # alongside a job
SOMETIMES = ("ports.json", "buffers.json", "transfers.jsonl", *_OF_JOBS, *_OF_CLIENTS)
"""Files that only some runs have."""


class Timelines(NamedTuple):
    """Activity of each rank over time: of the job, and of the client alongside it; None where it did not run."""

    job: Iterable[SpanTime] | None = None
    beside: Iterable[SpanTime] | None = None


NO_TIMELINES = Timelines()


def metrics_files(metrics: DrillMetrics, timelines: Timelines = NO_TIMELINES) -> Mapping[str, bytes]:
    """Return the files of a run folder that hold measurements, by name; ``timelines`` of a job's ranks."""
    lines = (
        json.dumps({"edge": result.edge.label} | _FLOW_EDGE.dump_python(flow, mode="json")) + "\n"
        for result in metrics.edges
        for flow in metrics.flows_at(result)
    )
    ports = {} if metrics.ports is None else {"ports.json": _PORTS.dump_json(metrics.ports, indent=2)}
    if metrics.buffers is not None:
        ports["buffers.json"] = _BUFFERS.dump_json(metrics.buffers, indent=2)
    return {
        "metrics.json": metrics_json(metrics),
        "flows.jsonl": "".join(lines).encode(),
        **ports,
        **({} if metrics.transfers is None else {"transfers.jsonl": _transfer_lines(metrics, metrics.transfers)}),
        **({} if metrics.job is None else _job_files(metrics.job)),
        **({} if timelines.job is None else {"spans.jsonl": _span_lines(timelines.job)}),
        **({} if metrics.beside is None else {"client-iterations.jsonl": _iteration_lines(metrics.beside)}),
        **({} if timelines.beside is None else {"client-spans.jsonl": _span_lines(timelines.beside)}),
    }


def _span_lines(timeline: Iterable[SpanTime]) -> bytes:
    return b"".join(SPAN.dump_json(span) + b"\n" for span in timeline)


def _iteration_lines(job: JobMetrics) -> bytes:
    """Return the iterations of all ranks as JSON lines."""
    lines = (json.dumps(_ITERATION.dump_python(each, mode="json") | {"ms": each.ms}) + "\n" for each in job.iterations)
    return "".join(lines).encode()


def _placement_lines(placements: Iterable[Placement]) -> bytes:
    """Return one JSON line for each queue pair and time at which its path was read."""
    lines = (
        json.dumps({"when": at.when, "at_ns": at.at_ns} | _WAY.dump_python(way, mode="json"))
        for at in placements
        for way in at.ways
    )
    return "".join(f"{line}\n" for line in lines).encode()


def _job_files(job: JobMetrics) -> Mapping[str, bytes]:
    """Return the files of iterations, NIC counters and paths."""
    return {
        "iterations.jsonl": _iteration_lines(job),
        "counters.json": COUNTERS.dump_json(job.counters, indent=2),
        "placement.jsonl": _placement_lines(job.placements),
    }


def _transfer_lines(metrics: DrillMetrics, transfers: Transfers) -> bytes:
    """Return one JSON line per transfer, with the flow's name and the edge's label."""
    names = {flow.flow: flow.name for flow in metrics.flows}
    labels = [result.edge.label for result in metrics.edges]
    lines = (
        json.dumps(
            _TRANSFER.dump_python(each, mode="json")
            | {"name": names[each.flow], "edge": None if each.edge is None else labels[each.edge]},
        )
        for each in transfers.transfers
    )
    return "".join(f"{line}\n" for line in lines).encode()


def verdict_files(verdict: Verdict) -> Mapping[str, bytes]:
    """Return the file that holds the verdict, by name."""
    return {"verdict.json": VERDICT.dump_json(verdict, indent=2)}
