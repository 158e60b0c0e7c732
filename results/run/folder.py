"""The run folder: everything one drill leaves behind, written atomically and read back typed.

Changes when a file is added to it. ``metrics.json`` is the whole of ``DrillMetrics``; ``flows.jsonl`` holds the same
per-flow results flat, one line per flow and edge, ``ports.json`` those of ports and ``transfers.jsonl`` those of
transfers; of a job ``iterations.jsonl``, ``spans.jsonl``, ``placement.jsonl`` and ``counters.json``: for jq, SQLite and
spreadsheets.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from failover.analysis.job import Iteration, JobMetrics, SpanTime
from failover.analysis.model import DrillMetrics, FlowEdgeResult
from failover.analysis.placement import Placement, Way
from failover.analysis.ports import PortMetrics
from failover.analysis.transfers import Transfer, Transfers
from results.run.manifest import Manifest
from results.run.place import take, with_all_above
from results.verdict import Verdict
from testbed.errors import InputError
from testbed.events import Event
from testbed.files.document import shorten

T = TypeVar("T")

_MANIFEST = TypeAdapter(Manifest)
_EVENT = TypeAdapter(Event)
_METRICS = TypeAdapter(DrillMetrics)
_VERDICT = TypeAdapter(Verdict)
_FLOW_EDGE = TypeAdapter(FlowEdgeResult)
_PORTS = TypeAdapter(PortMetrics)
_TRANSFER = TypeAdapter(Transfer)
_ITERATION = TypeAdapter(Iteration)
_SPAN = TypeAdapter(SpanTime)
_COUNTERS = TypeAdapter(Mapping[str, Mapping[str, int]])
_WAY = TypeAdapter(Way)
_OF_JOBS = ("iterations.jsonl", "counters.json", "spans.jsonl", "placement.jsonl")
_SOMETIMES = ("ports.json", "transfers.jsonl", *_OF_JOBS)


@dataclass(frozen=True, slots=True)
class RunFolder:
    """One run on disk. Writers replace whole files; readers raise InputError on what is missing or damaged."""

    path: Path

    def write_manifest(self, manifest: Manifest) -> None:
        """``manifest.json``; its presence makes the folder a run folder."""
        _write(self.path / "manifest.json", _MANIFEST.dump_json(manifest, indent=2))

    def write_events(self, events: Iterable[Event]) -> None:
        """``events.jsonl``: the timeline, one event a line."""
        _write(self.path / "events.jsonl", b"".join(_EVENT.dump_json(event) + b"\n" for event in events))

    def write_metrics(self, metrics: DrillMetrics, timeline: Iterable[SpanTime] | None = None) -> None:
        """``metrics.json`` and ``flows.jsonl``; others when there is something to be in them, as of a job."""
        files = metrics_files(metrics, timeline)
        for name in sorted({*_SOMETIMES} - files.keys()):
            (self.path / name).unlink(missing_ok=True)  # of an earlier analysis
        for name, content in files.items():
            _write(self.path / name, content)

    def write_verdict(self, verdict: Verdict) -> None:
        """``verdict.json``."""
        for name, content in verdict_files(verdict).items():
            _write(self.path / name, content)

    def manifest(self) -> Manifest:
        """What the run was."""
        return _read(self.path / "manifest.json", _MANIFEST)

    def events(self) -> tuple[Event, ...]:
        """The timeline."""
        path = self.path / "events.jsonl"
        return tuple(_parse(path, _EVENT, line) for line in _bytes(path).splitlines())

    def metrics(self) -> DrillMetrics:
        """What was measured."""
        return _read(self.path / "metrics.json", _METRICS)

    @property
    def has_verdict(self) -> bool:
        """Whether the run came to an answer; one that could say nothing from the start did not."""
        return os.path.isfile(self.path / "verdict.json")

    def verdict(self) -> Verdict:
        """The answer."""
        return _read(self.path / "verdict.json", _VERDICT)


def metrics_files(metrics: DrillMetrics, timeline: Iterable[SpanTime] | None = None) -> Mapping[str, bytes]:
    """The files of a run folder that hold what was measured, by name; ``timeline`` of a job's ranks."""
    lines = (
        json.dumps({"edge": result.edge.label} | _FLOW_EDGE.dump_python(flow, mode="json")) + "\n"
        for result in metrics.edges
        for flow in metrics.flows_at(result)
    )
    ports = {} if metrics.ports is None else {"ports.json": _PORTS.dump_json(metrics.ports, indent=2)}
    return {
        "metrics.json": _METRICS.dump_json(metrics, indent=2, exclude=_left_out(metrics)),
        "flows.jsonl": "".join(lines).encode(),
        **ports,
        **({} if metrics.transfers is None else {"transfers.jsonl": _transfer_lines(metrics, metrics.transfers)}),
        **({} if metrics.job is None else _job_files(metrics.job)),
        **({} if timeline is None else {"spans.jsonl": b"".join(_SPAN.dump_json(span) + b"\n" for span in timeline)}),
    }


def _placement_lines(placements: Iterable[Placement]) -> bytes:
    """One for each queue pair and time at which its path was looked at."""
    lines = (
        json.dumps({"when": at.when, "at_ns": at.at_ns} | _WAY.dump_python(way, mode="json"))
        for at in placements
        for way in at.ways
    )
    return "".join(f"{line}\n" for line in lines).encode()


def _left_out(metrics: DrillMetrics) -> dict[str, bool | set[str]]:
    """Fields that a workload of even streams has nothing to say of, nor a job that is no client."""
    found: dict[str, bool | set[str]] = {} if metrics.transfers is not None else {"transfers": True}
    if metrics.job is None:
        return {**found, "job": True}
    return {**found, "job": {"client"}} if metrics.job.client is None else found


def _job_files(job: JobMetrics) -> Mapping[str, bytes]:
    """Iterations of all ranks, one a line, what each NIC counted, and paths."""
    lines = (json.dumps(_ITERATION.dump_python(each, mode="json") | {"ms": each.ms}) + "\n" for each in job.iterations)
    return {
        "iterations.jsonl": "".join(lines).encode(),
        "counters.json": _COUNTERS.dump_json(job.counters, indent=2),
        "placement.jsonl": _placement_lines(job.placements),
    }


def _transfer_lines(metrics: DrillMetrics, transfers: Transfers) -> bytes:
    """One a transfer, with the flow's name and the edge's label."""
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
    """The file that holds the answer, by name."""
    return {"verdict.json": _VERDICT.dump_json(verdict, indent=2)}


def run_document(run: RunFolder, anew: Mapping[str, bytes] | None = None) -> dict[str, object]:
    """A run as one JSON value: its folder, and what its manifest, metrics and verdict files hold; ``anew`` instead."""
    contents = {f"{part}.json": part for part in ("manifest", "metrics", "verdict")}
    files = {part: (anew or {}).get(name) or _bytes(run.path / name) for name, part in contents.items()}
    return {"folder": str(run.path), **{part: json.loads(content) for part, content in files.items()}}


def create(path: Path) -> RunFolder:
    """A run folder for a new run, empty: what an earlier run left there is deleted.

    InputError when something else is there or it cannot be made; then nothing was made or deleted.
    """
    take(path, _is_manifest)
    return RunFolder(path)


def _is_manifest(path: Path) -> bool:
    try:
        _read(path, _MANIFEST)
    except InputError:
        return False
    return True


def prepare(out: Path) -> None:
    """Make the OUT folder before anything runs. InputError when reports could not be written there."""
    try:
        with_all_above(out)
    except OSError as error:
        raise InputError(f"cannot make {out}: {error.strerror}; choose another --out") from error
    if not os.access(out, os.W_OK | os.X_OK):
        raise InputError(f"cannot write to {out}; choose another --out")


def load(path: Path) -> RunFolder:
    """The run folder at ``path``. InputError when it is none."""
    if not os.path.isfile(path / "manifest.json"):  # unlike Path.is_file, False where it cannot be looked at
        raise InputError(
            f"{path} is not a run folder (no manifest.json); name the folder a drill printed or got by --out"
        )
    return RunFolder(path)


def _write(path: Path, content: bytes) -> None:
    """Replace a file in one step: a reader or a crash sees the old or the new, never half of it."""
    new = path.with_name(f".{path.name}.new")
    new.write_bytes(content)
    os.replace(new, path)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; the run did not get that far or is not a run folder") from error


def _read(path: Path, adapter: TypeAdapter[T]) -> T:
    return _parse(path, adapter, _bytes(path))


def _parse(path: Path, adapter: TypeAdapter[T], content: bytes) -> T:
    try:
        return adapter.validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        what = shorten(f"{where}: {first['msg']}" if where else first["msg"], 200, quoted=False)
        raise InputError(f"{path} is damaged or of another version ({what}); repeat the run") from error
