"""Hosts of a lab as senders of SRv6: a route for each static path, which puts packets into its carrier.

A sender names such a route by its address, and the port by the mark of its socket. The address that the packet itself
has stays. So the host's kernel does what an adapter does.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpn.testbed.kernel.rtnetlink import seg6
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.srv6_probe import srv6_of
from hpn.testbed.routing.srv6 import numbers
from hpn.testbed.routing.srv6.plan import UsidPath, port_table


@dataclass(frozen=True, slots=True)
class Carried:
    """A static path, the address whose route leads to it, and the mark of its port."""

    path: UsidPath
    via: str
    mark: int


class Carriers:
    """Routes of one lab, made when they are first asked for and there until ``close``."""

    def __init__(self, lab: Lab) -> None:
        """InputError for a lab without SRv6."""
        self._lab = lab
        self._plan = srv6_of(lab).plan
        self._made: dict[tuple[str, str], tuple[Carried, ...]] = {}
        self._used: dict[str, list[tuple[str, int]]] = {}  # by host: addresses and interfaces

    def paths(self, src: str, dst: str) -> tuple[Carried, ...]:
        """Return every path from NIC to NIC, ready for packets, port by port in turn."""
        if (src, dst) not in self._made:
            self._made[src, dst] = self._install(src, dst)
        return self._made[src, dst]

    def close(self) -> None:
        """Remove the routes."""
        for host, used in self._used.items():
            self._lab.requests(host).run([seg6.carry_no_more(via, ifindex) for via, ifindex in used])
        self._used.clear()
        self._made.clear()

    def _install(self, src: str, dst: str) -> tuple[Carried, ...]:
        source, plan = self._lab.fabric.nic(src), self._plan
        used = self._used.setdefault(source.host, [])
        by_port: list[list[UsidPath]] = [[] for _ in source.links]
        for path in plan.paths(src, dst):
            by_port[path.port].append(path)
        turns = max(map(len, by_port))
        found, requests = [], []
        for path in (paths[turn] for turn in range(turns) for paths in by_port if turn < len(paths)):
            via = numbers.way(len(used))
            used.append((via, source.lag_ifindex))
            found.append(Carried(path, via, port_table(source.links[path.port].lower)))
            requests.append(seg6.carry(via, source.lag_ifindex, path.carrier))
        self._lab.requests(source.host).run(requests)
        return tuple(found)
