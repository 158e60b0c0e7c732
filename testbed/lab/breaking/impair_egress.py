"""Impairments of departing frames: a lower rate, more delay. They change the port's own shaper, and restore it.

The rate is the token bucket's own. The delay is netem, as the bucket's inner queue, if the kernel has it: a port with
delay does not mark meanwhile. Messages: rtnetlink(7), pkt_sched.h.
"""

from __future__ import annotations

import asyncio
import math
import struct
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from hpn.testbed.fabric.model import Fabric, Link, Port
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.netlink import Netlink, refusal
from hpn.testbed.kernel.rtnetlink.red import INSIDE_THE_BUCKET, LOOPBACK, ROOT
from hpn.testbed.kernel.rtnetlink.rtnl import RTM_NEWQDISC
from hpn.testbed.lab.markers import MarkerKind
from hpn.testbed.lab.wire import inner_queue, queue_bytes, shaper

_NLM_F_REPLACE, _NLM_F_CREATE = 0x100, 0x400
_KIND, _OPTIONS = 1, 2  # TCA_*
_LATENCY64, _JITTER64 = 10, 11  # TCA_NETEM_*, nanoseconds
_SMALLEST_FRAME = 60


@dataclass(frozen=True, slots=True)
class Slow:
    """Send at a share of the port's rate; its queue keeps its size in bytes."""

    share: float


@dataclass(frozen=True, slots=True)
class Delay:
    """Delay every frame by ``delay_ns``, plus or minus up to ``jitter_ns``, independently: jitter may reorder."""

    delay_ns: int
    jitter_ns: int = 0


class EgressShapers:
    """Impairments of every port's shaper. OSError when the kernel refuses one."""

    def __init__(
        self,
        fabric: Fabric,
        requests: Callable[[str], Netlink],
        marking: MarkerKind | None = None,
        on_share: Callable[[Link, Port, float], None] = lambda _link, _port, _share: None,
    ) -> None:
        """Create them; ``requests`` returns a node's netlink socket, ``marking`` is its switches' marker.

        ``on_share`` is called with the share of its rate that a port has then.
        """
        self._fabric = fabric
        self._on_share = on_share
        self._marking = marking
        self._requests = requests
        self._done: dict[tuple[Link, Port], dict[Hashable, Slow | Delay]] = {}
        self._delayed: set[Port] = set()  # netem is the inner queue

    def put(self, key: Hashable, link: Link, port: Port, what: Slow | Delay) -> None:
        """Impair departing traffic at ``port``, an end of ``link``, until ``key`` is lifted."""
        self._done.setdefault((link, port), {})[key] = what
        if isinstance(what, Delay):
            self._delayed.add(port)
        self._apply(link, port)

    async def lift(self, key: Hashable) -> None:
        """Remove the impairments under ``key``; others stay. Delayed frames are still delivered."""
        lifted = {end: done.pop(key) for end, done in self._done.items() if key in done}
        for link, port in lifted:
            self._apply(link, port)
        held_ns = [what.delay_ns + what.jitter_ns for what in lifted.values() if isinstance(what, Delay)]
        if held_ns:
            # Replacing an inner queue loses its frames, so wait until it must be empty; no event reports that.
            await asyncio.sleep(max(held_ns) / 1e9)
        for link, port in lifted:
            if port in self._delayed and not self._delays(link, port):
                self._delayed.remove(port)
                self._requests(port.node).run(list(inner_queue(self._fabric, link, port, self._marking)))

    def _delays(self, link: Link, port: Port) -> list[Delay]:
        return [what for what in self._done[link, port].values() if isinstance(what, Delay)]

    def _apply(self, link: Link, port: Port) -> None:
        """Apply the product of all shares and the sum of all delays."""
        share = math.prod(what.share for what in self._done[link, port].values() if isinstance(what, Slow))
        requests = [shaper(self._fabric, link, port, share)]
        if port in self._delayed:
            delays = self._delays(link, port)
            total = Delay(sum(d.delay_ns for d in delays), sum(d.jitter_ns for d in delays))
            requests.append(_delaying_queue(port, total, self._room(link, total)))
        self._requests(port.node).run(requests)
        self._on_share(link, port, share)

    def _room(self, link: Link, total: Delay) -> int:
        """Return the packets that netem must hold: those in flight, at the link's rate, and those in the queue."""
        on_the_way = link.rate_bps / 8 * (total.delay_ns + total.jitter_ns) / 1e9
        return int(on_the_way + queue_bytes(self._fabric, link)) // _SMALLEST_FRAME


def _delaying_queue(port: Port, total: Delay, room: int) -> bytes:
    """Return netem inside the port's token bucket, holding at most ``room`` packets."""
    options = struct.pack("=IIIIII", 0, room, 0, 0, 0, 0)
    options += rtnl.attribute(_LATENCY64, struct.pack("=q", total.delay_ns))
    options += rtnl.attribute(_JITTER64, struct.pack("=q", total.jitter_ns))
    return _netem(port.ifindex, INSIDE_THE_BUCKET, options)


def _netem(ifindex: int, parent: int, options: bytes) -> bytes:
    body = struct.pack("=BxxxiIII", 0, ifindex, 0, parent, 0)
    body += rtnl.attribute(_KIND, b"netem\0") + rtnl.attribute(_OPTIONS, options)
    return rtnl.message(RTM_NEWQDISC, _NLM_F_CREATE | _NLM_F_REPLACE, body)


def probe(space: NetNs) -> str | None:
    """Return why this kernel cannot delay frames, None if it can; tested in ``space``."""
    return refusal(space, [_netem(LOOPBACK, ROOT, struct.pack("=IIIIII", 0, 1, 0, 0, 0, 0))])
