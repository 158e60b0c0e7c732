"""A LAG datapath that takes a port in by LACP and leaves it by carrier alone: a silent ToR keeps its hosts' traffic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hpn.testbed.fabric.architectures.architecture import Problem
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.lag.datapath import LagKind, LagPlace
from hpn.testbed.lag.datapaths import DATAPATHS
from hpn.testbed.lag.host_nft import NFT, lag_seed, speaker
from hpn.testbed.lag.machine import PortStatus
from hpn.testbed.lag.nft_datapath import NftDatapath


class StickyLag:
    """Our LACP speaker, whose word that a port is lost is not heeded, and nftables to move frames."""

    def __init__(self, place: LagPlace) -> None:
        nic = place.nic
        self._ports = tuple(link.lower.name for link in nic.links)
        self._used: frozenset[str] = frozenset()
        self._on_active = place.on_active
        self._rules = NftDatapath(place.nft, nic.lag, nic.inner, self._ports, lag_seed(place.fabric, nic))
        self._speaker = speaker(place, lambda ports: self._use(self._used.union(ports)))

    def start(self) -> None:
        """Make the rules and begin to speak LACP."""
        self._rules.setup()
        self._speaker.start()

    def close(self) -> None:
        """Speak no more."""
        self._speaker.stop()

    def carrier(self, port: str, up: bool) -> None:
        """Tell the speaker; leave a port that lost its carrier."""
        self._speaker.carrier(port, up)
        if not up:
            self._use(self._used - {port})

    def look(self) -> None:
        """Do nothing: the speaker knows."""

    def set_active(self, ports: Sequence[str]) -> None:
        """Swap the rules."""
        self._rules.set_active(ports)

    def port_for(self, src_ip: str, dst_ip: str, sport: int, dport: int, proto: int, active: Sequence[str]) -> str:
        """The port by nftables' hash."""
        return self._rules.port_for(src_ip, dst_ip, sport, dport, proto, active)

    def status(self) -> tuple[PortStatus, ...]:
        """How the speaker stands."""
        return self._speaker.status()

    def driver_text(self) -> str:
        """There is no driver."""
        return ""

    def _use(self, ports: Iterable[str]) -> None:
        before, self._used = self._used, frozenset(ports)
        if self._used != before:
            self._on_active(tuple(port for port in self._ports if port in self._used), {})


def _contradictions(spec: FabricSpec) -> Iterator[Problem]:
    if spec.lacp.down_delay_ms:
        told = f"lacp.down_delay_ms is {spec.lacp.down_delay_ms}, but a sticky LAG leaves a port without carrier"
        yield ("lacp", "down_delay_ms"), f"{told} at once; write lag: nft"


DATAPATHS.add(
    LagKind(
        name="sticky",
        unasked=False,
        problem=NFT.problem,
        contradictions=_contradictions,
        interfaces=NFT.interfaces,
        raised=NFT.raised,
        make=StickyLag,
        moves_itself=False,
        numbered=True,
        at_failure="a sticky LAG leaves a port when the kernel tells that carrier is gone, and for nothing else",
        at_repair="a sticky LAG takes a port back when our speaker does",
        failure_within_ms=0,
        repair_within_ms=200,
    )
)
