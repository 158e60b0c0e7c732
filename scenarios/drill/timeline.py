"""Reader of a drill's timeline: its phases, and its faults with their ids and spares."""

from __future__ import annotations

from collections import Counter
from typing import cast

from hpn.failover.faults import FAULTS, Fault, PlannedFault, Unit, make, parameters, settled
from hpn.scenarios.drill.model import Profile, Timeline
from hpn.scenarios.drill.schema import FaultEntry, TimelineSection, fault_model
from hpn.scenarios.drill.spares import assigned
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.files.check import Mistakes, did_you_mean, dotted
from hpn.testbed.files.document import Document, Plain, Where, shorten

SECOND = 10**9

Found = list[tuple[PlannedFault, Where]]


def timeline_of(mistakes: Mistakes, profile: Profile, fabric: Fabric | None) -> tuple[Timeline | None, Found]:
    """Return the timeline, or None if invalid, and every valid fault with its place; mistakes are noted."""
    data = mistakes.document.section("timeline")
    section = None if data is None else mistakes.check(TimelineSection, data, ("timeline",))
    entries = entries_of(mistakes.document)
    faults: Found = []
    for at, (entry, default_id) in enumerate(zip(entries, _ids(entries), strict=True)):
        where: Where = ("timeline", "faults", at)
        fault = _fault(mistakes, where, entry, default_id, fabric) if isinstance(entry, dict) else None
        faults += [] if fault is None else [(fault, where)]
    faults = _with_spares(mistakes, fabric, faults)
    if section is None:
        return None, faults
    settle_ns = section.settle
    if settle_ns is None:
        settle_ns = profile.validation_ns + SECOND if faults else 0
    return Timeline(section.healthy, tuple(fault for fault, _ in faults), settle_ns), faults


def _with_spares(mistakes: Mistakes, fabric: Fabric | None, faults: Found) -> Found:
    """Return the faults with their spares; a fault that can have none is noted and gets none."""
    if fabric is None:
        return faults
    found = assigned(fabric, [fault for fault, _ in faults])
    for at, problem in found.problems.items():
        planned, where = faults[at]
        replacement = planned.fault.replacement
        key = (*where, "spare" if replacement is not None and replacement.spare else "fault")
        mistakes.add(key, f"{dotted(where)}: {problem}")
    return [(fault, where) for fault, (_, where) in zip(found.faults, faults, strict=True)]


def entries_of(document: Document) -> list[Plain]:
    """Return the faults as written; empty when they are not a list (which the model of the timeline reports)."""
    faults = (document.section("timeline") or {}).get("faults")
    return faults if isinstance(faults, list) else []


def _ids(entries: list[Plain]) -> list[str]:
    """Return the id of every fault: its own, or its kind, numbered if there are several of that kind."""
    kinds = [str(e.get("fault")) if isinstance(e, dict) and "id" not in e else "" for e in entries]
    many = Counter(kinds)
    seen: Counter[str] = Counter()
    found = []
    for kind in kinds:
        seen[kind] += 1
        found.append(f"{kind}-{seen[kind]}" if many[kind] > 1 else kind)
    return found


def _fault(
    mistakes: Mistakes, where: Where, entry: dict[str, Plain], default_id: str, fabric: Fabric | None
) -> PlannedFault | None:
    kind = entry.get("fault")
    if not isinstance(kind, str) or kind not in FAULTS:
        if "fault" in entry:
            hint = did_you_mean(str(kind), FAULTS, "write one of")
            mistakes.add((*where, "fault"), f"{dotted((*where, 'fault'))} is {shorten(kind)}; {hint}")
        else:
            mistakes.add(where, f"'fault' is missing in {dotted(where)}; add 'fault: link-down' or another of its kind")
        return None
    section = mistakes.check(fault_model(kind), entry, where)
    if section is None:
        return None
    values = section.model_dump()
    found = {name: (values[p.key], p.unit) for name, p in parameters(FAULTS[kind]).items()}
    arguments = {name: _named(value, fabric) if unit is Unit.NAME else value for name, (value, unit) in found.items()}
    fault = _settled(make(kind, _named(section.target, fabric), arguments), fabric)
    return PlannedFault(section.id or default_id, fault, section.at, _restored_after(section))


def _named(text: str, fabric: Fabric | None) -> str:
    """Return a part's name; a link may also be named by one of its ports, 'leaf1:Ethernet0'."""
    return text if fabric is None else fabric.named(text)


def _settled(fault: Fault, fabric: Fabric | None) -> Fault:
    """Return the fault resolved on the fabric; unchanged on failure, which ``scenarios.drill.checks`` explains."""
    try:
        return fault if fabric is None else settled(fault, fabric)
    except InputError:
        return fault


def _restored_after(section: FaultEntry) -> int | None:
    return cast("int | None", getattr(section, "for_ns", None))
