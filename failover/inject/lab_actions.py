"""Fault actions of a running lab: the implementation of ``failover.faults.actions``, each with its inverse.

Loss and corruption are applied where frames arrive, delay and rate where they leave.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from hpn.failover.faults.actions import Action, LinkEnd, LostFrames
from hpn.failover.faults.streams import Direction
from hpn.testbed.fabric.model import Fabric, Link, Port
from hpn.testbed.lab.breaking.breakage import Breakage
from hpn.testbed.lab.breaking.impair import Corrupt, Delay, Drop, Impairments, Slow, Traffic
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

    @classmethod
    def of(cls, lab: Lab) -> LabActions:
        """Return the fault actions of a lab."""
        return cls(lab.fabric, lab.breakage, lab.stacks, lab.impairments)

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

    def corrupt(self, key: Hashable, link: Link, share: float) -> Action:
        """Corrupt a share of the RoCE data packets; see ``FaultActions``."""
        return self._on_arrival(key, link, (link.lower, link.upper), Corrupt(share, _CORRUPTED_BYTE))

    def delay(self, key: Hashable, link: Link, delay_ns: int, jitter_ns: int) -> Action:
        """Delay every frame; see ``FaultActions``."""
        return self._on_departure(key, link, Delay(delay_ns, jitter_ns))

    def stick(self, key: Hashable, links: Sequence[Link], priority: int, share: float) -> Action:
        """Have the host's ends send XOFF; see ``FaultActions``."""

        def do() -> None:
            for link in links:
                self.impairments.stick(key, link, priority, share)

        return Action(do, lambda: self.impairments.lift(key))

    def slow(self, key: Hashable, link: Link, share: float) -> Action:
        """Reduce a link's rate; see ``FaultActions``."""
        return self._on_departure(key, link, Slow(share))

    def _on_arrival(self, key: Hashable, link: Link, ports: Iterable[Port], what: Drop | Corrupt) -> Action:
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


def _arrives_at(link: Link, direction: Direction) -> Port:
    return link.upper if direction is Direction.UP else link.lower


def _soon(undo: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    """Return an asynchronous form of an undo that does not wait."""

    async def undone() -> None:
        undo()

    return undone
