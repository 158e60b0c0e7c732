"""Assumptions of the month: each number by name, with its unit and source. A user may set any of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches

from hpn.testbed.errors import InputError

_PAPER = "HPN paper, SIGCOMM 2024"
_CUT = "drill {} in virtual time, Linux 6.12: no flow lost a packet, resolution 1.18 ms"
_OURS = "assumed"


def _value(default: float, unit: str, source: str, *, least: float = 0.0, most: float = math.inf) -> float:
    """Return a dataclass field with its unit, source and limits."""
    known = {"unit": unit, "source": source, "least": least, "most": most}
    found: float = field(default=default, metadata=known)
    return found


@dataclass(frozen=True)
class Assumptions:
    """Input numbers of the month; the source 'assumed' means that no measurement exists."""

    links_a_month: float = _value(0.00057, "of NIC-ToR links", f"{_PAPER}, section 2", most=1)
    tors_a_month: float = _value(0.00051, "of ToRs", f"{_PAPER}, section 2", most=1)
    flaps_a_day: float = _value(5000, "in the fleet", f"{_PAPER}, section 2: 5,000 to 60,000", most=1e7)
    fleet_gpus: float = _value(
        122_880, "GPUs that the flaps are spread over", f"{_OURS}: the paper names no fleet", least=1, most=1e9
    )
    flap_s: float = _value(1.0, "s without carrier, mean", _OURS, most=3600)
    link_repair_h: float = _value(24, "h until a link is repaired", _OURS, most=10_000)
    tor_repair_h: float = _value(4, "h until a ToR is replaced", _OURS, most=10_000)
    stacks_lost: float = _value(
        0.4, "of ToR failures take a stack's other ToR", f"{_PAPER}, section 4: > 40 % of critical failures", most=1
    )
    iteration_s: float = _value(3.9, "s an iteration", "docs/reproduction.md: GPT-3 175B on 2,304 GPUs", least=1e-3)
    sums_s: float = _value(0.214, "s of it in sums at full rate", "docs/reproduction.md: 5.5 GB at 400G", least=1e-6)
    samples_a_gpu: float = _value(
        0.678,
        "samples of an iteration, for each GPU",
        "Brown et al. 2020, table 2.1: 3.2 M tokens, 2,048 a sample; on 2,304 GPUs",
        most=1e9,
    )
    second_tor_ms: float = _value(1.2, "ms until traffic uses the other ToR", _CUT.format("link-down-clos"), most=1e6)
    path_control_ms: float = _value(1.2, "ms until it uses the other plane", _CUT.format("link-down"), most=1e6)
    return_s: float = _value(
        2.46,
        "s from carrier to traffic where nothing else led to a NIC",
        "drill link-down-no-path-control in virtual time, Linux 6.12: 4.458 s for a cut of 2 s",
        most=3600,
    )
    retry_s: float = _value(4.29, "s of one retry of a queue pair", "NCCL: timeout 20", least=1e-3, most=1e4)
    retries: float = _value(8, "tries until it dies", "NCCL: 7 retries after the first", least=1, most=1000)
    checkpoint_h: float = _value(2, "h between checkpoints", _OURS, most=1000)
    restart_min: float = _value(15, "min from a crash to the first new iteration", _OURS, most=100_000)
    spare_hosts: float = _value(8, "spare hosts a segment", f"{_PAPER}, section 6", most=1e6)

    def __post_init__(self) -> None:
        """Raise InputError when the sums do not fit into the iteration."""
        if self.sums_s >= self.iteration_s:
            raise InputError(f"sums_s {self.sums_s:g} is not less than iteration_s {self.iteration_s:g}; lower it")

    @property
    def dies_after_s(self) -> float:
        """Time in s without an answer after which a queue pair, and the job with it, fails."""
        return self.retry_s * self.retries


@dataclass(frozen=True, slots=True)
class Line:
    """One assumption, for a table."""

    name: str
    value: float
    unit: str
    source: str
    changed: bool


def told(given: Assumptions) -> list[Line]:
    """Return all assumptions, in order."""
    default = Assumptions()
    return [
        Line(
            each.name,
            getattr(given, each.name),
            each.metadata["unit"],
            "given" if getattr(given, each.name) != getattr(default, each.name) else each.metadata["source"],
            getattr(given, each.name) != getattr(default, each.name),
        )
        for each in fields(Assumptions)
    ]


def with_set(words: Iterable[str]) -> Assumptions:
    """Return the assumptions with these NAME=VALUE changed. InputError, with all mistakes at once, for other words."""
    known = {each.name: each.metadata for each in fields(Assumptions)}
    problems, values = [], dict[str, float]()
    for word in words:
        name, _, text = word.partition("=")
        if name not in known:
            near = get_close_matches(name, known, n=2) or ["flaps_a_day", "checkpoint_h"]
            problems.append(f"no assumption {name[:60]!r}; did you mean {' or '.join(near)}?")
            continue
        value, low, high = _number(text), known[name]["least"], known[name]["most"]
        if value is None or not low <= value <= high or value == math.inf:
            bound = f"{low:g} to {high:g}" if high < math.inf else f"at least {low:g}"
            problems.append(f"{name} is a number, {bound}; not {text[:60]!r}")
        else:
            values[name] = value
    if problems:
        raise InputError(problems)
    return replace(Assumptions(), **values)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
