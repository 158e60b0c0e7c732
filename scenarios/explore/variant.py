"""Drills that exploration runs: the base drill made short and light, and its variants with other faults. Pure.

Changes when another part of a drill is dropped, or carried over. The text is what ``hpn drill run`` reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from hpn.failover.faults import MS
from hpn.scenarios.audit.drill import settle_ns
from hpn.scenarios.campaign import drillfile
from hpn.scenarios.campaign.plan import HEALTHY_NS, FaultSequence, FaultStep
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.workload import flows_of
from hpn.scenarios.expect.loss import PACKETS_LOST
from hpn.scenarios.expect.metric import Unit
from hpn.scenarios.expect.metrics import METRICS
from hpn.scenarios.expect.selection import Flows
from hpn.scenarios.explore.steps import sequence_of
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.writing import as_data
from hpn.testbed.files.document import Document, Plain, Where
from hpn.testbed.files.units import format_duration, format_percent

_SECOND_NS = 10**9
_WITHIN_LIMIT = 4
"""Packets of a queue pair in the shortest limit on a time: outages are told to a quarter of it."""
_LEAST_PPS = 50
_LIGHT_TICK_NS = 10 * MS
_IB_TIMEOUT = 20
"""Of NCCL 2.30: 34 s of patience, so that a queue pair outlives what is repaired."""
_SUMMARY = 160
_FEW = "rates are too coarse with so few packets"
_SHOWS = {"sample", "capture", "description"}
"""Sections that only show more of a run."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A drill of the exploration, its name, and the text of its file."""

    name: str
    text: str
    drill: Drill


@dataclass(frozen=True, slots=True)
class Base:
    """Base drill as it is run. ``data``: content of its file; ``unjudged``: expectations left out, each with why."""

    variant: Variant
    data: Mapping[str, Plain]
    folder: Path
    unjudged: tuple[tuple[str, str], ...] = ()

    @property
    def drill(self) -> Drill:
        """The drill."""
        return self.variant.drill

    @property
    def sequence(self) -> FaultSequence:
        """Faults of the drill."""
        return sequence_of(self.drill)


def base_of(document: Document, own: Drill, folder: Path) -> Base:
    """Return the base of an exploration whose drill files are in ``folder``.

    Streams get as many packets as the shortest limit needs, and the patience of NCCL. The healthy phase is cut by whole
    seconds, so that faults meet the periodic timers at the same phase. InputError when nothing can be judged.
    """
    fabric = build(own.topology)
    data = {key: value for key, value in document.data.items() if key not in _SHOWS}
    data |= {"topology": as_data(own.topology), "summary": own.summary}
    if _is_plain(own):
        data["workload"] = _light(document, own, fabric)
    steps = _earlier(sequence_of(own).steps)
    ids = tuple(planned.id for planned in own.timeline.faults)
    data["timeline"] = _timeline(steps, ids, max(own.timeline.settle_ns, _settle(fabric, own)))
    entries = document.data["expect"]
    due = [*entries] if isinstance(entries, list) else []
    unjudged = [(str(entry), _FEW) for entry in due if _is_plain(own) and _is_rate(entry)]
    due = [entry for entry in due if not (_is_plain(own) and _is_rate(entry))]
    while due:
        file = str(folder / f"{own.name}.yaml")
        lines: dict[Where, int] = {("expect", at): at + 2 for at in range(len(due))}
        try:
            drill = drill_from(Document(file, data | {"expect": due}, lines), folder)
        except InputError as error:
            problem = next((each for each in error.problems if each.startswith(tuple(_at(file, due)))), None)
            if problem is None:
                raise InputError([f"{own.name} cannot be explored: {_bare(p, file)}" for p in error.problems]) from None
            at = int(problem.removeprefix(f"{file}:").partition(":")[0]) - 2
            unjudged.append((str(due.pop(at)), _bare(problem, file)))
        else:
            found = data | {"expect": due}
            return Base(Variant(own.name, _text(found), drill), found, folder, tuple(unjudged))
    raise InputError(f"{own.name} cannot be explored: {unjudged[0][1] if unjudged else 'it expects nothing'}")


def _is_rate(entry: Plain) -> bool:
    """Return True for an expectation of a rate."""
    return isinstance(entry, dict) and any(
        METRICS[key].unit in {Unit.SHARE, Unit.RATE} for key in entry if key in METRICS
    )


def _at(file: str, entries: Sequence[Plain]) -> list[str]:
    return [f"{file}:{at + 2}: " for at in range(len(entries))]


def _bare(problem: str, file: str) -> str:
    return problem.removeprefix(f"{file}:").partition(": ")[2] or problem


def _is_plain(drill: Drill) -> bool:
    """Return True for streams alone, in a fabric whose buffers and queues do not matter."""
    return (
        drill.streams and drill.client is None and drill.workload.size_bytes is None and drill.topology.switch is None
    )


def _light(document: Document, drill: Drill, fabric: Fabric) -> dict[str, Plain]:
    """Return the workload with fewer packets, and more patience unless deaths are expected."""
    section = {**(document.section("workload") or {})}
    flows = flows_of(drill.workload, fabric)
    most_pps = max((flow.rate_pps for flow in flows), default=1.0)
    limits = (each.limit for each in drill.expectations if each.metric.unit is Unit.MS and each.bound.is_upper)
    wanted_pps = max(_LEAST_PPS, _WITHIN_LIMIT * _SECOND_NS / max(min(limits, default=_SECOND_NS), 1))
    if wanted_pps < most_pps:
        section["load"] = format_percent(max(round(drill.workload.load * wanted_pps / most_pps, 5), 0.001))
        tick_ns = max(drill.workload.tick_ns, min(_LIGHT_TICK_NS, int(_SECOND_NS / wanted_pps / MS) * MS))
        section["tick"] = format_duration(tick_ns)
    deaths = [each for each in drill.expectations if each.metric.key == "queue_pair_deaths" and not each.bound.is_upper]
    if not deaths:
        section["ib_timeout"] = max(_IB_TIMEOUT, drill.workload.ib_timeout)
    return section


def _earlier(steps: Sequence[FaultStep]) -> tuple[FaultStep, ...]:
    """Return the faults earlier by whole seconds, the first not before the shortest healthy phase."""
    early_ns = max(0, min(step.at_ns for step in steps) - HEALTHY_NS) // _SECOND_NS * _SECOND_NS
    return tuple(replace(step, at_ns=step.at_ns - early_ns) for step in steps)


def _settle(fabric: Fabric, drill: Drill) -> int:
    return settle_ns(fabric, [planned.fault for planned in drill.timeline.faults])


def _timeline(steps: Sequence[FaultStep], ids: Sequence[str], settle: int) -> dict[str, Plain]:
    faults = [drillfile.entry(number, step) for number, step in enumerate(steps, 1)]
    return {
        "healthy": format_duration(min(step.at_ns for step in steps)),
        "faults": [{**entry, "id": own} for entry, own in zip(faults, ids, strict=True)],
        "settle": format_duration(settle),
    }


def variant_of(base: Base, name: str, sequence: FaultSequence, why: str, more: Sequence[Plain] = ()) -> Variant:
    """Return the base drill with other faults; ``more``: expectations beside those that still apply.

    InputError when the faults make no valid drill.
    """
    fabric = build(base.drill.topology)
    known = {(planned.fault.KIND, planned.fault.target): planned.id for planned in base.drill.timeline.faults}
    ids: list[str] = []
    for number, step in enumerate(sequence.steps, 1):
        own = known.get((step.kind, step.target), f"second{number}")
        ids.append(own if own not in ids else f"again{number}")
    data = dict(base.data) | {"drill": name, "summary": why if len(why) <= _SUMMARY else f"{why[: _SUMMARY - 3]}..."}
    data["timeline"] = _timeline(sequence.steps, ids, base.drill.timeline.settle_ns)
    data["expect"] = [*_still_apply(base), *more]
    planned = _loaded(base, data)
    longer = max(base.drill.timeline.settle_ns, _settle(fabric, planned))
    if longer > base.drill.timeline.settle_ns:
        data["timeline"] = _timeline(sequence.steps, ids, longer)
        planned = _loaded(base, data)
    return Variant(name, _text(data), planned)


def _loaded(base: Base, data: dict[str, Plain]) -> Drill:
    """Return the drill; the expectation of other flows goes where these faults leave no others."""
    document = Document(str(base.folder / f"{data['drill']}.yaml"), data, {(): 1})
    try:
        return drill_from(document, base.folder)
    except InputError:
        entries = data["expect"]
        data["expect"] = [each for each in entries if not _is_of_others(each)] if isinstance(entries, list) else []
        return drill_from(document, base.folder)


def _still_apply(base: Base) -> list[Plain]:
    """Return the expectations that hold whatever fails: the state at the end, and losses of flows that nothing hits."""
    entries = base.data["expect"]
    others = [entry for entry in entries if _is_of_others(entry)] if isinstance(entries, list) else []
    return [{"state_restored": True}, *others]


def _is_of_others(entry: Plain) -> bool:
    """Return True for an expectation of the losses of flows that no fault hits."""
    limits = entry.get(PACKETS_LOST.key) if isinstance(entry, dict) else None
    return isinstance(limits, dict) and limits.get("flows") == Flows.OTHERS.value and "fault" not in limits


def _text(data: Mapping[str, Plain]) -> str:
    return yaml.safe_dump(dict(data), sort_keys=False, width=118, allow_unicode=True)
