"""Paths of one queue pair as its sender sees them: their states, whose turn it is, and probes. PURE.

    good --mark, trimmed packet--> skipped --time--> good
    good, skipped --loss--> denied --answered probe--> good
    good, skipped --enough denied paths of a silent port--> assumed bad --any answered probe of that port--> good

Paths are numbered from 0. Each leaves its NIC by one port; a port of the NIC is a plane where planes are apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hpn.traffic.multipath.denials import MOST_DENIALS, Denial, Loss
from hpn.traffic.multipath.settings import Multipath
from hpn.traffic.multipath.states import ASSUMED_BAD, DENIED, GOOD, SKIPPED, PathState


@dataclass(frozen=True, slots=True)
class PathCounters:
    """Counters of a queue pair's paths. ``packets``: data sent, by the state of its path at that time."""

    packets: dict[str, int]
    skips: int
    denials: int
    assumed: int
    probes: int
    answers: int
    good: int  # paths that are good now


class Paths:
    """States of paths; ``ports``: the port of its NIC that each leaves by."""

    def __init__(self, settings: Multipath, ports: Sequence[int]) -> None:
        self._settings = settings
        self._ports = list(ports)
        self._states = [GOOD] * len(ports)
        self._losses = [0] * len(ports)  # since the last arrival
        self._losing: dict[int, Loss] = {}  # paths with losses since the last arrival, each with the first
        self._denials: list[Denial] = []
        self._until_ns: dict[int, int] = {}  # skipped paths: until when
        self._silent: Counter[int] = Counter()  # by port: paths denied since anything came back from it
        self._turns: Counter[int] = Counter()  # by port: whose turn it is among those that carry
        self._probe_turns: Counter[int] = Counter()
        self._probe_ns: int | None = None  # when the next probes are due; None: no path is probed
        self._packets: Counter[str] = Counter()
        self._events: Counter[str] = Counter()
        self._arrange()

    def move(self, ports: Sequence[int]) -> None:
        """Note that paths leave by these ports from now on; their states stay."""
        self._ports = list(ports)
        self._silent.clear()
        self._arrange()

    def state(self, path: int) -> PathState:
        """Return the state of a path."""
        return self._states[path]

    def port(self, path: int) -> int:
        """Return the port that a path leaves by."""
        return self._ports[path]

    def carries(self, port: int) -> bool:
        """Return True if data may leave by that port now."""
        return port in self._carrying

    @property
    def carrying_ports(self) -> int:
        """Number of ports that data may leave by now."""
        return len(self._carrying)

    @property
    def trusted_ports(self) -> frozenset[int]:
        """Ports that data may leave by now and that no path was denied of since something came back from them."""
        return frozenset(port for port in self._carrying if not self._silent[port])

    @property
    def troubled(self) -> bool:
        """True if a path has lost a packet since its last arrival, or is not good."""
        return bool(self._losing or self._not_good)

    @property
    def counters(self) -> PathCounters:
        """Counters so far."""
        of = self._events
        good = sum(state is GOOD for state in self._states)
        return PathCounters(
            dict(self._packets), of["skips"], of["denials"], of["assumed"], of["probes"], of["answers"], good
        )

    @property
    def denials(self) -> Sequence[Denial]:
        """Denials so far, the first ``MOST_DENIALS`` of them."""
        return self._denials

    def take(self, port: int, count: int) -> list[int]:
        """Return the paths of the next ``count`` packets that leave by ``port``, each after the other."""
        carrying = self._carrying[port]
        at = self._turns[port] % len(carrying)
        self._turns[port] = at + count
        self._packets[self._carries_in.name] += count
        taken = carrying[at : at + count]
        while len(taken) < count:
            taken += carrying[: count - len(taken)]
        return taken

    def on_marked(self, path: int, now_ns: int) -> None:
        """Handle a congestion mark on a packet of that path, or a trimmed one: it is skipped for a while."""
        if self._states[path].probed:
            return
        self._events["skips"] += 1
        self._until_ns[path] = now_ns + self._settings.skip_for_ns
        self._set(path, SKIPPED)
        self._arrange()

    def on_arrived(self, paths: Iterable[int]) -> None:
        """Handle data that arrived by these paths: their ports are not dark."""
        for path in paths:
            self._losses[path] = 0
            self._losing.pop(path, None)
            self._silent.pop(self._ports[path], None)

    def on_lost(self, losses: Iterable[Loss], now_ns: int) -> None:
        """Handle lost packets, each of another path."""
        for loss in losses:
            path = loss.path
            self._losses[path] += 1
            self._losing.setdefault(path, loss)
            if self._losses[path] >= self._settings.deny_after and not self._states[path].probed:
                self._deny(path, now_ns)
        self._arrange()
        if not self._carrying and self._probe_ns is not None:
            self._probe_ns = now_ns  # nothing else can be done

    def on_answered(self, path: int) -> None:
        """Handle the answer to a probe: the path is good, and its port is not dark."""
        port = self._ports[path]
        self._events["answers"] += 1
        self._silent.pop(port, None)
        for each, state in enumerate(self._states):
            if each == path or (state is ASSUMED_BAD and self._ports[each] == port):
                self._losses[each] = 0
                self._losing.pop(each, None)
                if state.probed:
                    self._set(each, GOOD)
        self._arrange()

    def next_ns(self) -> int | None:
        """Return when ``on_timer`` is due; None: no path waits for anything."""
        due = [*self._until_ns.values()]
        if self._probe_ns is not None:
            due.append(self._probe_ns)
        return min(due, default=None)

    def on_timer(self, now_ns: int) -> list[int]:
        """Advance time: end skips that are over, and return the paths to probe now."""
        over = [path for path, until_ns in self._until_ns.items() if until_ns <= now_ns]
        for path in over:
            self._set(path, GOOD)
        if over:
            self._arrange()
        if self._probe_ns is None or now_ns < self._probe_ns:
            return []
        self._probe_ns = now_ns + self._settings.probe_interval_ns
        probes = [path for port in sorted({*self._ports}) for path in self._to_probe(port)]
        self._events["probes"] += len(probes)
        return probes

    def _to_probe(self, port: int) -> list[int]:
        """Return those whose turn it is among the probed paths of a port."""
        probed = [path for path, state in enumerate(self._states) if state.probed and self._ports[path] == port]
        count = min(len(probed), self._settings.probes_at_once)
        if not count:
            return []
        at = self._probe_turns[port] % len(probed)
        self._probe_turns[port] = at + count
        return (probed + probed)[at : at + count]

    def _deny(self, path: int, now_ns: int) -> None:
        port, first = self._ports[path], self._losing[path]
        self._events["denials"] += 1
        if len(self._denials) < MOST_DENIALS:
            self._denials.append(Denial(port, first.sent_ns, now_ns, first.rtt_ns))
        self._set(path, DENIED)
        if self._probe_ns is None:
            self._probe_ns = now_ns + self._settings.probe_interval_ns
        self._silent[port] += 1
        if self._silent[port] >= self._settings.dark_after:
            for each, state in enumerate(self._states):
                if self._ports[each] == port and not state.probed:
                    self._events["assumed"] += 1
                    self._set(each, ASSUMED_BAD)

    def _set(self, path: int, state: PathState) -> None:
        self._states[path] = state
        if state is not SKIPPED:
            self._until_ns.pop(path, None)

    def _arrange(self) -> None:
        """Work out which paths carry, by port: the good ones; if there are none at all, the skipped ones."""
        for wanted in (GOOD, SKIPPED):
            self._carrying: dict[int, list[int]] = {}
            self._carries_in = wanted
            for path, state in enumerate(self._states):
                if state is wanted:
                    self._carrying.setdefault(self._ports[path], []).append(path)
            if self._carrying:
                break
        self._not_good = len(self._states) - sum(state is GOOD for state in self._states)
        if not any(state.probed for state in self._states):
            self._probe_ns = None
