"""Schema of a drill file: one pydantic model per section, the keys in the field's own terms.

Each section is checked separately (``scenarios.drill.load``), so a mistake in one does not hide those in another. The
keys of a fault or an expectation depend on its kind: see ``fault_model`` and ``expectation_model``.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, create_model

from hpn.failover.analysis.port_sampling import Ports
from hpn.failover.faults import FAULTS, Parameter, parameters
from hpn.failover.faults import Unit as ParameterUnit
from hpn.scenarios.drill.model import DELAY_THRESHOLD_NS, PATH_MTUS, PAYLOADS, Workload
from hpn.scenarios.expect.metric import Metric, Takes, Traffic, Unit
from hpn.scenarios.expect.selection import Whose
from hpn.testbed.fabric.values import Rate, Strict
from hpn.testbed.files.units import Duration, Percent, duration, format_duration, format_percent, percent, size
from hpn.testbed.files.words import OneOf
from hpn.traffic.flows.paths import CHOICES
from hpn.traffic.flows.patterns import PATTERNS

NAME = r"^[a-z][a-z0-9-]{0,47}$"
Plain = dict[str, object]


def _one_line(text: str) -> str:
    if "\n" in text.strip():
        raise ValueError("has several lines; keep the summary to one and move the rest to description")
    return text.strip()


def _plain_text(text: str) -> str:
    """Reject control characters, which would steer the terminals and reports that show the text."""
    bad = next((c for c in text if c not in "\n\t" and unicodedata.category(c) in {"Cc", "Cs"}), None)
    if bad is not None:
        raise ValueError(f"holds the control character {bad!r}; remove it")
    return text


PlainText = Annotated[str, AfterValidator(_plain_text)]


class DrillFile(Strict):
    """The top of a drill file; sections are checked by their own models."""

    drill: str = Field(pattern=NAME, examples=["link-down"])
    summary: Annotated[PlainText, AfterValidator(_one_line)] = Field(
        min_length=1, max_length=160, examples=["one line that says what it shows"]
    )
    description: PlainText = ""
    topology: object = Field(examples=["tiny"])
    workload: Plain = Field(default_factory=dict)
    job: Plain = Field(default_factory=dict)
    profile: Literal["quick", "full"] = "quick"
    delay_threshold: Annotated[int, duration("1 ms", "10 s")] = DELAY_THRESHOLD_NS
    sample: Plain = Field(default_factory=dict)
    capture: Plain = Field(default_factory=dict)
    locate: Plain = Field(default_factory=dict)
    timeline: Plain = Field(default_factory=dict)
    expect: list[Plain] = Field(
        min_length=1, examples=["one '- metric: {limit}' entry or more, such as '- packets_lost: {at_most: 0}'"]
    )


_WORKLOAD = Workload()


class WorkloadSection(Strict):
    """``workload:``."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_alias=True)

    client: Plain | None = None
    pattern: Annotated[str, OneOf(PATTERNS)] = _WORKLOAD.pattern
    across_segments: bool = _WORKLOAD.across_segments
    queue_pairs: int = Field(default=_WORKLOAD.queue_pairs, ge=1, le=64, description="per NIC and destination")
    load: Annotated[float, percent("0.1 %", "100 %")] = _WORKLOAD.load
    path_mtu: Literal[PATH_MTUS] = _WORKLOAD.path_mtu  # type: ignore[valid-type]  # made of a tuple
    payload_bytes: Literal[PAYLOADS] | None = Field(  # type: ignore[valid-type]  # made of a tuple
        default=_WORKLOAD.payload_bytes, alias="payload", description="bytes of each packet, at most path_mtu"
    )
    ib_timeout: int = Field(default=_WORKLOAD.ib_timeout, ge=1, le=31, description="4.096 us x 2^n per try")
    retry_count: int = Field(default=_WORKLOAD.retry_count, ge=0, le=7)
    tick_ns: Annotated[int, duration("250 us", "50 ms")] = Field(
        default=_WORKLOAD.tick_ns, alias="tick", description="how often senders look at their schedule"
    )

    size_bytes: Annotated[int, size("1 B", "1 GB")] | None = Field(
        default=_WORKLOAD.size_bytes, alias="size", description="of a transfer on each queue pair"
    )
    every_ns: Annotated[int, duration("50 ms", "60 s")] | None = Field(
        default=_WORKLOAD.every_ns, alias="every", description="from the start of a transfer to that of the next"
    )
    source_ports: Annotated[str, OneOf(CHOICES)] = Field(
        default=_WORKLOAD.source_ports, description="how a queue pair's path is chosen"
    )
    path_control: bool = Field(
        default=_WORKLOAD.path_control, description="no: nobody tells it of these queue pairs, as of plain UDP"
    )


class SampleSection(Strict):
    """``sample:``; what is read of ports through the run, nothing without it."""

    queues: Annotated[int, duration("1 ms", "1 s")] = Field(description="one reading in each", examples=["10 ms"])
    ports: Literal[tuple(map(str, Ports))] = str(Ports.TOR_DOWN)  # type: ignore[valid-type]  # made of an enum


class CaptureSection(Strict):
    """``capture:``; what is captured around each edge, nothing without it."""

    links: list[str] = Field(default_factory=list, description="links, NICs, nodes; without any, those that faults hit")
    before: Annotated[int, duration("0 ms", "10 s")] = 20 * 10**6
    after: Annotated[int, duration("1 ms", "60 s")] = 100 * 10**6
    snap: Annotated[int, size("64 B", "256 KiB")] = 256


class TimelineSection(Strict):
    """``timeline:``; ``settle``, when not given: validation time and a second more; 0 without faults."""

    healthy: Annotated[int, duration("500 ms", "10 min")] = 10**9
    faults: list[Plain] = Field(default_factory=list)
    settle: Annotated[int, duration("0 ms", "10 min")] | None = None


class FaultEntry(Strict):
    """Keys of every fault; ``fault_model`` adds the rest."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_alias=True)

    id: str | None = Field(default=None, pattern=NAME, examples=["cut"])
    fault: str
    target: str = Field(examples=["p0.s0.h0.r0.0"])
    at: Duration = Field(examples=["1 s"])


class RestoredFaultEntry(FaultEntry):
    """A fault that is undone ``for`` after it was done; without it, at the end of the drill."""

    for_ns: Annotated[int, duration("10 ms", "30 min")] | None = Field(default=None, alias="for")


_EXAMPLES: Mapping[ParameterUnit, str | int] = {
    ParameterUnit.DURATION: "400 ms",
    ParameterUnit.PERCENT: "50 %",
    ParameterUnit.COUNT: 3,
}


@cache
def fault_model(kind: str) -> type[FaultEntry]:
    """Return the model of one kind of fault: the common keys and the parameters of its dataclass."""
    fault = FAULTS[kind]
    base = FaultEntry if fault.REPAIRS_ITSELF else RestoredFaultEntry
    fields: dict[str, Any] = {p.key: (_parameter_type(p), _written(p)) for p in parameters(fault).values()}
    return create_model(f"{kind} entry", __base__=base, **fields)


def _parameter_type(p: Parameter) -> object:
    if p.unit is ParameterUnit.DURATION:
        return Annotated[int, duration(format_duration(int(p.low)), format_duration(int(p.high)))]
    if p.unit is ParameterUnit.PERCENT:
        return Annotated[float, percent(format_percent(p.low), format_percent(p.high))]
    if p.choices is not None:
        return Literal[tuple(each.value for each in p.choices)]
    if p.unit is ParameterUnit.NAME:
        return Annotated[str, Field(min_length=1, examples=[p.example])]
    return Annotated[int, Field(ge=int(p.low), le=int(p.high))]


def _written(p: Parameter) -> Any:
    """Return the field of a parameter: required, with an example, unless it has a default."""
    if p.default is not None:
        return Field(default=p.default)
    if p.choices is not None:
        return Field(examples=[next(iter(p.choices)).value])
    return Field(examples=[_EXAMPLES[p.unit]])


class _Edges(Strict):
    edge: Literal["failure", "repair", "any"] = "any"
    fault: str | None = None


class _Flows(_Edges):
    flows: Literal["all", "hit", "sender", "receiver", "transit", "others"] = "all"
    plane: int | None = Field(default=None, ge=0)
    rail: int | None = Field(default=None, ge=0)
    nic: str | None = None
    peer: Literal["local", "remote"] | None = None


OverRepeats = Literal["every", "median", "p95"]  # results.judge.repeats.statistic.Statistic


class _DurationBounds(Strict):
    below: Duration | None = Field(default=None, examples=["50 ms"])
    at_most: Duration | None = None
    above: Duration | None = None
    at_least: Duration | None = None
    over_repeats: OverRepeats = "every"


class _CountBounds(Strict):
    at_most: int | None = Field(default=None, ge=0, examples=[0])
    at_least: int | None = Field(default=None, ge=0)
    below: int | None = Field(default=None, ge=1)
    above: int | None = Field(default=None, ge=0)
    over_repeats: OverRepeats = "every"


class _ShareBounds(Strict):
    at_least: Percent | None = Field(default=None, examples=["95 %"])
    at_most: Percent | None = None
    below: Percent | None = None
    above: Percent | None = None
    over_repeats: OverRepeats = "every"


class _RatioBounds(Strict):
    at_most: float | None = Field(default=None, ge=1, le=1e6, examples=[1.1])
    at_least: float | None = Field(default=None, ge=1, le=1e6)
    below: float | None = Field(default=None, ge=1, le=1e6)
    above: float | None = Field(default=None, ge=1, le=1e6)
    over_repeats: OverRepeats = "every"


class _RateBounds(Strict):
    at_least: Rate | None = Field(default=None, examples=["180M"])
    at_most: Rate | None = None
    below: Rate | None = None
    above: Rate | None = None
    over_repeats: OverRepeats = "every"


class _Fault(Strict):
    fault: str | None = None


class _OfBefore(Strict):
    of: Literal["before"] = "before"


class _Whose(Strict):
    whose: Literal[tuple(map(str, Whose))] | None = None  # type: ignore[valid-type]  # made of an enum


class YesOrNoExpectation(_Whose):
    """Mapping behind a metric that takes yes or no, for its further keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_alias=True)

    expected: bool = Field(alias="is", examples=["yes"])


class UntouchedExpectation(_Edges):
    """``untouched:``; each part named must feel nothing."""

    planes: list[int] = Field(default_factory=list)
    rails: list[int] = Field(default_factory=list)
    nics: list[str] = Field(default_factory=list)
    hosts: list[str] = Field(default_factory=list)


class OrderExpectation(Strict):
    """``order:``; ``events`` by the names of ``failover.analysis.protocol_events.Mark``."""

    events: list[str] = Field(examples=["[carrier, lag]"])
    fault: str | None = None
    edge: Literal["failure", "repair"] = "failure"


_LOOKS: Mapping[Takes, tuple[type[Strict], ...]] = {
    Takes.FLOWS: (_Flows,),
    Takes.EDGES: (_Edges,),
    Takes.FAULT: (_Fault,),
    Takes.NOTHING: (),
}
_LIMITS: Mapping[Unit, tuple[type[Strict], ...]] = {
    Unit.MS: (_DurationBounds,),
    Unit.COUNT: (_CountBounds,),
    Unit.SHARE: (_ShareBounds,),
    Unit.RATIO: (_RatioBounds,),
    Unit.RATE: (_RateBounds,),
}


@cache
def expectation_model(metric: Metric) -> type[Strict]:
    """Return the model for the value of a metric that has limits."""
    before = (_OfBefore,) if metric.unit is Unit.SHARE and metric.needs.fault else ()
    whose = (_Whose,) if metric.needs.traffic is Traffic.RANKS else ()
    bases = (*before, *whose, *_LOOKS[metric.takes], *_LIMITS[metric.unit])
    return create_model(f"{metric.key} expectation", __base__=bases)
