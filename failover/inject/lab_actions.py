"""Fault actions of a running lab: the implementation of ``failover.faults.actions``, each with its inverse.

Loss and corruption are applied where frames arrive, delay and rate where they leave.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from hpn.failover.faults.actions import Action, LinkEnd, LostFrames, Rise
from hpn.failover.faults.streams import Direction
from hpn.testbed.fabric.model import Fabric, Link, Port
from hpn.testbed.lab.breaking.breakage import Breakage
from hpn.testbed.lab.breaking.crossing import Crossings
from hpn.testbed.lab.breaking.impair import Arriving, Corrupt, Delay, Drop, DropBucket, Impairments, Slow, Traffic
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.stack import Stacks
from hpn.traffic.flows.framing import BTH_BYTES

_CORRUPTED_BYTE = BTH_BYTES + 100
"""Offset in the UDP payload: after every header, in every path MTU and no acknowledgement; the ICRC covers it."""


@dataclass(frozen=True, slots=True)
class LabActions:
    """Fault actions on one lab, each with its inverse: call ``do``, and await ``undo``."""

    fabric: Fabric
    breakage: Breakage
    stacks: Stacks
    impairments: Impairments
    crossings: Crossings

    @classmethod
    def of(cls, lab: Lab) -> LabActions:
        """Return the fault actions of a lab."""
        return cls(lab.fabric, lab.breakage, lab.stacks, lab.impairments, lab.crossings)

    def cut(self, ends: Sequence[LinkEnd]) -> Action:
        """Take these ports down; see ``FaultActions``."""
        by = object()  # others may hold the same ports down, even an equal fault
        self.breakage.prepare(node for _link, node in ends)
        return Action(lambda: self.breakage.ports_down(ends, by), _soon(lambda: self.breakage.ports_up(ends, by)))

    def crash(self, switches: Sequence[str]) -> Action:
        """Kill these switches; see ``FaultActions``."""
        by = object()
        self.breakage.prepare(switches)
        return Action(lambda: self.breakage.crash(switches, by), lambda: self.breakage.boot(switches, by))

    def hang(self, tor: str) -> Action:
        """Stop a ToR's control plane; see ``FaultActions``."""
        return Action(lambda: self.breakage.hang(tor), _soon(lambda: self.breakage.resume(tor)))

    def withdraw(self, tor: str) -> Action:
        """Withdraw a ToR's host routes; see ``FaultActions``."""
        return Action(lambda: self.breakage.withdraw(tor), _soon(lambda: self.breakage.announce(tor)))

    def leave(self, tor: str) -> Action:
        """Signal out of Synchronization by LACP; see ``FaultActions``."""
        return Action(lambda: self.breakage.leave(tor), _soon(lambda: self.breakage.rejoin(tor)))

    def stop_forwarding(self, switch: str) -> Action:
        """Stop a switch's forwarding; see ``FaultActions``."""
        self.breakage.prepare_forwarding(switch)
        return Action(
            lambda: self.breakage.stop_forwarding(switch), _soon(lambda: self.breakage.start_forwarding(switch))
        )

    def reload(self, tor: str, version: str, for_ns: int) -> Action:
        """Boot a ToR with another version; see ``FaultActions``."""
        self.breakage.prepare([tor])
        return Action(lambda: self.stacks.reload(tor, version, for_ns), lambda: self.stacks.restore(tor))

    def reset_session(self, link: Link) -> Action:
        """Reset a BGP session; see ``FaultActions``."""
        return Action(lambda: self.breakage.reset_session(link), _soon(lambda: None))

    def lose(
        self, key: Hashable, link: Link, going: Iterable[Direction], what: LostFrames, share: float = 1.0
    ) -> Action:
        """Drop a share of the frames; see ``FaultActions``."""
        ports = tuple(_arrives_at(link, direction) for direction in going)
        return self._on_arrival(key, link, ports, Drop(Traffic(what.value), share))

    def lose_bucket(self, key: Hashable, link: Link, going: Iterable[Direction], buckets: int, bucket: int) -> Action:
        """Drop the flows of one hash bucket; see ``FaultActions``."""
        ports = tuple(_arrives_at(link, direction) for direction in going)
        return self._on_arrival(key, link, ports, DropBucket(buckets, bucket, link.upper.ifindex))

    def corrupt(self, key: Hashable, link: Link, share: float) -> Action:
        """Corrupt a share of the RoCE data packets; see ``FaultActions``."""
        return self._on_arrival(key, link, (link.lower, link.upper), Corrupt(share, _CORRUPTED_BYTE))

    def decay(self, key: Hashable, link: Link, rises: Sequence[Rise], *, corrupts: bool) -> Action:
        """Drop or corrupt a changing share; see ``FaultActions``."""
        ports = (link.lower, link.upper)
        self.impairments.open(port.node for port in ports)
        waiting: list[asyncio.TimerHandle] = []

        def rise(share: float) -> None:
            for port in ports:
                what = Corrupt(share, _CORRUPTED_BYTE) if corrupts else Drop(Traffic.EVERYTHING, share)
                self.impairments.on_arrival(key, port, what)

        def do() -> None:
            loop = asyncio.get_running_loop()
            began_s = loop.time()
            waiting.extend(loop.call_at(began_s + each.after_ns / 1e9, rise, each.share) for each in rises)

        async def undo() -> None:
            for each in waiting:
                each.cancel()
            await self.impairments.lift(key)

        return Action(do, undo)

    def delay(self, key: Hashable, link: Link, delay_ns: int, jitter_ns: int) -> Action:
        """Delay every frame; see ``FaultActions``."""
        return self._on_departure(key, link, Delay(delay_ns, jitter_ns))

    def stick(self, key: Hashable, links: Sequence[Link], priority: int, share: float) -> Action:
        """Have the host's ends send XOFF; see ``FaultActions``."""

        def do() -> None:
            for link in links:
                self.impairments.stick(key, link, priority, share)

        return Action(do, lambda: self.impairments.lift(key))

    def swap(self, one: Link, other: Link, unplugged_ns: int) -> Action:
        """Exchange the upper ends of two links; see ``FaultActions``."""
        by = object()
        self.crossings.prepare(one, other)
        hand = _Hand(self.breakage, [(link, link.lower.node) for link in (one, other)], by, unplugged_ns / 1e9)

        def do() -> None:
            hand.pull()
            self.crossings.cross(one, other)
            hand.plug_later()

        def undo() -> None:
            hand.pull()
            self.crossings.uncross(one, other)
            hand.plug_later()

        return Action(do, _soon(undo))

    def slow(self, key: Hashable, link: Link, share: float) -> Action:
        """Reduce a link's rate; see ``FaultActions``."""
        return self._on_departure(key, link, Slow(share))

    def _on_arrival(self, key: Hashable, link: Link, ports: Iterable[Port], what: Arriving) -> Action:
        self.impairments.open((link.lower.node, link.upper.node))

        def do() -> None:
            for port in ports:
                self.impairments.on_arrival(key, port, what)

        return Action(do, lambda: self.impairments.lift(key))

    def _on_departure(self, key: Hashable, link: Link, what: Delay | Slow) -> Action:
        def do() -> None:
            for port in (link.lower, link.upper):
                self.impairments.on_departure(key, link, port, what)

        return Action(do, lambda: self.impairments.lift(key))


class _Hand:
    """Pulls cables, and plugs them in again after ``unplugged_s``."""

    def __init__(self, breakage: Breakage, ends: Sequence[LinkEnd], by: Hashable, unplugged_s: float) -> None:
        self._breakage = breakage
        self._ends = ends
        self._by = by
        self._unplugged_s = unplugged_s
        self._plugging: asyncio.TimerHandle | None = None

    def pull(self) -> None:
        """Take the ports down, also if they are about to come up."""
        if self._plugging is not None:
            self._plugging.cancel()
        self._breakage.ports_down(self._ends, self._by)

    def plug_later(self) -> None:
        """Bring the ports up after the time."""
        loop = asyncio.get_running_loop()
        self._plugging = loop.call_later(self._unplugged_s, self._breakage.ports_up, self._ends, self._by)


def _arrives_at(link: Link, direction: Direction) -> Port:
    return link.upper if direction is Direction.UP else link.lower


def _soon(undo: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    """Return an asynchronous form of an undo that does not wait."""

    async def undone() -> None:
        undo()

    return undone
