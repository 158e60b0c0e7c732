"""The LAG below a NIC: who speaks LACP and what moves frames.

Here: our speaker with nftables. The other one, Linux bonding, is ``host_bond``.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from typing import Protocol

from testbed.events import EventSink
from testbed.fabric.model import Fabric, Nic
from testbed.kernel.nft import Nft
from testbed.kernel.ns import NetNs
from testbed.lag.config import LacpConfig, PortConfig
from testbed.lag.machine import PortStatus
from testbed.lag.nft_datapath import NftDatapath
from testbed.lag.speaker import Speaker

OnActive = Callable[[tuple[str, ...]], None]


class HostLag(Protocol):
    """The LAG of one NIC. It says which ports collect and distribute by calling its ``on_active``."""

    def start(self) -> None:
        """Begin; no port is active yet."""

    def close(self) -> None:
        """Stop and close the sockets; the interfaces stay as they are."""

    def carrier(self, port: str, up: bool) -> None:
        """The link monitor saw a change of this member port's carrier."""

    def look(self) -> None:
        """The kernel said something about an interface of this LAG."""

    def set_active(self, ports: Sequence[str]) -> None:
        """Have exactly these ports carry what leaves and arrives."""

    def port_for(self, src_ip: str, dst_ip: str, sport: int, dport: int, proto: int, active: Sequence[str]) -> str:
        """The port of ``active`` (not empty) that such a packet leaves by."""

    def status(self) -> tuple[PortStatus, ...]:
        """LACP of each port."""

    def driver_text(self) -> str:
        """What the bonding driver says of it, '' where there is none."""


class NftLag:
    """Our LACP speaker, and nftables as datapath."""

    def __init__(self, fabric: Fabric, nic: Nic, space: NetNs, nft: Nft, sink: EventSink, on_active: OnActive) -> None:
        names = tuple(link.lower.name for link in nic.links)
        self._datapath = NftDatapath(nft, nic.lag, nic.inner, names, lag_seed(fabric, nic))
        lacp = LacpConfig(
            system=nic.mac,
            key=nic.rail + 1,
            fast=fabric.spec.lacp.rate == "fast",
            aggregate_wait_ns=fabric.spec.lacp.aggregate_wait_ms * 1_000_000,
        )
        ports = [PortConfig(link.lower.name, link.lower.port_id) for link in nic.links]
        self._speaker = Speaker(nic.host, space, lacp, ports, emit=sink, on_active=on_active)
        self.set_active = self._datapath.set_active
        self.port_for = self._datapath.port_for
        self.status = self._speaker.status
        self._down_delay_s = fabric.spec.lacp.down_delay_ms / 1000
        self._lost: dict[str, asyncio.TimerHandle] = {}  # ports whose loss of carrier the speaker is still to hear of

    def start(self) -> None:
        """Make the rules and begin to speak LACP."""
        self._datapath.setup()
        self._speaker.start()

    def close(self) -> None:
        """Stop; what was still to be told of carrier is not told any more."""
        for waiting in self._lost.values():
            waiting.cancel()
        self._lost.clear()
        self._speaker.stop()

    def carrier(self, port: str, up: bool) -> None:
        """Tell the speaker: of a carrier at once, of its loss after ``down_delay_ms`` if it is still away then."""
        if port in self._lost:
            self._lost.pop(port).cancel()
        if up or not self._down_delay_s:
            self._speaker.carrier(port, up)
        else:
            loop = asyncio.get_running_loop()
            self._lost[port] = loop.call_later(self._down_delay_s, self._speaker.carrier, port, False)

    def look(self) -> None:
        """Nothing: the speaker knows."""

    def driver_text(self) -> str:
        """There is no driver."""
        return ""


def lag_seed(fabric: Fabric, nic: Nic) -> int:
    """The LAG hash seed of a NIC, from the fabric's seed: 32 bits, not zero."""
    digest = hashlib.blake2b(f"{fabric.spec.seed}/lag/{nic.name}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") | 1
