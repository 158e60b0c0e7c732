"""Ports of hosts that stop their neighbour all the time: a bit of the options of the port's buffer.

The fault stands in the discipline itself (testbed/vm/sch_mmu.c), which sends XOFF before each pause ends.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace

from hpn.testbed.fabric.buffers import port_options
from hpn.testbed.fabric.model import Fabric, Link
from hpn.testbed.kernel.rtnetlink.mmu import Stuck, add_mmu
from hpn.testbed.kernel.rtnetlink.netlink import Netlink

_PERIOD_QUANTA = 10_000
"""From one pause of a slow receiver to the next: 5 Mbit, or 26 us at 200 Gbit/s."""


class StuckPorts:
    """Priorities that are stuck at the lower ends of links. OSError when the kernel refuses one."""

    def __init__(self, fabric: Fabric, requests: Callable[[str], Netlink]) -> None:
        """Create them; ``requests`` returns a node's netlink socket."""
        self._fabric = fabric
        self._requests = requests
        self._stuck: dict[Link, dict[Hashable, tuple[int, float]]] = {}

    def put(self, key: Hashable, link: Link, priority: int, share: float = 1.0) -> None:
        """Have the lower end of ``link`` stop ``priority`` for that share of the time until ``key`` is lifted.

        Of several shares at one port the largest counts.
        """
        self._stuck.setdefault(link, {})[key] = priority, share
        self._apply(link)

    def lift(self, key: Hashable) -> None:
        """Remove everything under ``key``; priorities that no other key holds get XON at once."""
        for link in [link for link, by in self._stuck.items() if key in by]:
            del self._stuck[link][key]
            self._apply(link)

    def _apply(self, link: Link) -> None:
        bits, most = 0, 0.0
        for priority, share in self._stuck[link].values():
            bits |= 1 << priority
            most = max(most, share)
        stuck = Stuck(bits) if most in {0.0, 1.0} else Stuck(bits, round(most * _PERIOD_QUANTA), _PERIOD_QUANTA)
        options = port_options(self._fabric, link.lower.node, link.rate_bps)
        self._requests(link.lower.node).run([add_mmu(link.lower.ifindex, replace(options, stuck=stuck))])
