"""The reference of faults, read from what each says of itself."""

from __future__ import annotations

from collections.abc import Iterator

from docs.site.markdown import code, page, plain, prose, table
from docs.site.models import keys
from hpn.failover.faults import FAULTS, Fault, VisibleTo
from hpn.failover.faults.base import SwitchPart
from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.schema import RestoredFaultEntry, fault_model

_TELLS = {
    VisibleTo.CARRIER: "the ports that are hit lose carrier",
    VisibleTo.NEIGHBOURS: "a switch says so, carrier stays",
    VisibleTo.NOBODY: "nobody is told; only what is missed can tell",
}
_PART = {
    SwitchPart.WHOLE: "the whole switch",
    SwitchPart.CONTROL: "its control plane: BGP, LACP, host routes; it forwards on",
    SwitchPart.FORWARDING: "its forwarding",
}


def faults() -> str:
    """The page of every kind of fault."""
    drills = _drills()
    rows = ((f"[{kind}](#{kind})", plain(fault.TARGET), _TELLS[fault.TELLS]) for kind, fault in FAULTS.items())
    return page(
        "# Faults",
        "What `fault:` of a drill's timeline takes. Keys that every fault has:",
        keys(RestoredFaultEntry),
        "A fault is undone `for` after it was done, else at the end of the drill; the repair is an edge of its own.",
        table(("fault", "target", "who is told"), rows),
        *(_fault(kind, fault, drills) for kind, fault in FAULTS.items()),
    )


def _fault(kind: str, fault: type[Fault], drills: dict[str, list[str]]) -> str:
    own = keys(fault_model(kind), left_out=RestoredFaultEntry.model_fields)
    used = ", ".join(code(name) for name in drills.get(kind, ()))
    return page(
        f"## {kind}",
        prose(fault.__doc__ or ""),
        table(("", ""), _facts(fault)),
        own,
        f"In the drills {used}." if used else "",
    )


def _facts(fault: type[Fault]) -> Iterator[tuple[str, str]]:
    yield "target", plain(fault.TARGET)
    yield "told", _TELLS[fault.TELLS]
    if fault.PART in _PART:
        yield "stops", _PART[fault.PART]
    if not fault.STEADY:
        yield "steady", "no: what it takes comes and goes"
    if fault.REPAIRS_ITSELF:
        yield "`for`", "has no meaning: it repairs itself"
    if fault.NEEDS:
        yield "the kernel must have", plain(", ".join(sorted(fault.NEEDS)))
    yield "failures a month of one element, for campaigns", f"{fault.PER_MONTH:g}"


def _drills() -> dict[str, list[str]]:
    """The drills of the library by the faults in them."""
    found: dict[str, list[str]] = {}
    for drill in catalogue.ls():
        for kind in dict.fromkeys(planned.fault.KIND for planned in drill.timeline.faults):
            found.setdefault(kind, []).append(drill.name)
    return found
