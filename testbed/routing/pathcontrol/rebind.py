"""Path control by the adapter's own verb, pure: queue pairs are bound to a port that reaches their destination.

With queue affinity a queue pair's port is one of its attributes (mlx5: ``lag_tx_port_affinity``). A modify in RTS
changes it, which takes no time here. That the NIC itself lost a port is the adapter's concern, which moves queue pairs
by itself; this agent expects it to.
"""

from __future__ import annotations

from collections.abc import Sequence

from hpn.testbed.routing.pathcontrol.actions import Action, Rebind
from hpn.testbed.routing.pathcontrol.destinations import Choice, Destinations
from hpn.testbed.routing.pathcontrol.host_agent import Connection, QueuePairAgent, port_instead


class RebindAgent(QueuePairAgent):
    """Agent of one NIC; a connection that is bound to no port is left alone."""

    def __init__(self, ports: Sequence[str], destinations: Destinations) -> None:
        """Start without connections; ``ports`` are the member ports in LAG order."""
        super().__init__(destinations)
        self._ports = tuple(ports)
        self._bound: dict[int, str] = {}  # by connection

    def bound_to(self, connection: int) -> str:
        """Return the port that a connection is bound to now."""
        return self._bound[connection]

    def _came(self, connection: Connection) -> None:
        if connection.bound_to is not None:
            self._bound[connection.id] = connection.bound_to

    def _went(self, connection: int) -> None:
        self._bound.pop(connection, None)

    def _settle(self, connection: Connection, choice: Choice) -> list[Action]:
        home, now = connection.bound_to, self._bound.get(connection.id)
        if home is None or now is None:
            return []
        port = self._choose(home, now, choice)
        if port == now:
            return []
        self._bound[connection.id] = port
        return [Rebind(connection.id, connection.dst_ip, now, port)]

    def _choose(self, home: str, now: str, choice: Choice) -> str:
        """Return the home port if good, else the present one if usable, else a good one, else any usable one."""
        if self._used(home) in choice.good:
            return home
        if not choice.usable or self._used(now) in choice.usable:
            return now
        return next(port for port in self._ports if port in choice.best)

    def _used(self, port: str) -> str:
        return port_instead(port, self._ports, self._destinations.active)
