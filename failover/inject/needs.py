"""Kernel requirements of a drill's faults, checked before anything starts (exit 3).

A new need is one member of ``Need`` and one entry here: its probe, and the engines that support it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from hpn.failover.faults import Fault, Need
from hpn.testbed.doctor import probe_kernel
from hpn.testbed.errors import MachineError
from hpn.testbed.kernel import ns
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.process import sandbox
from hpn.testbed.lab.breaking import breakage, crossing, impair_ingress
from hpn.testbed.lab.classes import buffers_problem


@dataclass(frozen=True, slots=True)
class _Probe:
    problem: Callable[[], str | None]  # None: it is there
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
    problems = {need: _PROBES[need].problem() for need in (_PROBES if every else sorted(wanting))}
    lines = []
    for need, kinds in sorted(wanting.items()):
        problem = problems[need]
        if problem is not None:
            which = " and ".join(sorted(set(kinds)))
            lines.append(f"{which}: no {need.value} in this kernel ({problem}); {_PROBES[need].way_out}")
    if lines:
        raise MachineError("\n".join(lines))


def _netem_problem() -> str | None:
    return None if probe_kernel()[Need.NETEM] else "no sch_netem"


def _problem(probe: Callable[[NetNs], str | None]) -> Callable[[], str | None]:
    """Return a check that runs ``probe`` in a temporary namespace and returns the problem."""

    def tried() -> str | None:
        space = ns.create("probe")
        try:
            return probe(space)
        except MachineError as error:
            return str(error)
        finally:
            os.close(space.fd)

    return lambda: None if (found := sandbox.ask(tried)) is None else str(found)


_NFT = "apt install libnftables1, modprobe nf_tables, or run it with --engine qemu or --engine uml-virtual-time"


_PROBES: Mapping[Need, _Probe] = {
    Need.NETEM: _Probe(_netem_problem, "modprobe sch_netem, or run it with --engine qemu or --engine uml"),
    Need.LOSSLESS: _Probe(_problem(buffers_problem), "run it with --engine uml-virtual-time"),
    Need.NFT_INGRESS: _Probe(_problem(impair_ingress.probe), _NFT),
    Need.CROSSING: _Probe(_problem(crossing.probe), _NFT),
    Need.NFT_FORWARD: _Probe(_problem(breakage.probe), _NFT),
}
