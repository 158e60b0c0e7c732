"""Both ways of path control at one NIC, pure: queue pairs get other source ports, the LAG steers all the rest."""

from __future__ import annotations

from collections.abc import Iterable

from testbed.routing.pathcontrol.actions import Action
from testbed.routing.pathcontrol.destinations import Destinations, Update
from testbed.routing.pathcontrol.host_agent import Connection, HostAgent
from testbed.routing.pathcontrol.steering import SteeringAgent


class MoveAndSteer:
    """One NIC: both agents on the same ``destinations``, so that every ToR is asked once.

    Steering comes first, in one stroke for all that is sent to a lost destination. A queue pair that has moved is not
    steered: its LAG port is a good one.
    """

    def __init__(self, destinations: Destinations, mover: HostAgent, steerer: SteeringAgent) -> None:
        self._destinations = destinations
        self._mover = mover
        self._steerer = steerer

    @property
    def deadline_ns(self) -> int | None:
        """When ``on_timer`` wants to be called; None for never."""
        return self._mover.deadline_ns

    def add(self, connections: Iterable[Connection], now_ns: int) -> list[Action]:
        """New queue pairs."""
        return self._mover.add(connections, now_ns)

    def remove(self, connections: Iterable[int]) -> None:
        """Queue pairs that are done."""
        self._mover.remove(connections)

    def set_active(self, ports: Iterable[str], now_ns: int) -> list[Action]:
        """The LAG's collecting and distributing ports changed."""
        asks = self._destinations.set_active(ports, now_ns)
        return [*asks, *self._steerer.look_at_all(now_ns), *self._mover.place_all(now_ns)]

    def on_frame(self, port: str, payload: bytes, now_ns: int) -> list[Action]:
        """A frame from the ToR behind ``port``."""
        heard = self._destinations.on_frame(port, payload, now_ns)
        return [] if heard is None else self._follow(heard, now_ns)

    def on_timer(self, now_ns: int) -> list[Action]:
        """The deadline has passed."""
        return self._follow(self._destinations.on_timer(now_ns), now_ns)

    def _follow(self, update: Update, now_ns: int) -> list[Action]:
        steered, moved = self._steerer.follow(update, now_ns), self._mover.follow(update, now_ns)
        return [*update.actions, *steered, *moved]
