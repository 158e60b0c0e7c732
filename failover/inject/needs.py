"""Kernel requirements of a drill's faults, checked before anything starts (exit 3).

A new need is one member of ``Need`` and one entry here: its probe, and the engines that support it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hpn.failover.faults import Fault, Need
from hpn.testbed.errors import MachineError
from hpn.testbed.kernel import ns
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.process import sandbox
from hpn.testbed.lab.breaking import breakage, crossing, impair_egress, impair_ingress
from hpn.testbed.lab.classes import buffers_problem


@dataclass(frozen=True, slots=True)
class _Probe:
    problem: Callable[[NetNs], str | None]  # None: it is there
    way_out: str


def check(faults: Iterable[Fault], *, every: bool = False) -> None:
    """Raise MachineError for each fault that this kernel does not support, with the remedy. Call outside a sandbox.

    ``every``: probe each need once, wanted or not. A probe leaves traces in a guest, which shift its later times by
    some steps of its clock.
    """
    wanting: dict[Need, list[str]] = {}
    for fault in faults:
        for need in fault.NEEDS:
            wanting.setdefault(need, []).append(fault.KIND)
    problems = _problems(list(_PROBES if every else sorted(wanting)))
    lines = []
    for need, kinds in sorted(wanting.items()):
        problem = problems.get(need)
        if problem is not None:
            which = " and ".join(sorted(set(kinds)))
            lines.append(f"{which}: no {need.value} in this kernel ({problem}); {_PROBES[need].way_out}")
    if lines:
        raise MachineError("\n".join(lines))


def _problems(wanted: Sequence[Need]) -> Mapping[str, str]:
    """Return what the kernel answers about the needs that it lacks. One sandbox asks: each costs two forks."""
    found = sandbox.ask(lambda: {need: why for need in wanted if (why := _tried(need)) is not None}) if wanted else {}
    if not isinstance(found, dict):
        raise MachineError(f"the process in the sandbox answers {found!r} when it is asked what the kernel has")
    return {str(need): str(why) for need, why in found.items()}


def _tried(need: Need) -> str | None:
    """Return why the kernel lacks it, None if it does not; probed in a namespace of its own."""
    space = ns.create("probe")
    try:
        return _PROBES[need].problem(space)
    except MachineError as error:
        return str(error)
    finally:
        os.close(space.fd)


_NFT = "apt install libnftables1, modprobe nf_tables, or run it with --engine qemu or --engine uml-virtual-time"


_PROBES: Mapping[Need, _Probe] = {
    Need.NETEM: _Probe(impair_egress.probe, "modprobe sch_netem, or run it with --engine qemu or --engine uml"),
    Need.LOSSLESS: _Probe(buffers_problem, "run it with --engine uml-virtual-time"),
    Need.NFT_INGRESS: _Probe(impair_ingress.probe, _NFT),
    Need.CROSSING: _Probe(crossing.probe, _NFT),
    Need.NFT_FORWARD: _Probe(breakage.probe, _NFT),
}
