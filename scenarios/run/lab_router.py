"""Packet paths on a running lab, taken from its own LAGs and kernels; the basis for choosing paths."""

from __future__ import annotations

from collections.abc import Sequence

from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.buffers import balances
from hpn.testbed.lab.lab import Lab
from hpn.testbed.routing.trace import Flow, Path
from hpn.traffic.flows.flow import FlowSpec


class LabRouter:
    """Implementation of ``traffic.flows.paths.Router`` by the lab's own LAGs and kernels."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    def ports(self, nic: str) -> int:
        """Return the number of member ports of a NIC's LAG."""
        return len(self._lab.fabric.nic(nic).links)

    def port_for(self, nic: str, dst_ip: str, sport: int, dport: int) -> int:
        """Return the index of the member port that the LAG picks. MachineError while it has no active port."""
        port = self._lab.nics[nic].port_for(dst_ip, sport, dport)
        if port is None:
            raise MachineError(f"{nic}: no active port in its LAG")
        return port

    def links(self, src_nic: str, dst_nic: str, sport: int, bound: int | None = None) -> Sequence[str]:
        """Return the names of the links on the path, as far as they are certain."""
        return self._certain(self._lab.path(Flow(src_nic, dst_nic, sport), bound))

    def rate_bps(self, link: str) -> int:
        """Return the emulated rate of a link in bit/s."""
        return self._lab.fabric.link(link).rate_bps

    def _certain(self, path: Path) -> Sequence[str]:
        """Return the links of a path; where switches balance, the first one alone is certain."""
        return path.links[:1] if balances(self._lab.fabric.spec) else path.links


class RememberingRouter(LabRouter):
    """Router of a lab that remembers its answers, so that chosen paths need no second query."""

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab)
        self._said: dict[tuple[str, str, int, int | None], Sequence[str]] = {}

    def links(self, src_nic: str, dst_nic: str, sport: int, bound: int | None = None) -> Sequence[str]:
        """Return the names of the links on the path."""
        found = self._said[src_nic, dst_nic, sport, bound] = super().links(src_nic, dst_nic, sport, bound)
        return found

    def links_of(self, flow: FlowSpec) -> Sequence[str]:
        """Return the last result of ``links`` for a flow's path; empty if it was never queried."""
        return self._said.get((flow.src_nic, flow.dst_nic, flow.sport, flow.port), ())
