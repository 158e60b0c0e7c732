"""The drills of the table own model / gloo / rxe: one for each network and job, with all faults in turn. PURE.

Everything that decides a figure of the table is in this module: change it, and the runs are made again.
All jobs sum as many bytes by a ring, and where they are queue pairs they have the same timer and retries:
4.096 us x 2^18 = 1.07 s, as NCCL had it for long, and 6 retries, as Soft-RoCE takes 7 for *without end*. So a queue
pair is given up after 7.5 s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate

HEALTHY_S = 2

SIZE, SCALE, QUEUE_MS = "500 KB", 4000, 80
"""Without a pause every fault comes while all ranks send, which at 50 Mbit/s a port is cheap.

The queue has as many bytes as at 200 Mbit/s: Soft-RoCE hands a message to its port at once, and waits for ever for
the rest when that drops some of it.
"""
IB_TIMEOUT, RETRIES, GLOO_TIMEOUT = 18, 6, "15 s"


@dataclass(frozen=True, slots=True)
class Network:
    """``title`` as the table has it, ``topology`` as a drill has it."""

    key: str
    title: str
    topology: str


@dataclass(frozen=True, slots=True)
class Fault:
    """``keys`` of the timeline's entry without its ``id`` and ``at``; the next one comes ``room`` seconds later.

    That is time for LACP, 2.5 s after a repair, and for TCP's retry timer, which doubles to 6.4 s and more.
    """

    key: str
    title: str
    keys: str
    room: int


@dataclass(frozen=True, slots=True)
class Job:
    """``workload`` is what a drill has in the place of it."""

    key: str
    title: str
    workload: str


JOBS = (
    Job(
        "own",
        "own model",
        f"""\
job:
  collective: {{kind: all-reduce, algorithm: ring, size: {SIZE}, slices: 8}}
  gpus: 1
  ib_timeout: {IB_TIMEOUT}
  retry_count: {RETRIES}""",
    ),
    Job(
        "gloo",
        "gloo",
        f"""\
workload:
  client: {{run: torch, work: all-reduce, size: {SIZE}, timeout: {GLOO_TIMEOUT}}}""",
    ),
    Job(
        "rxe",
        "rxe",
        f"""\
workload:
  client:
    {{run: verbs, work: all-reduce, size: {SIZE}, ib_timeout: {IB_TIMEOUT}, retry_count: {RETRIES}}}""",
    ),
)

_SMALL = f"rails: 1, scale: {SCALE}, queue_ms: {QUEUE_MS}"
_TINY = f"{{preset: tiny, {_SMALL}"
HPN = Network("hpn", "HPN", _TINY + "}")
CLOS = Network("clos", "dual-ToR Clos", _TINY + ", architecture: dual-tor-clos}")
SINGLE = Network("single", "single-ToR", _TINY + ", architecture: single-tor}")
STACKED = Network("stacked", "stacked dual-ToR", f"{{preset: tiny-stacked, {_SMALL}}}")
STEERED = Network("steered", "HPN, hosts steer", _TINY + ", path_control: {policy: both}}")

_LINK, _NIC, _TOR = "p0.s0.h0.r0.0", "p0.s0.h0.r0", "p0.s0.t0.0"
CUT = Fault("cut", "cut 2 s", f"fault: link-down, target: {_LINK}, for: 2 s", 13)
FLAP = Fault("flap", "flap 3 x 0.4 s", f"fault: link-flap, target: {_LINK}, period: 800 ms, duty: 50 %, count: 3", 12)
CRASH = Fault("crash", "ToR crash 2 s", f"fault: tor-crash, target: {_TOR}, for: 2 s", 14)
NIC = Fault("nic", "NIC gone 3 s", f"fault: nic-down, target: {_NIC}, for: 3 s", 15)
DEAF = Fault("deaf", "black hole 4 s", f"fault: tor-dataplane-death, target: {_TOR}, for: 4 s", 16)
"""Its control plane lives; of a stack the other ToR shuts itself down: it collapses."""
GONE = Fault("gone", "NIC gone", f"fault: nic-down, target: {_NIC}", 18)

_LONE_ROOM = 20
"""After a cut of 2 s of a lone link gloo's connections were not back within 13 s."""

ASKED: Mapping[Network, tuple[Fault, ...]] = {
    HPN: (CUT, FLAP, CRASH, NIC, GONE),
    CLOS: (CUT, FLAP, CRASH, NIC, DEAF, GONE),
    SINGLE: (*(replace(fault, room=_LONE_ROOM) for fault in (CUT, FLAP, CRASH, NIC)), GONE),
    STACKED: (DEAF,),
    STEERED: (CUT, FLAP, CRASH, NIC, GONE),
}
"""What happens in which network. Only a stack collapses; a Clos is the same wiring without it. Steering is HPN's answer
for traffic that nobody registers."""


@dataclass(frozen=True, slots=True)
class Course:
    """One job in one network, and all that happens to it."""

    network: Network
    job: Job

    @property
    def name(self) -> str:
        """The drill's."""
        return f"{self.network.key}-{self.job.key}"

    @property
    def faults(self) -> tuple[Fault, ...]:
        """In turn."""
        return ASKED[self.network]

    @property
    def drill(self) -> str:
        """Its file: that sums are right and the lab is restored is all that it expects."""
        ats = accumulate((fault.room for fault in self.faults[:-1]), initial=HEALTHY_S)
        told = (
            f"    - {{id: {fault.key}, at: {at} s, {fault.keys}}}" for fault, at in zip(self.faults, ats, strict=True)
        )
        faults = "\n".join(told)
        return f"""\
drill: {self.name}
summary: {self.job.title} in {self.network.title}, one fault after the other
topology: {self.network.topology}
{self.job.workload}
timeline:
  healthy: {HEALTHY_S} s
  faults:
{faults}
  settle: {self.faults[-1].room} s
expect:
  - wrong_results: {{at_most: 0}}
  - state_restored: yes
"""


def courses() -> Iterator[Course]:
    """All of the table."""
    for network in ASKED:
        for job in JOBS:
            yield Course(network, job)
