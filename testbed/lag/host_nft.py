"""LAG of a NIC by our LACP speaker and nftables, without the bonding driver."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Sequence

from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.architectures.architecture import nothing_more
from hpn.testbed.fabric.model import Fabric, Nic
from hpn.testbed.kernel.nftables.nft import Nft
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.lag.config import LacpConfig, PortConfig
from hpn.testbed.lag.datapath import UDP, LagKind, LagPlace
from hpn.testbed.lag.machine import PortStatus
from hpn.testbed.lag.miimon import Delays, MiiMonitor
from hpn.testbed.lag.nft_datapath import NftDatapath, port_index
from hpn.testbed.lag.speaker import ActiveSink, SystemAt
from hpn.testbed.lag.speakers import Speaking

_FEATURES = """
table netdev probe {
  chain c {
    type filter hook ingress device "lo" priority 0;
    ether type arp dup to "lo"
    jhash ip saddr . ip daddr mod 2 seed 1 == 0 fwd to "lo"
  }
}
"""
_WAY_OUT = "apt install libnftables1, modprobe -a nft_fwd_netdev nft_dup_netdev nft_hash, or modprobe bonding"


class NftLag:
    """LAG by our LACP speaker, with nftables as datapath.

    As Linux bonding, it sends nothing through a port without carrier, and LACP learns of that when the link monitor
    looks (``Bonding.miimon_ms``) and its delay is over.
    """

    def __init__(self, place: LagPlace) -> None:
        fabric, nic = place.fabric, place.nic
        names = tuple(link.lower.name for link in nic.links)
        bonding = fabric.bonding(nic)
        seed, layer = lag_seed(fabric, nic), bonding.hash_policy.layer
        self._datapath = NftDatapath(place.nft, nic.lag, nic.inner, names, seed, layer)
        self._on_active = place.on_active
        self._speaker = speaker(place, self._decided)
        delays = Delays(bonding.looks(bonding.up_delay_ms), bonding.looks(bonding.down_delay_ms))
        self._monitor = MiiMonitor((bonding.miimon_ms or 0) / 1000, self._speaker.carrier, delays, self._unused)
        self._down_delay_s = bonding.dark_ms / 1000
        self._min_links = bonding.min_links
        self._lost: dict[str, asyncio.TimerHandle] = {}  # pending reports of carrier loss, by port
        self._dark: set[str] = set()  # ports without carrier, as far as they are reported
        self._agreed: tuple[str, ...] = ()  # by LACP
        self._active: tuple[str, ...] = ()

    def start(self) -> None:
        """Create the rules and start LACP."""
        self._datapath.setup()
        self._speaker.start()
        self._monitor.start()

    def close(self) -> None:
        """Stop, and cancel pending carrier reports."""
        for waiting in self._lost.values():
            waiting.cancel()
        self._lost.clear()
        self._monitor.close()
        self._speaker.stop()

    def carrier(self, port: str, up: bool) -> None:
        """Handle a change of carrier: its return at once, its loss after ``down_delay_ms`` if it still lasts."""
        if port in self._lost:
            self._lost.pop(port).cancel()
        if up or not self._down_delay_s:
            self._reported(port, up)
        else:
            loop = asyncio.get_running_loop()
            self._lost[port] = loop.call_later(self._down_delay_s, self._reported, port, False)

    def look(self) -> None:
        """Do nothing: our speaker tracks port state itself."""

    def set_active(self, ports: Sequence[str]) -> None:
        """Swap the rules."""
        self._datapath.set_active(ports)

    def port_for(self, src_ip: str, dst_ip: str, sport: int, dport: int, proto: int, active: Sequence[str]) -> str:
        """Return the port chosen by nftables' hash."""
        return self._datapath.port_for(src_ip, dst_ip, sport, dport, proto, active)

    def status(self) -> tuple[PortStatus, ...]:
        """Return our speaker's status of each port."""
        return self._speaker.status()

    def driver_text(self) -> str:
        """Return '': there is no driver."""
        return ""

    def _reported(self, port: str, up: bool) -> None:
        if up:
            self._dark.discard(port)
        else:
            self._dark.add(port)
        self._monitor.carrier(port, up)
        self._distribute()

    def _unused(self) -> bool:
        return self._dark.issuperset(self._agreed)

    def _decided(self, ports: tuple[str, ...]) -> None:
        self._agreed = ports
        self._distribute()

    def _distribute(self) -> None:
        """Use the ports that LACP agreed on and that have carrier, if they are enough."""
        ports = tuple(port for port in self._agreed if port not in self._dark)
        ports = ports if len(ports) >= self._min_links else ()
        if ports != self._active:
            self._active = ports
            self._on_active(ports, {})


def speaker(place: LagPlace, on_active: ActiveSink) -> Speaking:
    """Return our LACP speaker for a NIC, with the fabric's numbers."""
    nic, bonding = place.nic, place.fabric.bonding(place.nic)
    lacp = LacpConfig(
        system=nic.mac,
        key=nic.rail + 1,
        fast=bonding.lacp_rate == "fast",
        aggregate_wait_ns=bonding.aggregate_wait_ms * 1_000_000,
    )
    ports = [PortConfig(link.lower.name, link.lower.port_id) for link in nic.links]
    return place.lacp.make(SystemAt(nic.host, place.space, lacp, ports, place.sink, on_active))


def lag_seed(fabric: Fabric, nic: Nic) -> int:
    """Return the LAG hash seed of a NIC, from the fabric's seed: 32 bits, not zero."""
    digest = hashlib.blake2b(f"{fabric.spec.seed}/lag/{nic.name}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") | 1


def _port_of(fabric: Fabric, nic: Nic, dst_ip: str, sport: int, dport: int, active: int) -> int:
    layer = fabric.bonding(nic).hash_policy.layer
    return port_index(nic.ip, dst_ip, sport, dport, UDP, active, lag_seed(fabric, nic), layer)


def _problem(probe: NetNs) -> str | None:
    try:
        nft = Nft(probe)
    except MachineError as error:
        return f"no LAG datapath here ({error}): {_WAY_OUT}"
    try:
        nft.run(_FEATURES)
    except OSError as error:
        return f"no LAG datapath here ({str(error).splitlines()[0]}): {_WAY_OUT}"
    finally:
        nft.close()
    return None


def _pair(fabric: Fabric, nic: Nic, space: NetNs) -> Iterator[bytes]:
    """Yield a veth pair whose first end is the LAG interface; it segments GSO bursts before the LAG hash."""
    yield rtnl.add_veth(
        nic.lag,
        nic.lag_ifindex,
        space,
        nic.inner,
        nic.inner_ifindex,
        space,
        mac=nic.mac,
        peer_mac=nic.mac,
        mtu=fabric.spec.mtu,
        split_gso=True,
        peer_promiscuous=True,
    )


def _raised(_fabric: Fabric, nic: Nic) -> Iterator[bytes]:
    yield rtnl.set_link(nic.inner_ifindex, up=True)


NFT = LagKind(
    name="nft",
    unasked=True,
    problem=_problem,
    contradictions=nothing_more,
    interfaces=_pair,
    raised=_raised,
    make=NftLag,
    moves_itself=False,
    numbered=True,
    at_failure="the nft datapath is told by the kernel at once",
    at_repair="our speaker keeps the selection over a lost link (6.4.12) and at most waits lacp.aggregate_wait_ms",
    failure_within_ms=0,
    repair_within_ms=200,
    port_of=_port_of,
)
