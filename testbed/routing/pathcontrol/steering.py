"""LAG steering by destination, pure: packets to a destination that a port lost leave by another port.

The agent knows no flows. It requests the list of destinations from the ToRs, and reports on all of them from each. If
one port is worse for a destination than another, all its traffic leaves by the better one: TCP, plain UDP and Soft-RoCE
as well as queue pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from socket import inet_aton

from hpn.testbed.routing.pathcontrol.actions import Action, Send, Steer
from hpn.testbed.routing.pathcontrol.destinations import Destinations, Follower, Update
from hpn.testbed.routing.pathcontrol.message import EVERYTHING

ALSO = (EVERYTHING,)
"""Extra requests for ``Destinations``, so that the ToRs report all that exist."""

MAX_NAMES = 4096
"""Maximum of destinations of one NIC, equal to a ToR's limit per port. Further ones are not steered."""

FORGET_NS = 60_000_000_000
"""A destination unreachable by all ports for this time is forgotten; a ToR that has it reports it again."""

_LOOKS_A_FORGET = 4


class SteeringAgent(Follower):
    """Agent of one NIC. It steers a destination only to a better port, so no packet goes in a circle."""

    def __init__(self, ip: str, ports: Sequence[str], destinations: Destinations) -> None:
        """Start without destinations; ``ip`` is the NIC's own, ``destinations`` must request ``ALSO``."""
        self._ip = ip
        self._ports = tuple(ports)
        super().__init__(destinations)
        self._had_ns: dict[str, int] = {}  # destination: time at which a port could last reach it
        self._steered: dict[str, Mapping[str, str]] = {}  # destination: from port to port
        self._forget_ns = 0

    @property
    def state_size(self) -> int:
        """Number of reports, loss records and destinations in memory."""
        return self._destinations.size + len(self._had_ns)

    @property
    def steered(self) -> Mapping[str, Mapping[str, str]]:
        """Steering by destination: from which port to which."""
        return self._steered

    def add(self, connections: Iterable[object], now_ns: int) -> list[Action]:
        """Return no actions: queue pairs are treated as any other traffic."""
        return []

    def remove(self, connections: Iterable[int]) -> None:
        """Do nothing."""

    def look_at_all(self, now_ns: int) -> list[Action]:
        """Examine every destination again."""
        self._destinations.begin(now_ns)
        return [*self._look(self._had_ns, now_ns)]

    def follow(self, update: Update, now_ns: int) -> list[Action]:
        """Add the destinations of an update, and examine those that it concerns."""
        new = [ip for ip in update.there if ip not in self._had_ns and ip != self._ip]
        new = new[: max(0, MAX_NAMES - len(self._had_ns))]
        asks: list[Send] = self._destinations.care_for(new, now_ns)
        self._had_ns.update(dict.fromkeys(new, now_ns))
        self._forget(now_ns)
        concerned = self._had_ns if update.doubts_ended else dict.fromkeys((*update.touched, *new))
        return [*asks, *self._look(concerned, now_ns)]

    def _look(self, ips: Iterable[str], now_ns: int) -> list[Steer]:
        changes = []
        for ip in [ip for ip in ips if ip in self._had_ns]:
            wanted, now = self._wanted(ip, now_ns), self._steered.pop(ip, {})
            if wanted:
                self._steered[ip] = wanted
            for port in self._ports:
                if wanted.get(port) != now.get(port):
                    changes.append(Steer(ip, port, wanted.get(port)))
        return changes

    def _wanted(self, ip: str, now_ns: int) -> Mapping[str, str]:
        """Return for each active port outside the best ones one of those, selected by address if there are several."""
        best = self._destinations.choice(ip, now_ns).best
        active = self._destinations.active
        if not best or len(best) == len(active):
            return {}
        targets = [port for port in active if port in best]
        target = targets[int.from_bytes(inet_aton(ip), "big") % len(targets)]
        return {port: target for port in active if port not in best}

    def _forget(self, now_ns: int) -> None:
        """Periodically record reachable destinations, and drop those long unreachable; none of them is steered."""
        if now_ns < self._forget_ns:
            return
        self._forget_ns = now_ns + FORGET_NS // _LOOKS_A_FORGET
        for ip, had_ns in list(self._had_ns.items()):
            if self._destinations.choice(ip, now_ns).usable:
                self._had_ns[ip] = now_ns
            elif now_ns - had_ns >= FORGET_NS:
                del self._had_ns[ip]
                self._destinations.give_up(ip)
