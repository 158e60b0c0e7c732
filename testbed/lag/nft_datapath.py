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
from collections.abc import Sequence

from testbed.kernel.nft import Nft
from testbed.lag.datapath import ETHERTYPE_PATH_CONTROL, UDP, arp_rules
from testbed.lag.jhash import nft_jhash
from testbed.lag.lacpdu import ETHERTYPE_SLOW_PROTOCOLS


class NftDatapath:
    """The nftables datapath of one NIC; ``nft`` is shared by all NICs of the host."""

    def __init__(self, nft: Nft, lag: str, inner: str, ports: Sequence[str], seed: int) -> None:
        """``ports`` in the order of their links; ``seed`` makes the choice of port reproducible."""
        self._nft = nft
        self._table = f"lag_{lag}"
        self._inner = inner
        self._ports = tuple(ports)
        self._seed = seed

    def setup(self) -> None:
        """Make the table and its two chains. NftError when an interface is missing."""
        members = ", ".join(f'"{port}"' for port in self._ports)
        self._nft.run(
            f"table netdev {self._table} {{\n"
            f'chain tx {{ type filter hook ingress device "{self._inner}" priority 0; policy drop; }}\n'
            f"chain rx {{ type filter hook ingress devices = {{ {members} }} priority 0; policy drop; }}\n"
            "}\n" + self._rules(())
        )

    def set_active(self, ports: Sequence[str]) -> None:
        """Swap the rules in one transaction: every packet meets the old rules or the new, none meets neither."""
        self._nft.run(self._rules(ports))

    def port_for(self, src_ip: str, dst_ip: str, sport: int, dport: int, proto: int, active: Sequence[str]) -> str:
        """The active port whose turn it is by jhash: UDP by addresses and ports, the rest by addresses alone."""
        if len(active) == 1:
            return active[0]
        return active[port_index(src_ip, dst_ip, sport, dport, proto, len(active), self._seed)]

    def close(self) -> None:
        """Remove the table."""
        self._nft.run(f"delete table netdev {self._table}")

    def _rules(self, ports: Sequence[str]) -> str:
        """One transaction that replaces both chains' rules.

        No sets or maps in here: the kernel swaps rules atomically, but a packet that is between the old rules and
        their set when the generation changes finds that set empty and would be dropped.
        """
        rules = {"tx": self._distribute(ports), "rx": self._collect(ports)}
        lines = [f"flush chain netdev {self._table} {chain}" for chain in rules]
        lines += [f"add rule netdev {self._table} {chain} {rule}" for chain in rules for rule in rules[chain]]
        return "\n".join(lines)

    def _distribute(self, ports: Sequence[str]) -> list[str]:
        if len(ports) < 2:
            return arp_rules(ports) + [f'ether type ip fwd to "{port}"' for port in ports]
        udp = "meta l4proto udp jhash ip saddr . ip daddr . udp sport . udp dport"
        other = "jhash ip saddr . ip daddr"
        scale = f"mod {len(ports)} seed {self._seed:#x}"
        return arp_rules(ports) + [
            f'{hashed} {scale} == {index} fwd to "{port}"'
            for hashed in (udp, other)
            for index, port in enumerate(ports)
        ]

    def _collect(self, ports: Sequence[str]) -> list[str]:
        control = [f"ether type {kind:#06x} accept" for kind in (ETHERTYPE_SLOW_PROTOCOLS, ETHERTYPE_PATH_CONTROL)]
        return control + [f'iif "{port}" fwd to "{self._inner}"' for port in ports]


def port_index(src_ip: str, dst_ip: str, sport: int, dport: int, proto: int, active: int, seed: int) -> int:
    """Which of so many ``active`` ports a packet leaves by: what the rules of a datapath with that seed do."""
    key = socket.inet_aton(src_ip) + socket.inet_aton(dst_ip)
    if proto == UDP:
        key += struct.pack("!HxxHxx", sport, dport)  # one 32-bit register each
    return nft_jhash(key, active, seed)
