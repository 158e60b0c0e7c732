"""Both reactions of path control at one NIC, pure: queue pairs get other source ports, the LAG steers the rest."""

from __future__ import annotations

from collections.abc import Iterable

from hpn.testbed.routing.pathcontrol.actions import Action
from hpn.testbed.routing.pathcontrol.destinations import Destinations, Follower, Update
from hpn.testbed.routing.pathcontrol.host_agent import Connection, HostAgent
from hpn.testbed.routing.pathcontrol.steering import SteeringAgent


class MoveAndSteer(Follower):
    """One NIC: both agents on the same ``destinations``, so that every ToR gets one request.

    Steering comes first, in one step for all traffic to a lost destination. A queue pair that has moved is not
    steered: its LAG port is a good one.
    """

    def __init__(self, destinations: Destinations, mover: HostAgent, steerer: SteeringAgent) -> None:
        super().__init__(destinations)
        self._mover = mover
        self._steerer = steerer

    @property
    def deadline_ns(self) -> int | None:
        """Next time for ``on_timer``; None for never."""
        return self._mover.deadline_ns

    def add(self, connections: Iterable[Connection], now_ns: int) -> list[Action]:
        """Add queue pairs."""
        return self._mover.add(connections, now_ns)

    def remove(self, connections: Iterable[int]) -> None:
        """Remove finished queue pairs."""
        self._mover.remove(connections)

    def look_at_all(self, now_ns: int) -> list[Action]:
        """Examine every destination, and place every connection again."""
        return [*self._steerer.look_at_all(now_ns), *self._mover.look_at_all(now_ns)]

    def follow(self, update: Update, now_ns: int) -> list[Action]:
        """Steer, then place."""
        return [*self._steerer.follow(update, now_ns), *self._mover.follow(update, now_ns)]
