"""Where packets of a running lab go, as its own LAGs and kernels say: what paths are chosen by."""

from __future__ import annotations

from collections.abc import Sequence

from hpn.testbed.errors import MachineError
from hpn.testbed.lab.lab import Lab
from hpn.testbed.routing.trace import Flow
from hpn.traffic.flows.flow import FlowSpec


class LabRouter:
    """``traffic.flows.paths.Router`` answered by the lab's own LAGs and kernels."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    def ports(self, nic: str) -> int:
        """Member ports of a NIC's LAG."""
        return len(self._lab.fabric.nic(nic).links)

    def port_for(self, nic: str, dst_ip: str, sport: int, dport: int) -> int:
        """Index of the member port the LAG picks. MachineError while the LAG has no active port."""
        port = self._lab.nics[nic].port_for(dst_ip, sport, dport)
        if port is None:
            raise MachineError(f"{nic}: no active port in its LAG")
        return port

    def links(self, src_nic: str, dst_nic: str, sport: int) -> Sequence[str]:
        """Names of the links on the path."""
        return self._lab.path(Flow(src_nic, dst_nic, sport)).links

    def rate_bps(self, link: str) -> int:
        """The emulated rate of a link."""
        return self._lab.fabric.link(link).rate_bps


class RememberingRouter(LabRouter):
    """The same, and what it has said: so the paths that were chosen need not be asked for again."""

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab)
        self._said: dict[tuple[str, str, int], Sequence[str]] = {}

    def links(self, src_nic: str, dst_nic: str, sport: int) -> Sequence[str]:
        """Names of the links on the path."""
        found = self._said[src_nic, dst_nic, sport] = super().links(src_nic, dst_nic, sport)
        return found

    def links_of(self, flow: FlowSpec) -> Sequence[str]:
        """What ``links`` said last of a flow's path; nothing when it was not asked."""
        return self._said.get((flow.src_nic, flow.dst_nic, flow.sport), ())
