"""Drills of the table network x job x fault: FIFO, PFC, DCQCN and receiver-driven, each alone or together. Pure.

One drill for each cell, so that its counters are of that fault alone. Everything that decides a figure is in this
module or in ``client_cells``. Ports have 50 Mbit/s. Every queue that drops holds 90 ms of that, 562 KB: more than a
message of Soft-RoCE, which goes to its port at once. DCQCN's times are 200 times the real ones at 1/4000 of the rate,
so its thresholds in bytes are a twentieth of the real ones (traffic/congestion/scale.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.product.client_cells import GLOO_TIMEOUT, IB_TIMEOUT, RETRIES, SCALE, SIZE

HEALTHY_S, SETTLE_S = 1, 8
QUEUE_MS, QUEUE = 90, "562 KB"
ECN = "ecn: {kmin: 15 KB, kmax: 60 KB, pmax: 0.8}"
STRETCH = 200


@dataclass(frozen=True, slots=True)
class Lossy:
    """``switch``: the keys that a topology has; ``congestion``: of the own model, '' for its default (full rate)."""

    key: str
    title: str
    queues: str
    congestion: str = ""
    jobs: tuple[str, ...] = ("own", "gloo", "rxe")


def _class(keys: str) -> str:
    return f"switch: {{buffer: 2 MB, classes: [{{priority: 3, dscp: [0, 3], weight: 15, {keys}}}]}}"


_PFC = "lossless: yes, alpha: 0.125"
_DCQCN = f"congestion: simai-200g, stretch: {STRETCH}"
FIFO = Lossy("fifo", "FIFO", f"queue_ms: {QUEUE_MS}")
PFC = Lossy("pfc", "PFC", _class(_PFC))
GRANTS = Lossy("grants", "PFC, receiver-driven", _class(_PFC), "congestion: receiver-driven", ("own",))
BOTH = Lossy("both", "PFC, DCQCN", _class(f"{_PFC}, {ECN}"), _DCQCN, ("own",))
MARKS = Lossy("marks", "DCQCN", _class(f"limit: {QUEUE}, {ECN}"), _DCQCN, ("own",))
NETWORKS = (FIFO, PFC, GRANTS, BOTH, MARKS)
"""Neither gloo nor Soft-RoCE obeys DCQCN or grants. DSCP 0 is gloo's, 3 that of RoCE: both are in the class."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """``fault`` of the timeline, without ``id`` and ``at``; '' for none: the job itself is an incast."""

    key: str
    title: str
    fault: str


CUT = Trouble("cut", "link-down 2 s", "fault: link-down, target: p0.s0.h0.r0.0, for: 2 s")
CRASH = Trouble("crash", "tor-crash 2 s", "fault: tor-crash, target: p0.s0.t0.0, for: 2 s")
LOSS = Trouble("loss", "silent-drop 1 % 4 s", "fault: silent-drop, target: p0.s0.h0.r0.0, share: 1 %, for: 4 s")
INCAST = Trouble("incast", "5:1 incast", "")
TROUBLES = (CUT, CRASH, LOSS, INCAST)

TITLES = {"own": "own model", "gloo": "gloo", "rxe": "rxe"}


@dataclass(frozen=True, slots=True)
class Trial:
    """One job in one network, and what happens to it."""

    network: Lossy
    job: str
    trouble: Trouble

    @property
    def name(self) -> str:
        """Name of the drill."""
        return f"{self.network.key}-{self.trouble.key}-{self.job}"

    @property
    def drill(self) -> str:
        """Text of the drill: it expects right sums and a restored lab only."""
        hosts = ", hosts: 3" if self.trouble is INCAST else ""
        return f"""\
drill: {self.name}
summary: {TITLES[self.job]} over {self.network.title}, {self.trouble.title}
topology: {{preset: tiny, rails: 1, scale: {SCALE}{hosts}, {self.network.queues}}}
{self._work()}
sample: {{queues: 100 ms, ports: switches}}
timeline:
{self._timeline()}
expect:
  - wrong_results: {{at_most: 0}}
  - state_restored: yes
"""

    def _timeline(self) -> str:
        if self.trouble is INCAST:
            return f"  healthy: {HEALTHY_S + SETTLE_S} s"
        fault = f"    - {{id: {self.trouble.key}, at: {HEALTHY_S} s, {self.trouble.fault}}}"
        return f"  healthy: {HEALTHY_S} s\n  faults:\n{fault}\n  settle: {SETTLE_S} s"

    def _work(self) -> str:
        work = "incast" if self.trouble is INCAST else "all-reduce"
        if self.job == "gloo":
            return f"workload:\n  client: {{run: torch, work: {work}, size: {SIZE}, timeout: {GLOO_TIMEOUT}}}"
        timer = f"ib_timeout: {IB_TIMEOUT}, retry_count: {RETRIES}"
        if self.job == "rxe":
            return f"workload:\n  client: {{run: verbs, work: {work}, size: {SIZE}, {timer}}}"
        own = f"messages: {{pattern: incast, size: {SIZE}, count: 1}}"
        if self.trouble is not INCAST:
            own = f"collective: {{kind: all-reduce, algorithm: ring, size: {SIZE}, slices: 8}}"
        more = f", {self.network.congestion}" if self.network.congestion else ""
        return f"job: {{{own}, gpus: 1, {timer}{more}}}"


def trials() -> Iterator[Trial]:
    """Yield every cell of the table, row by row."""
    for network in NETWORKS:
        for job in network.jobs:
            for trouble in TROUBLES:
                yield Trial(network, job, trouble)
