"""Options of a port's buffer that faults change: hosts' ports that stop their neighbour, quanta of a slowed port.

The fault stands in the discipline itself (testbed/vm/sch_mmu.c), which sends XOFF before each pause ends. A quantum is
512 bit times of the port's present rate (IEEE 802.3 annex 31B), so at a quarter of the rate pauses are four times as
long. Headroom stays, which is more than a slower link needs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace

from hpn.testbed.fabric.buffers import port_options, quantum_ns
from hpn.testbed.fabric.model import Fabric, Link, Port
from hpn.testbed.kernel.rtnetlink.mmu import Stuck, add_mmu
from hpn.testbed.kernel.rtnetlink.netlink import Netlink

_PERIOD_QUANTA = 10_000
"""From one pause of a slow receiver to the next: 5 Mbit, or 26 us at 200 Gbit/s."""


class StuckPorts:
    """Priorities that are stuck at the lower ends of links, and shares of rates. OSError when the kernel refuses."""

    def __init__(self, fabric: Fabric, requests: Callable[[str], Netlink]) -> None:
        """Create them; ``requests`` returns a node's netlink socket."""
        self._fabric = fabric
        self._requests = requests
        self._stuck: dict[Link, dict[Hashable, tuple[int, float]]] = {}
        self._shares: dict[Port, float] = {}

    def put(self, key: Hashable, link: Link, priority: int, share: float = 1.0) -> None:
        """Have the lower end of ``link`` stop ``priority`` for that share of the time until ``key`` is lifted.

        Of several shares at one port the largest counts.
        """
        self._stuck.setdefault(link, {})[key] = priority, share
        self._apply(link, link.lower)

    def lift(self, key: Hashable) -> None:
        """Remove everything under ``key``; priorities that no other key holds get XON at once."""
        for link in [link for link, by in self._stuck.items() if key in by]:
            del self._stuck[link][key]
            self._apply(link, link.lower)

    def at_share(self, link: Link, port: Port, share: float) -> None:
        """Count pauses at ``port`` in quanta of this share of its rate; of a fabric without ``switch:`` do nothing."""
        if self._fabric.spec.switch is not None and self._shares.get(port, 1.0) != share:
            self._shares[port] = share
            self._apply(link, port)

    def _apply(self, link: Link, port: Port) -> None:
        rate_bps = round(link.rate_bps * self._shares.get(port, 1.0))
        options = replace(
            port_options(self._fabric, port.node, link.rate_bps),
            quantum_ns=quantum_ns(rate_bps),
            rate_kbps=rate_bps // 1000,
            stuck=self._stuck_at(link) if port == link.lower else Stuck(),
        )
        self._requests(port.node).run([add_mmu(port.ifindex, options)])

    def _stuck_at(self, link: Link) -> Stuck:
        bits, most = 0, 0.0
        for priority, share in self._stuck.get(link, {}).values():
            bits |= 1 << priority
            most = max(most, share)
        return Stuck(bits) if most in {0.0, 1.0} else Stuck(bits, round(most * _PERIOD_QUANTA), _PERIOD_QUANTA)
