"""Draw frequency of each kind of fault, and the size of its parameters. PURE.

Rates are failures per month and element of the fabric; each kind of fault has its own. HPN (SIGCOMM 2024) reports 0.057
% of NIC-ToR links and 0.051 % of ToRs a month. Its fleet has 5,000 to 60,000 link flaps a day. One pod has 30,720
NIC-ToR links. No rates are published for the other kinds; they are set to that of ToR failures.

With these rates 9,999 of 10,000 sequences would be flaps. So a kind's weight is its rate in this fabric to the power
``TEMPER``. This keeps the order, and rare kinds still occur within a hundred sequences.
"""

from __future__ import annotations

import math
import random

from hpn.failover.faults import FAULTS, MS, Parameter, Unit

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
