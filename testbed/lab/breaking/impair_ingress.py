"""Impairments of arriving frames: some are dropped, some corrupted, before any other processing.

They act at the receiver's ingress. A drop at the sender's egress is reported to the sender, which no wire does (FACTS
trap 10). One nftables table per namespace has one chain per impaired port. Its priority puts it before the LAG's own
ingress chain; a bonding driver, the routing and sockets bound to an ethertype come after every such chain. Sockets for
all ethertypes (tcpdump) come before it and still show dropped frames.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from hpn.testbed.fabric.model import Port
from hpn.testbed.kernel.nftables.nft import Nft
from hpn.testbed.kernel.ns import NetNs

_TABLE = "hpn_impair"
_BEFORE_THE_LAG = -200  # testbed.lag.nft_datapath has 0; lower runs first
_LACP, _BGP, _ROCE = 0x8809, 179, 4791
_UDP_BYTES = 8
_MILLION = 1_000_000

LAST_BYTE = 255 - _UDP_BYTES
"""Last byte of a UDP payload that every kernel's nftables can change."""


class Traffic(StrEnum):
    """Selection of frames."""

    EVERYTHING = "everything"
    LACP = "lacp"
    ARP = "arp"
    DATA = "data"  # RoCEv2: UDP to port 4791, acknowledgements included
    NOT_CONTROL = "all-but-control"  # everything but LACP and BGP


class Arriving(Protocol):
    """An impairment of arriving frames."""

    def rules(self) -> tuple[str, ...]:
        """Return nftables rules; frames that they accept continue to the port's other impairments."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Drop a share of such frames silently, each by its own random number."""

    traffic: Traffic = Traffic.EVERYTHING
    share: float = 1.0

    def rules(self) -> tuple[str, ...]:
        """Return one rule for each form of such a frame."""
        return tuple(f"{match} {_chance(self.share)} drop" for match in _MATCHES[self.traffic])


@dataclass(frozen=True, slots=True)
class DropBucket:
    """Drop the RoCE packets whose 5-tuple hash falls in one ``bucket`` (0 .. ``buckets`` - 1)."""

    buckets: int
    bucket: int
    seed: int

    def rules(self) -> tuple[str, ...]:
        """Return one rule; ``testbed.lag.jhash.nft_jhash`` is the same hash."""
        key = "ip saddr . ip daddr . udp sport . udp dport"
        hashed = f"jhash {key} mod {self.buckets} seed {self.seed:#x}"
        return (f"meta protocol ip udp dport {_ROCE} {hashed} {self.bucket} drop",)


@dataclass(frozen=True, slots=True)
class Corrupt:
    """Flip one bit of byte ``at`` of the UDP payload, in a share of the RoCE packets that have that byte.

    ``at`` is at most LAST_BYTE: nftables of Linux 6.12 reaches 255 bytes behind a header and no further.
    The UDP checksum does not detect it: between veths it is never computed (FACTS trap 10), and RoCEv2 may omit it.
    """

    share: float
    at: int

    def rules(self) -> tuple[str, ...]:
        """Return one rule, which packets without that byte do not match."""
        at = _UDP_BYTES + self.at
        byte = f"@th,{8 * at},8"
        return (f"udp dport {_ROCE} udp length > {at} {_chance(self.share)} {byte} set {byte} ^ 0x01",)


def probe(space: NetNs) -> str | None:
    """Return why this kernel cannot do it, None if it can: tests every kind of rule on the loopback of ``space``."""
    kinds = [Drop(traffic, 0.5) for traffic in Traffic]
    try:
        chain = IngressChains(space)
        try:
            chain.put("probe", Port("", "lo", 1, ""), *kinds, DropBucket(2, 0, 1), Corrupt(0.5, LAST_BYTE))
            chain.lift("probe")
        finally:
            chain.close()
    except OSError as error:
        return str(error).splitlines()[0]
    return None


class IngressChains:
    """Impairments of one namespace's ports. OSError when the kernel refuses one."""

    def __init__(self, space: NetNs) -> None:
        self._nft = Nft(space)
        self._ports: dict[Port, dict[Hashable, tuple[str, ...]]] = {}

    def put(self, key: Hashable, port: Port, *what: Arriving) -> None:
        """Impair arriving traffic at ``port`` until ``key`` is lifted; replaces its earlier impairment there."""
        chain = self._ports.setdefault(port, {})
        before = chain.get(key)
        chain[key] = tuple(rule for each in what for rule in each.rules())
        try:
            self._nft.run(self._written(port))
        except OSError:
            self._forget(key, port)
            if before is not None:
                self._ports.setdefault(port, {})[key] = before
            raise

    def keys(self) -> set[Hashable]:
        """Return the keys under which something is impaired."""
        return {key for chain in self._ports.values() for key in chain}

    def lift(self, key: Hashable) -> None:
        """Remove the impairments under ``key``, if any; others stay."""
        for port in [port for port, chain in self._ports.items() if key in chain]:
            self._forget(key, port)
            self._nft.run(self._written(port))

    def close(self) -> None:
        """Close the nftables context; the rules stay in the kernel."""
        self._nft.close()

    def _forget(self, key: Hashable, port: Port) -> None:
        self._ports[port].pop(key, None)
        if not self._ports[port]:
            del self._ports[port]

    def _written(self, port: Port) -> str:
        """Return one transaction that updates the kernel's chain of ``port``: no frame sees an intermediate state."""
        if not self._ports:
            return f"delete table netdev {_TABLE}"
        name = f"netdev {_TABLE} port{port.ifindex}"
        if port not in self._ports:
            return f"flush chain {name}\ndelete chain {name}"
        hook = f'type filter hook ingress device "{port.name}" priority {_BEFORE_THE_LAG}; policy accept;'
        make = [f"add table netdev {_TABLE}", f"add chain {name} {{ {hook} }}", f"flush chain {name}"]
        rules = [f"add rule {name} {rule}" for rules in self._ports[port].values() for rule in rules]
        return "\n".join([*make, *rules])


# A frame matches at most one of them, so that it draws one random number.
_MATCHES = {
    Traffic.EVERYTHING: ("",),
    Traffic.LACP: (f"meta protocol {_LACP:#06x}",),
    Traffic.ARP: ("meta protocol arp",),
    Traffic.DATA: (f"udp dport {_ROCE}",),
    Traffic.NOT_CONTROL: (
        f"meta protocol != ip meta protocol != {_LACP:#06x}",
        "meta protocol ip meta l4proto != tcp",
        # Not '!=' twice: nft would merge the two ports into one word, which is unequal when either of them is.
        f"meta protocol ip tcp dport != {_BGP} tcp sport < {_BGP}",
        f"meta protocol ip tcp dport != {_BGP} tcp sport > {_BGP}",
    ),
}


def _chance(share: float) -> str:
    return "" if share >= 1 else f"numgen random mod {_MILLION} < {round(share * _MILLION)}"
