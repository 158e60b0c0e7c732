"""A LAG without the bonding driver: nftables between a veth pair and the member ports.

    lag ===veth=== inner | chain tx --> one active member port (ARP: a copy to each)
                         | chain rx <-- active member ports

Frames the host sends into ``lag`` come out of ``inner``, whose ingress chain forwards them; frames the members
receive are forwarded into ``inner`` and so come out of ``lag``. The members share the MAC address of ``lag``. A member
that does not collect discards what it receives, except the control protocols that belong to the port itself.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Sequence

from hpn.testbed.kernel.nftables import rules as nftrules
from hpn.testbed.kernel.nftables.nft import Nft, NftError
from hpn.testbed.kernel.nftables.rules import Base, Chain, Meta
from hpn.testbed.kernel.packets.lldp import ETHERTYPE_LLDP
from hpn.testbed.lag.datapath import ETHERTYPE_PATH_CONTROL, UDP
from hpn.testbed.lag.jhash import nft_jhash
from hpn.testbed.lag.lacpdu import ETHERTYPE_SLOW_PROTOCOLS

_KEY = 0x0C
"""First of the four-byte registers with the hash key (NFT_REG32_04)."""
_IPV4 = nftrules.load_meta(Meta.PROTOCOL, 1) + nftrules.equal(1, b"\x08\x00")
_IS_UDP = nftrules.load_meta(Meta.L4PROTO, 1) + nftrules.equal(1, bytes([UDP]))
_ADDRESSES = nftrules.load(Base.NETWORK, 12, 4, _KEY) + nftrules.load(Base.NETWORK, 16, 4, _KEY + 1)
_UDP_PORTS = nftrules.load(Base.TRANSPORT, 0, 2, _KEY + 2) + nftrules.load(Base.TRANSPORT, 2, 2, _KEY + 3)
_KEYS = ((_IS_UDP + _IPV4 + _ADDRESSES + _UDP_PORTS, 16), (_IPV4 + _ADDRESSES, 8))
"""Expressions that load a packet's key into its registers, and the key's size in bytes: for UDP, and for the rest."""
_ETHER_IPV4, _ETHER_ARP = nftrules.ethertype(0x0800), nftrules.ethertype(0x0806)
_ETHERTYPE_MAC_CONTROL = 0x8808  # PFC (IEEE 802.3 annex 31B)
_OWN = (ETHERTYPE_SLOW_PROTOCOLS, ETHERTYPE_PATH_CONTROL, _ETHERTYPE_MAC_CONTROL, ETHERTYPE_LLDP)
_CONTROL = [nftrules.ethertype(kind) + nftrules.accept() for kind in _OWN]


class NftDatapath:
    """The nftables datapath of one NIC; ``nft`` is shared by all NICs of the host."""

    def __init__(self, nft: Nft, lag: str, inner: str, ports: Sequence[str], seed: int, layer: int = 4) -> None:
        """Describe the datapath; ``ports`` in link order, ``seed`` makes the choice of port reproducible.

        ``layer``: the highest whose addresses are hashed; below 3 all packets, which go to one router, leave by one.
        """
        self._nft = nft
        self._lag = lag
        self._table = f"lag_{lag}"
        self._tx, self._rx = Chain(self._table, "tx"), Chain(self._table, "rx")
        self._inner = inner
        self._ports = tuple(ports)
        self._seed = seed
        self._layer = layer

    def setup(self) -> None:
        """Create the table and its two chains. NftError when an interface is missing."""
        members = ", ".join(f'"{port}"' for port in self._ports)
        self._nft.run(
            f"table netdev {self._table} {{\n"
            f'chain tx {{ type filter hook ingress device "{self._inner}" priority 0; policy drop; }}\n'
            f"chain rx {{ type filter hook ingress devices = {{ {members} }} priority 0; policy drop; }}\n"
            "}"
        )
        self.set_active(())

    def set_active(self, ports: Sequence[str]) -> None:
        """Swap the rules in one transaction: every packet meets the old rules or the new ones.

        It uses no sets or maps. The kernel swaps rules atomically. But a packet that is between the old rules and their
        set when the generation changes finds that set empty and would be dropped. NftError with the kernel's errno when
        a port is missing or the kernel refuses: nothing is changed then.
        """
        indexes = [self._index_of(port) for port in ports]  # read each time: a recreated interface has another index
        distribute = [self._tx.append(rule) for rule in self._distribute(indexes)]
        collect = [self._rx.append(rule) for rule in (*_CONTROL, *self._collect(indexes))]
        self._nft.commit([self._tx.flush(), self._rx.flush(), *distribute, *collect])

    def port_for(self, src_ip: str, dst_ip: str, sport: int, dport: int, proto: int, active: Sequence[str]) -> str:
        """Return the active port by jhash: UDP by addresses and ports, the rest by addresses alone."""
        if len(active) == 1:
            return active[0]
        return active[port_index(src_ip, dst_ip, sport, dport, proto, len(active), self._seed, self._layer)]

    def close(self) -> None:
        """Remove the table."""
        self._nft.run(f"delete table netdev {self._table}")

    def _distribute(self, ports: Sequence[int]) -> Iterator[bytes]:
        """Yield rules for the host's frames: ARP leaves by every port, other IPv4 by the one of the hash."""
        for port in ports[1:]:
            yield _ETHER_ARP + nftrules.duplicate(port)
        for port in ports[:1]:
            yield _ETHER_ARP + nftrules.forward(port)
        if len(ports) < 2 or self._layer < 3:
            only = [ports[self._seed % len(ports)]] if ports else ()
            yield from (_ETHER_IPV4 + nftrules.forward(port) for port in only)
            return
        for key, size in _KEYS if self._layer > 3 else _KEYS[1:]:
            hashed = key + nftrules.jhash(_KEY, size, len(ports), self._seed, 1)
            for number, port in enumerate(ports):
                yield hashed + nftrules.equal(1, struct.pack("=I", number)) + nftrules.forward(port)

    def _collect(self, ports: Sequence[int]) -> Iterator[bytes]:
        """Yield rules that forward received frames of ports out of the LAG."""
        if ports:
            inner = nftrules.forward(self._index_of(self._inner))
            for port in ports:
                yield nftrules.load_meta(Meta.IIF, 1) + nftrules.equal(1, struct.pack("=I", port)) + inner

    def _index_of(self, interface: str) -> int:
        try:
            return self._nft.index_of(interface)
        except NftError as error:
            raise NftError(error.errno, f"{self._lag}: {error.strerror or error}") from error


def port_index(
    src_ip: str, dst_ip: str, sport: int, dport: int, proto: int, active: int, seed: int, layer: int = 4
) -> int:
    """Return the index, below ``active``, of a packet's port, as the rules of a datapath with that seed choose it."""
    if layer < 3:
        return seed % active
    key = socket.inet_aton(src_ip) + socket.inet_aton(dst_ip)
    if proto == UDP and layer > 3:
        key += struct.pack("!HxxHxx", sport, dport)  # one 32-bit register each
    return nft_jhash(key, active, seed)
