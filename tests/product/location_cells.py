"""Drills whose faults are to be located: faults drawn one after the other on several fabrics, and none at all. Pure.

Everything that decides a figure of the table is in this module: change it, and the runs are made again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from hpn.failover.locating.parts import Part, PartKind
from hpn.testbed.entries import Registry
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric, Role
from hpn.testbed.files.document import Plain
from hpn.traffic.job.placement import place
from tests.strangers.draw import spec_of

TOPOLOGIES: Mapping[str, dict[str, Plain]] = {
    "tiny": {"preset": "tiny"},
    "small": {"preset": "small"},
    "clos": {"preset": "tiny", "architecture": "dual-tor-clos"},
    "fat-tree": {"preset": "tiny-fat-tree"},
    "single-tor": {"preset": "tiny", "architecture": "single-tor"},
    "rail-only": {"preset": "tiny-rail-only"},
    "dcn-plus": {"preset": "tiny-dcn-plus"},
    "medium": {"preset": "medium"},
}
_LARGE, _SMALLER, _TURNS = "medium", "small", 8
"""A run on ``medium`` has the packets of sixteen others: it takes one in eight of its turns."""
_FOUR_HOSTS = ("tiny", "clos", "single-tor", "rail-only", "dcn-plus")
"""Fabrics small enough for traffic at full rate."""
SHARES = ("100 %", "10 %", "1 %")


@dataclass(frozen=True, slots=True)
class Traffic:
    """What shows faults: lines of a drill file, when and how many faults come, and on which fabrics.

    ``runs``: of a whole table. ``switch``: the rest of the topology. Every fault but the last is followed by
    ``pause_s`` without one.
    """

    name: str
    keys: str
    faults: int
    lasts_s: int
    pause_s: int
    first_s: int
    runs: int
    topologies: Sequence[str] = tuple(TOPOLOGIES)
    switch: str = ""


def _probes(load: str) -> str:
    return f"""\
workload:
  {{pattern: probes, queue_pairs: 4, load: {load}, path_mtu: 256, payload: 32, source_ports: covering,
   path_control: no, ib_timeout: 24, tick: 10 ms}}
"""


_JOB = """\
job:
  collective: {kind: all-reduce, algorithm: ring, size: 400 KB, slices: 4, among: rail}
  gpus: 1
  queue_pairs: 4
"""
_SWITCH = ", switch: {buffer: 2 MB, classes: [{priority: 3, dscp: [3], lossless: yes, weight: 15, alpha: 0.125}]}"
LOAD, LOW_LOAD = "0.2 %", "0.1 %"
TRAFFIC: Registry[Traffic] = Registry(
    "traffic that shows faults",
    lambda traffic: traffic.name,
    (
        Traffic("broken", _probes(LOAD), faults=8, lasts_s=10, pause_s=5, first_s=3, runs=125),
        Traffic("bucket", _probes(LOAD), faults=8, lasts_s=10, pause_s=5, first_s=3, runs=16),
        Traffic("rare", _probes(LOW_LOAD), faults=3, lasts_s=30, pause_s=8, first_s=3, runs=24),
        Traffic("job", _JOB, *(2, 3, 2, 3, 20), topologies=_FOUR_HOSTS),
        Traffic("passive", _JOB, *(4, 3, 2, 3, 20), topologies=_FOUR_HOSTS),
        Traffic(
            "stamped",
            _JOB + "  congestion: hpcc\n  stretch: 200\n  ib_timeout: 17\n",
            *(2, 3, 2, 3, 20),
            topologies=_FOUR_HOSTS,
            switch=_SWITCH,
        ),
        Traffic(
            "loaded",
            """\
workload: {pattern: near-and-far, queue_pairs: 4, load: 40 %, source_ports: covering, path_control: no, ib_timeout: 24}
sample: {queues: 10 ms, ports: switches}
""",
            *(2, 3, 2, 3, 20),
            topologies=_FOUR_HOSTS,
        ),
        Traffic(
            "slow",
            """\
job:
  training: {{compute: 50 ms, data: {ranks}, data_size: 100 KB, stragglers: [{{rank: {slow}, extra: 20 ms}}]}}
""",
            *(0, 0, 1, 6, 10),
            topologies=_FOUR_HOSTS,
        ),
        Traffic("healthy", _probes(LOAD), faults=0, lasts_s=0, pause_s=5, first_s=30, runs=100),
    ),
    of=Traffic,
)
"""Runs of the table, by the first word of their names."""


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of fault as the table names it, and its keys in a drill file but id, at, for and target.

    ``source``: of location that is asked. ``target``: a part of the fabric that it hits. ``is_shown``: it is to be
    named; else nobody else may be, as too little or nothing is lost on paths that are known. ``at_once``: faults.
    """

    name: str
    keys: str
    traffic: str = "broken"
    source: str = "loss"
    target: str = "link"
    is_shown: bool = True
    at_once: int = 1

    @property
    def is_plain(self) -> bool:
        """True for losses of 1 % and more, which probes are to locate."""
        return self.traffic == "broken" and self.source == "loss" and self.is_shown


CASES: Registry[Case] = Registry(
    "case of location",
    lambda case: case.name,
    (
        *(Case(f"one way, {share}", f"fault: one-way-loss, share: {share}") for share in SHARES),
        *(Case(f"both ways, {share}", f"fault: silent-drop, share: {share}") for share in SHARES),
        Case("bit errors, 1 %", "fault: bit-corruption, share: 1 %"),
        Case("two at once, 10 %", "fault: silent-drop, share: 10 %", at_once=2),
        Case("decaying link", "fault: link-decay, from: 0.01 %, to: 20 %, over: 6 s"),
        Case("ToR forwards nothing", "fault: tor-dataplane-death", target="tor"),
        Case("Agg forwards nothing", "fault: agg-dataplane-death", target="agg"),
        Case("delay, 1 ms", "fault: link-delay, delay: 1 ms", source="delay"),
        Case("delay, 300 us", "fault: link-delay, delay: 300 us", source="delay"),
        Case("one hash bucket of 2", "fault: bucket-drop, buckets: 2", traffic="bucket"),
        Case("one hash bucket of 4", "fault: bucket-drop, buckets: 4", traffic="bucket"),
        Case("cables swapped", "fault: cables-swapped", is_shown=False),
        Case("one way, 0.1 %", "fault: one-way-loss, share: 0.1 %", traffic="rare"),
        Case("both ways, 0.1 %", "fault: silent-drop, share: 0.1 %", traffic="rare"),
        Case("both ways, 0.01 %", "fault: silent-drop, share: 0.01 %", traffic="rare", is_shown=False),
        Case("50 % of the rate, job", "fault: rate-drop, rate: 50 %", traffic="job", source="rate"),
        Case("10 % of the rate, job", "fault: rate-drop, rate: 10 %", traffic="job", source="rate"),
        Case("both ways, 1 %, job", "fault: silent-drop, share: 1 %", traffic="job", source="rate"),
        *(
            Case(f"{ways}, {share}, job retries", f"fault: {kind}, share: {share}", traffic="passive", source="retries")
            for ways, kind in (("one way", "one-way-loss"), ("both ways", "silent-drop"))
            for share in ("10 %", "1 %", "0.1 %")
        ),
        Case("50 % of the rate, stamps", "fault: rate-drop, rate: 50 %", traffic="stamped", source="stamps"),
        Case("10 % of the rate, stamps", "fault: rate-drop, rate: 10 %", traffic="stamped", source="stamps"),
        Case("5 % of the rate, queues", "fault: rate-drop, rate: 5 %", traffic="loaded", source="delay"),
        Case("5 % of the rate, drops", "fault: rate-drop, rate: 5 %", traffic="loaded", source="counters"),
        Case("slow host", "", traffic="slow", source="job", target="host"),
    ),
    of=Case,
)
"""Cases of the table."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A fault as drawn: its id, case, the rest of its keys, and when it begins."""

    key: str
    case: Case
    rest: str
    at_s: int


@dataclass(frozen=True, slots=True)
class Trial:
    """A run on a preset, with faults drawn by ``seed``."""

    traffic: Traffic
    topology: str
    seed: int

    @property
    def name(self) -> str:
        """The drill's."""
        return f"{self.traffic.name}-{self.topology}-{self.seed}"

    @property
    def fabric(self) -> Fabric:
        """The fabric, but for its seed."""
        return build(spec_of(TOPOLOGIES[self.topology]))

    def drawn(self) -> Sequence[Drawn]:
        """Return the faults."""
        dice = random.Random(f"locate {self.name}")
        fabric = self.fabric
        cases = [case for case in CASES.values() if case.traffic == self.traffic.name and _parts(fabric, case.target)]
        found: list[Drawn] = []
        for number in range(self.traffic.faults):
            case = dice.choice(cases)
            at_s = self.traffic.first_s + number * (self.traffic.lasts_s + self.traffic.pause_s)
            for at, target in enumerate(dice.sample(_parts(fabric, case.target), case.at_once)):
                way = f", direction: {dice.choice(('up', 'down'))}" if "one-way" in case.keys else ""
                found.append(Drawn(f"f{number}{'ab'[at]}", case, f"target: {target}{way}", at_s))
        return found

    def always(self) -> Mapping[Case, Part]:
        """Return what is wrong all the time."""
        if self.traffic.name != "slow":
            return {}
        return {CASES["slow host"]: Part(PartKind.NODE, place(self.fabric)[self._slow].host)}

    @property
    def cases(self) -> Mapping[str, Case]:
        """Cases by id of a fault; what is wrong all the time has its name."""
        return {each.key: each.case for each in self.drawn()} | {case.name: case for case in self.always()}

    @property
    def sources(self) -> Sequence[str]:
        """Sources that its cases ask."""
        return list(dict.fromkeys(case.source for case in self.cases.values()))

    @property
    def _slow(self) -> int:
        """Rank that computes longer."""
        return random.Random(f"locate {self.name}").randrange(len(place(self.fabric)))

    @property
    def drill(self) -> str:
        """Its file: that the lab is restored is all that it expects."""
        traffic, keys = self.traffic, ", ".join(f"{key}: {value}" for key, value in TOPOLOGIES[self.topology].items())
        work = traffic.keys.format(ranks=len(place(self.fabric)), slow=self._slow) if self.always() else traffic.keys
        faults = "".join(
            f"    - {{id: {each.key}, {each.case.keys}, {each.rest}, at: {each.at_s} s, for: {traffic.lasts_s} s}}\n"
            for each in self.drawn()
        )
        return f"""\
drill: {self.name}
summary: {"faults to be located" if faults else "nothing breaks"}
topology: {{{keys}, seed: {self.seed}{traffic.switch}}}
{work}profile: quick
timeline:
  healthy: {traffic.first_s} s
{"  faults:" + chr(10) + faults if faults else ""}  settle: {traffic.pause_s} s
expect:
  - state_restored: yes
"""


_ROLES = {"tor": Role.TOR, "agg": Role.AGG, "host": Role.HOST}


def _parts(fabric: Fabric, target: str) -> Sequence[str]:
    """Return what a fault may hit."""
    if target == "link":
        return sorted(link.name for link in fabric.links)
    return sorted(node.name for node in fabric.nodes if node.role is _ROLES[target])


def trials() -> Iterator[Trial]:
    """Yield the runs: of each traffic in turn, its fabrics in turn."""
    yield from (each for some in zip_longest(*map(_of, TRAFFIC.values())) for each in some if each is not None)


def _of(traffic: Traffic) -> Iterator[Trial]:
    for seed in range(traffic.runs):
        turn, at = divmod(seed, len(traffic.topologies))
        topology = traffic.topologies[at]
        yield Trial(traffic, _SMALLER if topology == _LARGE and turn % _TURNS else topology, seed)
