"""Where a queue pair's packets go by computation: the LAG's hash, then the fabric's forwarding. PURE.

It answers what ``scenarios.run.lab_router`` asks a lab, so that source ports are chosen by the same code.
"""

from __future__ import annotations

from collections.abc import Sequence

from testbed.fabric.model import Fabric, Nic
from testbed.lag.bond import layer34_hash
from testbed.lag.datapath import UDP
from testbed.lag.host_nft import NFT, lag_seed
from testbed.lag.nft_datapath import port_index
from traffic.flow import ROCE_PORT, SPORT_MAX, SPORT_MIN
from traffic.flowlevel.forwarding import Forwarding

_BLOCK = 24
"""Source ports looked up at once: an array costs little more than one of them, and who asks for one asks for its
neighbours next."""


class Lag:
    """Which member port a NIC's LAG takes: that of Linux bonding (layer3+4), or of the nft datapath where asked for."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self.name = NFT.name if fabric.spec.lag == NFT.name else "kernel"

    def port(self, nic: Nic, dst_ip: str, sport: int, dport: int, active: Sequence[int]) -> int:
        """The index of the member port, of those that are ``active``, which must be some."""
        if len(active) == 1:
            return active[0]
        if self.name == NFT.name:
            seed = lag_seed(self._fabric, nic)
            return active[port_index(nic.ip, dst_ip, sport, dport, UDP, len(active), seed)]
        return active[layer34_hash(nic.ip, dst_ip, sport, dport, UDP) % len(active)]


class ModelRouter:
    """``traffic.paths.Router`` on the healthy fabric."""

    def __init__(self, fabric: Fabric, lag: Lag, forwarding: Forwarding) -> None:
        self._fabric, self._lag, self._forwarding = fabric, lag, forwarding
        self._known: dict[tuple[str, str, int], Sequence[str]] = {}

    def ports(self, nic: str) -> int:
        """Member ports of a NIC's LAG."""
        return len(self._fabric.nic(nic).links)

    def port_for(self, nic: str, dst_ip: str, sport: int, dport: int) -> int:
        """Index of the member port the LAG picks."""
        source = self._fabric.nic(nic)
        return self._lag.port(source, dst_ip, sport, dport, range(len(source.links)))

    def links(self, src_nic: str, dst_nic: str, sport: int) -> Sequence[str]:
        """Names of the links on the path."""
        key = (src_nic, dst_nic, sport)
        if key not in self._known:
            self._look_up(src_nic, dst_nic, sport)
        return self._known[key]

    def rate_bps(self, link: str) -> int:
        """The emulated rate of a link."""
        return self._fabric.link(link).rate_bps

    def _look_up(self, src_nic: str, dst_nic: str, sport: int) -> None:
        width = SPORT_MAX - SPORT_MIN + 1
        sports = [sport, *(SPORT_MIN + (sport - SPORT_MIN + step) % width for step in range(1, _BLOCK))]
        src, dst = self._fabric.nic(src_nic), self._fabric.nic(dst_nic)
        ports = [self.port_for(src_nic, dst.ip, each, ROCE_PORT) for each in sports]
        found = self._forwarding.walk([src] * _BLOCK, [dst] * _BLOCK, ports, sports)
        for each, links in zip(sports, found.links.tolist(), strict=True):
            names = tuple(self._fabric.links[link // 2].name for link in links if link >= 0)
            self._known[src_nic, dst_nic, each] = names
