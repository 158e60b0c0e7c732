"""The LAG steers by destination, pure: what a port cannot deliver leaves by another, whoever sent it.

Nobody tells the agent of flows. It asks the ToRs which destinations there are, asks each about all of them, and where
one port is worse for a destination than another it has everything for that destination leave by the better one:
TCP, plain UDP and Soft-RoCE as well as queue pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from socket import inet_aton

from hpn.testbed.routing.pathcontrol.actions import Action, Send, Steer
from hpn.testbed.routing.pathcontrol.destinations import Destinations, Follower, Update
from hpn.testbed.routing.pathcontrol.message import EVERYTHING

ALSO = (EVERYTHING,)
"""What ``Destinations`` have to ask besides, so that the ToRs tell what there is."""

MAX_NAMES = 4096
"""Destinations of one NIC: as many as a ToR lets one port ask about. More are not steered."""

FORGET_NS = 60_000_000_000
"""A destination that no port has reached for so long is forgotten; a ToR that has it tells of it again."""

_LOOKS_A_FORGET = 4


class SteeringAgent(Follower):
    """One NIC. A destination is steered off a port only to a port that is better, so no packet goes in a circle."""

    def __init__(self, ip: str, ports: Sequence[str], destinations: Destinations) -> None:
        """``ip`` is the NIC's own; ``destinations`` ask about ``ALSO``."""
        self._ip = ip
        self._ports = tuple(ports)
        super().__init__(destinations)
        self._had_ns: dict[str, int] = {}  # destination: when a port could last reach it
        self._steered: dict[str, Mapping[str, str]] = {}  # destination: from port to port
        self._forget_ns = 0

    @property
    def state_size(self) -> int:
        """Words, records of losses, and destinations in memory."""
        return self._destinations.size + len(self._had_ns)

    @property
    def steered(self) -> Mapping[str, Mapping[str, str]]:
        """Destination to what is steered: from which port to which."""
        return self._steered

    def add(self, connections: Iterable[object], now_ns: int) -> list[Action]:
        """Queue pairs are traffic as any other."""
        return []

    def remove(self, connections: Iterable[int]) -> None:
        """Nothing to do."""

    def look_at_all(self, now_ns: int) -> list[Action]:
        """Look at every destination anew."""
        self._destinations.begin(now_ns)
        return [*self._look(self._had_ns, now_ns)]

    def follow(self, update: Update, now_ns: int) -> list[Action]:
        """Learn the destinations that an update names, and look at those that it concerns."""
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
        """From each active port that is worse than another to one of the best ones, by the address when several are."""
        best = self._destinations.choice(ip, now_ns).best
        active = self._destinations.active
        if not best or len(best) == len(active):
            return {}
        targets = [port for port in active if port in best]
        target = targets[int.from_bytes(inet_aton(ip), "big") % len(targets)]
        return {port: target for port in active if port not in best}

    def _forget(self, now_ns: int) -> None:
        """Now and then note what can be reached, and give up what could not be for long; nothing of it is steered."""
        if now_ns < self._forget_ns:
            return
        self._forget_ns = now_ns + FORGET_NS // _LOOKS_A_FORGET
        for ip, had_ns in list(self._had_ns.items()):
            if self._destinations.choice(ip, now_ns).usable:
                self._had_ns[ip] = now_ns
            elif now_ns - had_ns >= FORGET_NS:
                del self._had_ns[ip]
                self._destinations.give_up(ip)
