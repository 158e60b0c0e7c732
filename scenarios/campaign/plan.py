"""Plan of a campaign: sequences of faults drawn from (seed, index), each valid by construction. PURE.

A sequence is plain data, so that it can be stored, sent to another machine, shrunk and written as a drill file. This
module does not decide if it is a valid drill: ``drillfile`` builds one with the checks for user files.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from hpn.failover.faults import FAULTS, MS, Fault, Parameter, Unit, make, parameters
from hpn.scenarios.drill.targets import target_problem
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.vm.engines import HOST

TEMPER = 0.2

LONGEST_NS = 500 * MS
MOST = 4


def weight(kind: str, elements: int) -> float:
    """Return the relative frequency of a kind in a fabric with that many possible targets; 0 without any."""
    return float((FAULTS[kind].PER_MONTH * elements) ** TEMPER) if elements else 0.0


def sample(draw: random.Random, parameter: Parameter) -> int | float | str:
    """Return a value for a parameter, in its own unit: durations in whole ms, shares in whole percents."""
    if parameter.choices is not None:
        return str(draw.choice([each.value for each in parameter.choices]))
    low, high = parameter.low, parameter.high
    if parameter.unit is Unit.DURATION:
        return duration(draw, int(low), min(int(high), max(int(low), LONGEST_NS)))
    if parameter.unit is Unit.PERCENT:
        return draw.randint(math.ceil(low * 100), math.floor(high * 100)) / 100
    return draw.randint(int(low), min(int(high), max(int(low), MOST)))


def duration(draw: random.Random, low_ns: int, high_ns: int) -> int:
    """Return a log-uniform duration in the range: whole milliseconds, at least one."""
    low, high = max(low_ns // MS, 1), max(high_ns // MS, 1)
    return round(math.exp(draw.uniform(math.log(low), math.log(high)))) * MS


Value = int | float | str

HEALTHY_NS = 500 * MS
SETTLE_NS = 1200 * MS
_SPREAD_NS = 1000 * MS  # faults begin within this time
_SHORTEST_NS, _LONGEST_NS = 50 * MS, 1500 * MS  # range of the time to a fault's repair
LONG_NS = (4000 * MS, 15_000 * MS)  # longer than LACP's 3 and 6 s and BGP's hold time of 9 s
_COUNTS = (1, 2, 3, 4)
_COUNT_WEIGHTS = (4, 3, 2, 1)
_TOGETHER = 0.2  # share of faults that begin together with the one before
_TRIES = 60


@dataclass(frozen=True, slots=True)
class FaultStep:
    """One fault of a sequence; ``arguments`` by the keys of a drill file, durations in ns, shares 0..1.

    ``for_ns`` is None for faults that repair themselves.
    """

    kind: str
    target: str
    at_ns: int
    for_ns: int | None
    arguments: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class FaultSequence:
    """Sequence of faults. ``index`` counts from 0 within its campaign; a shrunk one keeps its original index."""

    index: int
    steps: tuple[FaultStep, ...]
    settle_ns: int = SETTLE_NS

    @property
    def words(self) -> str:
        """Description: 'link-down of p0.s0.h0.r0.0, then tor-crash of p0.s0.t0.1'."""
        return ", then ".join(f"{step.kind} of {step.target}" for step in self.steps)


@dataclass(frozen=True, slots=True)
class Plan:
    """Identity of a campaign: two with equal plans draw the same sequences."""

    seed: int
    topology: FabricSpec
    kinds: tuple[str, ...]  # kinds of faults that may be drawn
    engine: str = HOST.name
    long_faults: float = 0.0  # share of faults that last for ``LONG_NS``, so that timers expire

    def __post_init__(self) -> None:
        """Raise InputError for an invalid share."""
        if not 0 <= self.long_faults <= 1:
            raise InputError(f"a share of {self.long_faults:g} long faults cannot be; write 0 to 1")


@dataclass(frozen=True, slots=True)
class Choice:
    """Kind of fault that may be drawn, with all its valid targets in the fabric."""

    kind: str
    targets: tuple[str, ...]
    weight: float


def joined(first: FaultSequence, second: FaultSequence, after_ns: int) -> FaultSequence:
    """Return the faults of ``first``, then those of ``second``, which starts at ``after_ns``; the index is
    ``second``'s.
    """
    later = (replace(step, at_ns=step.at_ns + after_ns) for step in second.steps)
    return replace(second, steps=(*first.steps, *later))


Valid = Callable[[FaultSequence], bool]
"""Function that returns True if a sequence is a valid drill."""


def fitting(fabric: Fabric, kinds: Iterable[str]) -> tuple[str, ...]:
    """Return those of the kinds that can be on ``fabric``."""
    return tuple(kind for kind in kinds if not FAULTS[kind].misfit(fabric))


def choices(fabric: Fabric, kinds: Iterable[str]) -> tuple[Choice, ...]:
    """Return the possible choices in ``fabric``: the kinds that fit it and have a target there."""
    found = []
    for kind in fitting(fabric, kinds):
        targets = tuple(name for name in _names(fabric) if _accepts(fabric, kind, name))
        if targets:
            found.append(Choice(kind, targets, weight(kind, len(targets))))
    return tuple(found)


def draw(plan: Plan, among: tuple[Choice, ...], index: int, valid: Valid) -> FaultSequence:
    """Return sequence ``index`` of a campaign. InputError when no choice makes a valid drill."""
    random_ = random.Random(f"{plan.seed}/{index}")
    wanted = random_.choices(_COUNTS, _COUNT_WEIGHTS)[0]
    found = FaultSequence(index, ())
    for _ in range(_TRIES):
        if len(found.steps) == wanted:
            break
        longer = FaultSequence(index, (*found.steps, _step(random_, among, found, plan.long_faults)))
        if valid(longer):
            found = longer
    if not found.steps:
        raise InputError("no fault that this fabric and kernel can do makes a valid drill; take another topology")
    return found


def _step(random_: random.Random, among: tuple[Choice, ...], so_far: FaultSequence, long_faults: float) -> FaultStep:
    chosen = random_.choices(among, [choice.weight for choice in among])[0]
    target = random_.choice(chosen.targets)
    at_ns = HEALTHY_NS + random_.randrange(_SPREAD_NS // MS) * MS
    if so_far.steps and random_.random() < _TOGETHER:
        at_ns = so_far.steps[-1].at_ns
    lasts_ns = random_.randint(_SHORTEST_NS // MS, _LONGEST_NS // MS) * MS
    if long_faults and random_.random() < long_faults:  # plans without long faults must keep their random stream
        lasts_ns = random_.randint(LONG_NS[0] // MS, LONG_NS[1] // MS) * MS
    for_ns = None if FAULTS[chosen.kind].REPAIRS_ITSELF else lasts_ns
    return FaultStep(chosen.kind, target, at_ns, for_ns, tuple(_arguments(random_, chosen.kind).items()))


def _arguments(random_: random.Random, kind: str) -> Mapping[str, Value]:
    """Return a value for each parameter; a default is kept half of the time, a name always."""
    found = {}
    for parameter in parameters(FAULTS[kind]).values():
        if parameter.unit is Unit.NAME:
            continue
        if parameter.default is None or random_.random() < 0.5:
            found[parameter.key] = sample(random_, parameter)
    return found


def _names(fabric: Fabric) -> tuple[str, ...]:
    """Return all possible targets of any fault."""
    planes = {f"plane{plane}" for plane in range(fabric.planes)}
    return (*fabric.link_by_name, *fabric.nic_by_name, *fabric.node_by_name, *sorted(planes), "all")


def _accepts(fabric: Fabric, kind: str, target: str) -> bool:
    try:
        return not target_problem(fabric, example(kind, target))
    except InputError:
        return False


def example(kind: str, target: str = "") -> Fault:
    """Return an example of that kind of fault."""
    keys = {parameter.key: name for name, parameter in parameters(FAULTS[kind]).items()}
    return make(kind, target, {keys[key]: value for key, value in _arguments(random.Random(0), kind).items()})
