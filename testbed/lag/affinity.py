"""Queue affinity of one NIC: a queue pair is bound to a member port, and neither LAG policy nor source port decides.

There is one nftables chain at the egress of each member (netdev egress, Linux 5.16), after the choice of port by any
LAG datapath. Each port has a set of the queue pairs that leave by it: destination address and UDP source port, unique
for a NIC's queue pairs. Another member's chain hands their packets over. The rules never change, only the sets'
contents, and one transaction makes all changes at a time. Packets in no set, those of other programs, are the LAG's.

An adapter maps all queue pairs of a lost port to another one with one command (mlx5: MODIFY_LAG with
``tx_remap_affinity``), here ``remap``; ``rebind`` changes the port of single ones (a modify of the queue pair in RTS).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hpn.testbed.kernel.nftables.nft import Nft
from hpn.testbed.lag.steering import BEFORE_ALL, check_egress, pairs

Key = tuple[str, int]
"""Destination address and UDP source port of a queue pair's packets."""


@dataclass(frozen=True, slots=True)
class BoundQueuePair:
    """A queue pair's sending direction, the member port it is bound to, and the source ports that it uses."""

    connection: int
    dst_ip: str
    sports: tuple[int, ...]
    port: str


class Affinity:
    """Bindings of one NIC; ``nft`` is shared by all NICs of the host."""

    def __init__(self, nft: Nft, lag: str, ports: Sequence[str]) -> None:
        """Describe the bindings; ``ports`` are the member ports in the order of their links."""
        self._nft = nft
        self._table = f"affinity_{lag}"
        self._ports = tuple(ports)
        self._bound: dict[int, BoundQueuePair] = {}
        self._instead: Mapping[str, str] = {port: port for port in ports}
        self._leaves: dict[Key, str] = {}  # as in the kernel
        self._stands = False

    def setup(self) -> None:
        """Create chains and empty sets. NftError when the kernel refuses."""
        self._nft.run(table(self._table, self._ports))
        self._stands = True

    def bind(self, queue_pairs: Iterable[BoundQueuePair]) -> None:
        """Bind new queue pairs; one that is bound already keeps its port and gets these source ports."""
        for pair in queue_pairs:
            before = self._bound.get(pair.connection)
            self._bound[pair.connection] = pair if before is None else replace(pair, port=before.port)
        self._write()

    def release(self, connections: Iterable[int]) -> None:
        """Forget finished queue pairs."""
        for connection in connections:
            self._bound.pop(connection, None)
        self._write()

    def rebind(self, ports: Mapping[int, str]) -> None:
        """Bind queue pairs, by connection, to other ports."""
        for connection, port in ports.items():
            if connection in self._bound:
                self._bound[connection] = replace(self._bound[connection], port=port)
        self._write()

    def remap(self, instead: Mapping[str, str]) -> None:
        """Send what is bound to a port by another one; ``instead`` has an entry for every port."""
        self._instead = instead
        self._write()

    @property
    def instead(self) -> Mapping[str, str]:
        """Port that is used for the queue pairs bound to each port."""
        return self._instead

    @property
    def is_native(self) -> bool:
        """True if each port carries the queue pairs that are bound to it."""
        return all(port == used for port, used in self._instead.items())

    def port_for(self, dst_ip: str, sport: int) -> str | None:
        """Return the port by which a queue pair's packet leaves; None for a packet of no queue pair."""
        return self._leaves.get((dst_ip, sport))

    def standing(self) -> Mapping[Key, str]:
        """Return the kernel's bindings. NftError when the table is gone."""
        if not self._stands:
            return {}
        found = elements(self._nft.run(f"list table netdev {self._table}"))
        return {key: port for at, port in enumerate(self._ports) for key in found.get(f"port{at}", ())}

    def close(self) -> None:
        """Remove the bindings."""
        if self._stands:
            self._nft.run(f"delete table netdev {self._table}")
            self._stands = False
        self._bound.clear()
        self._leaves.clear()

    def _write(self) -> None:
        """Change the kernel's sets to the present bindings, in one transaction."""
        wanted = {
            (pair.dst_ip, sport): self._instead[pair.port] for pair in self._bound.values() for sport in pair.sports
        }
        gone = [key for key, port in self._leaves.items() if wanted.get(key) != port]
        come = [key for key, port in wanted.items() if self._leaves.get(key) != port]
        lines = [*self._lines("delete", gone, self._leaves), *self._lines("add", come, wanted)]
        self._leaves = wanted
        if lines and self._stands:
            self._nft.run("\n".join(lines))

    def _lines(self, verb: str, keys: Sequence[Key], ports: Mapping[Key, str]) -> Iterable[str]:
        for at, port in enumerate(self._ports):
            chosen = ", ".join(f"{ip} . {sport}" for ip, sport in keys if ports[ip, sport] == port)
            if chosen:
                yield f"{verb} element netdev {self._table} port{at} {{ {chosen} }}"


def check() -> None:
    """Raise MachineError, with a remedy, when this kernel cannot bind queue pairs.

    Needs the right to create network namespaces.
    """
    check_egress("no queue affinity", "nic: {port_selection: hash}", "ipv4_addr . inet_service", "ip daddr . udp sport")


def table(name: str, ports: Sequence[str]) -> str:
    """Return the table for these member ports, with empty sets. Pure."""
    sets = "".join(f"set port{at} {{ type ipv4_addr . inet_service; }}\n" for at in range(len(ports)))
    chains = "".join(
        f'chain p{at} {{ type filter hook egress device "{port}" priority {BEFORE_ALL};\n'
        + "".join(
            f'ip daddr . udp sport @port{ports.index(end)} fwd to "{end}"\n'
            for start, end in pairs(ports)
            if start == port
        )
        + "}\n"
        for at, port in enumerate(ports)
    )
    return f"table netdev {name} {{\n{sets}{chains}}}\n"


def elements(listed: str) -> Mapping[str, Sequence[Key]]:
    """Parse nft's listing of a table: the elements of each non-empty set."""
    sets = re.findall(r"set (\w+) \{[^{}]*elements = \{([^}]*)\}", listed)
    found = {name: re.findall(r"(\d+\.\d+\.\d+\.\d+) \. (\d+)", within) for name, within in sets}
    return {name: [(ip, int(sport)) for ip, sport in each] for name, each in found.items()}
