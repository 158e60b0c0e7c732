"""Location scored on simulated faults, in a minute instead of the table's hour: ``python -m``, fabrics, and seeds.

    python -m tests.product.location_simulated tiny,clos,dcn-plus 0 1 2

Faults come one after the other; packets of the table's probes are lost by chance on paths that stay as they are.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hpn.failover.analysis.series import Bins
from hpn.failover.locating.observed import Observed
from hpn.failover.locating.parts import Part, PartKind, Suspects
from hpn.failover.locating.rounds import rounds, score, truths
from hpn.failover.locating.seen import Row
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric, Role
from tests.failover.locating.simulated import probed
from tests.product.location_cells import TOPOLOGIES
from tests.strangers.draw import spec_of

BIN_NS, STEP_NS = 100_000_000, 500_000_000
FAULTS, FIRST, LASTS, PAUSE = 8, 30, 100, 50  # bins
LOAD = 0.2  # of the 1 % that ``probed`` sends, as in the table


@dataclass(frozen=True)
class Kind:
    """A kind of fault: how many packets it takes, of what, how many at once, and on what share of its paths."""

    share: float
    role: Role | None = None  # None: a link
    one_way: bool = False
    at_once: int = 1
    of_paths: float = 1.0


KINDS = {
    "one way, 10 %": Kind(0.1, one_way=True),
    "one way, 1 %": Kind(0.01, one_way=True),
    "both ways, 10 %": Kind(0.1),
    "both ways, 1 %": Kind(0.01),
    "two at once, 10 %": Kind(0.1, at_once=2),
    "two at once, 1 %": Kind(0.01, at_once=2),
    "ToR forwards nothing": Kind(1, Role.TOR),
    "Agg forwards nothing": Kind(1, Role.AGG),
    "half of the paths": Kind(1, of_paths=0.5),
}


@dataclass(frozen=True)
class Fault:
    """A fault from bin ``begin`` on."""

    kind: str
    part: Part
    begin: int

    @property
    def end(self) -> int:
        """Bin of its repair."""
        return self.begin + LASTS


def faults(fabric: Fabric, dice: random.Random) -> Iterator[Fault]:
    """Draw the faults of a run."""
    for number in range(FAULTS):
        name = dice.choice([name for name, kind in KINDS.items() if _parts(fabric, kind)])
        kind = KINDS[name]
        for part in dice.sample(_parts(fabric, kind), kind.at_once):
            drawn = Part(PartKind.DIRECTION, part.name, dice.random() < 0.5) if kind.one_way else part
            yield Fault(name, drawn, FIRST + number * (LASTS + PAUSE))


def _parts(fabric: Fabric, kind: Kind) -> list[Part]:
    if kind.role is None:
        return [Part(PartKind.LINK, link.name) for link in fabric.links]
    return [Part(PartKind.NODE, node.name) for node in fabric.nodes if node.role is kind.role]


def simulated(topology: str, seed: int) -> tuple[Observed, list[Fault]]:
    """Return what probes show of a run's faults, and those that some path crosses."""
    fabric = build(spec_of({**TOPOLOGIES[topology], "seed": seed}))
    probes, chance = probed(fabric), np.random.default_rng(seed)
    suspects, bins = probes.suspects, Bins(0, BIN_NS, FIRST + FAULTS * (LASTS + PAUSE))
    phases = chance.random((len(suspects.paths), 1))
    due = np.arange(bins.count + 1) * (BIN_NS / 1e9) * LOAD * probes.pps[:, None]
    sent = np.diff(np.floor(due + phases), axis=1).astype(np.int64)
    arriving, met = np.ones(sent.shape), []
    for fault in faults(fabric, random.Random(f"{topology} {seed}")):
        crossed = _crossed(suspects, fault)
        if crossed.any():
            kind = KINDS[fault.kind]
            hit = crossed & (chance.random(len(sent)) < kind.of_paths)
            arriving[hit, fault.begin : fault.end] *= 1 - kind.share
            met.append(fault)
    lost = chance.binomial(sent, 1 - arriving).astype(np.int64)
    return Observed.of(bins, suspects, list(sent), list(lost)), met


def answers(topology: str, seed: int, method: str) -> Iterator[tuple[str, str]]:
    """Yield the kind of each fault that lost something, and what the last answer before its repair was."""
    seen, met = simulated(topology, seed)
    found = [*rounds(seen, method, STEP_NS)]
    for fault in met:
        truth = truths(seen, (fault.part,))
        told = score(found, truth, fault.begin * BIN_NS, fault.end * BIN_NS, KINDS[fault.kind].at_once)
        if seen.between(fault.begin, fault.end).lost[_crossed(seen.suspects, fault)].any():
            yield fault.kind, "located" if told.stable_ns is not None else "wrong" if told.rounds else "no answer"


def _crossed(suspects: Suspects, fault: Fault) -> Row:
    """Return the paths across a fault."""
    suspect = suspects.of(fault.part)
    if suspect is None:
        return np.zeros(len(suspects.paths), np.bool_)
    return suspects.across(suspect)


def main(arguments: list[str]) -> None:
    """Print a line for each kind of fault."""
    found: dict[str, Counter[str]] = {}
    for seed in map(int, arguments[1:] or ["0"]):
        for topology in arguments[0].split(",") if arguments else TOPOLOGIES:
            for kind, answer in answers(topology, seed, "likelihood"):
                found.setdefault(kind, Counter())[answer] += 1
    for kind, counts in sorted(found.items()):
        print(f"{kind:24}{', '.join(f'{count} {answer}' for answer, count in sorted(counts.items()))}")


if __name__ == "__main__":
    main(sys.argv[1:])
