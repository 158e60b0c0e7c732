"""Stored measurement of a run: write it to the run folder and read it back.

It has every packet, every reading of a port, and the facts; events are in ``events.jsonl``.

Changes when the layout of the records does. ``records/facts.json`` has the facts. ``records/packets.npz`` has sent and
received packets (``traffic.streams.records``), spans and messages of a job (``traffic.jobengine.records``), and the
spans of a client alongside it. Run folders are untrusted input.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter

from hpn.failover.analysis.job import JobFacts, absent_parts
from hpn.failover.analysis.metrics.byflow import by_flow
from hpn.results.run.arrays import ExpectedArray, stored, write_arrays
from hpn.results.run.files import check_memory, read
from hpn.results.run.folder import RunFolder
from hpn.results.run.readings import READING, SampledPorts, ports_of, sampled_from
from hpn.scenarios.run.measurement import Facts, JobRecords, Measurement
from hpn.testbed import versions
from hpn.testbed.errors import InputError
from hpn.traffic.jobengine.records import MESSAGE, RETRY, SPAN, STAMP
from hpn.traffic.streams.columns import InMemory, Table, whole
from hpn.traffic.streams.records import RECEIVED, SENT

FOLDER = "records"
_FACTS, _PACKETS = "facts.json", "packets.npz"
_FORMAT = 2
_OF_JOB = {"spans": SPAN, "messages": MESSAGE, "retries": RETRY, "stamps": STAMP}
_OPTIONAL = ("retries", "stamps")
_DTYPES = {"sent": SENT, "received": RECEIVED, "ports": READING, **_OF_JOB, "beside": SPAN}
_LARGEST = 2**62
_LARGEST_ID = 2**32 - 1
_PACKET_BYTES = 64
"""Memory of the analysis for each packet of one flow: send and receive time, fate, and room to sort them."""
_LONGEST_NS = 86_400 * 10**9
_SLACK_NS = 10**9


@dataclass(frozen=True, slots=True)
class _Kept:
    """Content of ``facts.json``."""

    format: int
    hpn: str  # version that measured
    counts: Mapping[str, int]  # number of records in ``packets.npz``
    ports: SampledPorts | None
    facts: Facts


_KEPT = TypeAdapter(_Kept)


@dataclass(frozen=True)
class StoredRun:
    """Stored measurement of a run folder, and the version of hpn that measured it."""

    hpn: str
    measured: Measurement


def keep(folder: Path, measured: Measurement) -> None:
    """Write the records of a run, except its events, to its folder in one step, replacing earlier ones.

    OSError when they cannot be written.
    """
    place, new = folder / FOLDER, folder / f".{FOLDER}.new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    tables: dict[str, Table] = {"sent": measured.sent, "received": measured.received}
    ports = None
    if measured.ports is not None:
        ports, tables["ports"] = ports_of(measured.ports)
    if measured.job is not None:
        of_job = {name: getattr(measured.job, name) for name in _OF_JOB}
        tables |= {name: InMemory(found) for name, found in of_job.items() if found is not None}
    if measured.beside is not None:
        tables["beside"] = InMemory(measured.beside.spans)
    kept = _Kept(
        format=_FORMAT,
        hpn=versions.HPN,
        counts={name: len(table) for name, table in tables.items()},
        ports=ports,
        facts=measured.facts,
    )
    write_arrays(new / _PACKETS, tables)
    (new / _FACTS).write_bytes(_KEPT.dump_json(kept, indent=1, exclude=_left_out(measured.facts)))
    shutil.rmtree(place, ignore_errors=True)
    os.replace(new, place)


def _left_out(facts: Facts) -> dict[str, dict[str, Mapping[int, set[str]] | set[str] | bool]]:
    """Return the fields to leave out of ``facts.json``: those that do not apply to this run."""
    even = {at: {"transfers"} for at, flow in enumerate(facts.flows) if flow.transfers is None}
    of_job: dict[str, set[str] | bool] = {
        part: True for part in ("beside", "buffers", "known_paths") if getattr(facts, part) is None
    }
    for name, job in (("job", facts.job), ("beside", facts.beside)):
        of_job[name] = True if job is None else absent_parts(job)
    of_job |= {} if facts.locating else {"locating": True}
    return {"facts": {"flows": even, **of_job}}


def kept(run: RunFolder) -> StoredRun:
    """Return the stored measurement of a run folder.

    InputError when there is none, or when no run can have produced it. MachineError when memory does not suffice.
    """
    place = run.path / FOLDER
    found = _facts(place / _FACTS, run.path)
    wanted = {name: ExpectedArray(_DTYPES[name], found.counts.get(name, -1)) for name in _names(found)}
    problem = next(
        chain(_impossible(found), (f"no count of {n}" for n, each in wanted.items() if each.count < 0)), None
    )
    if problem is not None:
        raise _damaged(place, problem)
    tables = stored(place / _PACKETS, wanted)
    job = beside = None
    ids = np.array([flow.id for flow in found.facts.flows], np.uint32)
    if found.facts.job is not None:
        job = JobRecords(**{name: whole(tables[name]) for name in _OF_JOB if name in tables})
        problem = next(_impossible_job(found.facts.job, job, ids), None)
    if found.facts.beside is not None:
        beside = JobRecords(whole(tables["beside"]), np.empty(0, MESSAGE))
        problem = problem or next(_impossible_job(found.facts.beside, beside, ids), None)
    problem = problem or next(_impossible_packets(found.facts, tables["sent"], tables["received"]), None)
    if problem is not None:
        raise _damaged(place, problem)
    check_memory(place / _PACKETS, _most_packets(found.facts, tables["sent"]) * _PACKET_BYTES)
    ports = sampled_from(found.ports, whole(tables["ports"])) if found.ports is not None else None
    packets = tables["sent"], tables["received"]
    return StoredRun(found.hpn, Measurement(found.facts, run.events(), *packets, ports, job, beside))


def _damaged(place: Path, problem: str) -> InputError:
    return InputError(f"{place} is damaged ({problem}); repeat the run")


def _names(found: _Kept) -> list[str]:
    """Return the names of the arrays that the records must contain."""
    ports = [] if found.ports is None else ["ports"]
    beside = [] if found.facts.beside is None else ["beside"]
    of_job = ["spans", "messages", *(name for name in _OPTIONAL if name in found.counts)]
    return ["sent", "received", *ports, *([] if found.facts.job is None else of_job), *beside]


def _facts(path: Path, folder: Path) -> _Kept:
    if not path.exists():
        raise InputError(f"{path}: No such file; only a run made with --keep-records can be analysed again")
    found = read(path, _KEPT, folder)
    if found.format != _FORMAT:
        raise InputError(f"{path} has format {found.format}, this hpn reads {_FORMAT}; use the hpn that made the run")
    return found


def _impossible(found: _Kept) -> Iterator[str]:
    """Yield a description of each fact that no run can produce; the caller needs only the first."""
    facts = found.facts
    ids = [flow.id for flow in facts.flows]
    if len(set(ids)) != len(ids):
        yield "two flows have one id"
    for at, flow in enumerate(facts.flows):
        if not 0 <= flow.id <= _LARGEST_ID:
            yield f"flow {flow.id} is none that a packet can name"
        if not (math.isfinite(flow.rate_pps) and 0 < flow.rate_pps < 1e9 and 0 < flow.path_mtu <= 1 << 16):
            yield f"flow {flow.id} has a rate of {flow.rate_pps:g} packets/s of {flow.path_mtu} bytes"
        plan = flow.transfers
        if plan is not None and not (plan.packets > 0 and 0 < flow.sending_ns < plan.every_ns < _LONGEST_NS):
            yield f"flow {flow.id} has transfers of {plan.packets} packets every {plan.every_ns} ns"
        if flow.replaces is not None and flow.replaces not in ids[:at]:
            yield f"flow {flow.id} replaces one that is not there"
    times = [facts.start_ns, facts.healthy_end_ns, facts.end_ns]
    for edge in facts.edges:
        times += [edge.inject_before_ns, edge.inject_after_ns, edge.window_end_ns]
    if not all(0 <= at < _LARGEST for at in times):
        yield "a time is out of range"
    if facts.healthy_end_ns - facts.start_ns > _LONGEST_NS or facts.end_ns - facts.start_ns > _LONGEST_NS:
        yield "it lasted longer than a day"
    if min(facts.settings.merge_packets, facts.settings.recovery_packets) < 1 or facts.settings.pacing_tick_ms <= 0:
        yield "its settings are none"
    if found.ports is not None and not found.ports.adds_up(found.counts.get("ports")):
        yield "its readings of ports do not add up"
    for job in (facts.job, facts.beside):
        if job is not None:
            yield from _impossible_facts(job)
    if facts.beside is not None and (facts.job is None or facts.job.client is not None or facts.beside.client is None):
        yield "a client ran beside a job that is none"


def _impossible_facts(job: JobFacts) -> Iterator[str]:
    """Yield a description of each impossible fact of a job."""
    if (not job.spans and job.client is None) or not all(
        0 <= rank <= _LARGEST_ID and spans for rank, spans in job.spans.items()
    ):
        yield "its job has no ranks, or one without a span"
    if not all(0 <= span.size_bytes < _LARGEST and span.ranks >= 0 for of in job.spans.values() for span in of):
        yield "a span of its job has a size that is none"
    counts = [
        job.queue_pairs,
        job.packets,
        job.packets_again,
        *(n for of in job.counters.values() for n in of.values()),
    ]
    if not all(0 <= count < _LARGEST for count in counts) or not 0 < job.tick_ns <= _LONGEST_NS:
        yield "its job has counted what nobody can count"
    times = [at for death in job.deaths for at in (death.at_ns, death.restarted_at_ns) if at is not None]
    if not all(0 <= at < _LARGEST for at in times):
        yield "its job died at a time that is out of range"
    if not all(0 <= each.sent_ns <= each.at_ns < _LARGEST and 0 <= each.rtt_ns < _LARGEST for each in job.denied):
        yield "its job denied a path at a time that is none"
    if job.client is not None:
        ended = (rank.ended_at_ns for rank in job.client.ranks)
        counts = [*(rank.steps for rank in job.client.ranks), job.client.reporting, job.client.misread]
        counts += [n for log in job.client.logs for n in (log.rank, log.size_bytes, log.crc32)]
        if not all(0 <= n < _LARGEST for n in (*counts, *(at for at in ended if at is not None))):
            yield "its client has counts or times that are none"
    if min(job.checkpoint_every, job.samples) < 0 or max(job.checkpoint_every, job.samples) >= _LARGEST:
        yield "its job has checkpoints or samples that are none"


def _impossible_job(job: JobFacts, records: JobRecords, ids: npt.NDArray[np.uint32]) -> Iterator[str]:
    """Yield a description of each impossible record of a job's workers or a client; ``ids`` are those of all flows."""
    spans, messages = records.spans, records.messages
    more = {name: array for name in _OPTIONAL if (array := getattr(records, name)) is not None}
    ranks = np.array(sorted(job.spans), np.int64)
    lengths = np.array([len(job.spans[rank]) for rank in ranks.tolist()])
    if not len(ranks) and len(spans):
        yield "ranks that tell no steps have some"
        return
    at = np.minimum(np.searchsorted(ranks, spans["rank"]), len(ranks) - 1)
    if ((ranks[at] == spans["rank"]) & (spans["span"] >= lengths[at])).any():
        yield "a rank has spans that its program has not"
    for name, array, begin, end in (
        ("spans", spans, "begin_ns", "end_ns"),
        ("messages", messages, "posted_ns", "completed_ns"),
        *((name, array, "at_ns", "at_ns") for name, array in more.items()),
    ):
        if ((array[begin] < 0) | (array[end] < array[begin]) | (array[end] >= _LARGEST)).any():
            yield f"{name} have times that are out of range"
    for name, array in {"messages": messages, **more}.items():
        if not np.isin(array["flow"], ids).all():
            yield f"{name} are of unknown flows"
    if ((messages["bytes"] < 1) | (messages["bytes"] > 1 << 31)).any():
        yield "a message has a size that none can have"


def _impossible_packets(facts: Facts, sent: Table, received: Table) -> Iterator[str]:
    """Yield a description of each impossible packet record; a burst of four thousand million would fill any memory."""
    known = np.array([flow.id for flow in facts.flows], np.uint32)
    for name, table in (("sent", sent), ("received", received)):
        for field, column in table.columns():
            if field == "flow" and not np.isin(column, known).all():
                yield f"{name} has packets of unknown flows"
            if field == "count":
                packets, most = int(column.sum(dtype=np.uint64)), 2 * _due(facts)
                if packets > most:
                    yield f"{packets} packets sent, where {most / 2:.0f} were due"
            if column.itemsize == 8 and len(column) and not 0 <= column.min() <= column.max() < _LARGEST:
                yield f"{name}.{field} is out of range"


def _due(facts: Facts) -> float:
    """Return the maximum number of packets that were to be sent."""
    return sum(flow.rate_pps for flow in facts.flows) * (facts.end_ns - facts.start_ns + _SLACK_NS) / 1e9


def _most_packets(facts: Facts, sent: Table) -> int:
    """Return the number of packets of the flow that sent most."""
    bursts = by_flow(sent, {"count"})
    return max((int(bursts.of(flow.id, "count").sum()) for flow in facts.flows), default=0)
