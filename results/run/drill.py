"""``drill.json``: the drill as it ran, readable without the drill file, its job or any plug-in.

Changes when a reader of a run must know something more of the drill. Times are ns from the start of traffic, as in the
run. A repeat's faults come later than in the file (``Manifest.phase_ms``); a slow kernel has limits and traffic of its
own. ``scenarios.run.stored_drill`` fills it in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue, TypeAdapter


@dataclass(frozen=True, slots=True)
class PlannedMoment:
    """An edge of a fault as planned. ``what``: the part of the fault that is meant, in words."""

    at_ns: int
    kind: str  # failure or repair
    index: int
    what: str


@dataclass(frozen=True, slots=True)
class AskedFault:
    """A fault of the drill's timeline."""

    id: str
    kind: str  # its word in a drill file
    target: str
    parameters: Mapping[str, str | int | float]  # by their keys in a drill file; durations in ns, shares of 1
    moments: tuple[PlannedMoment, ...]
    timers_alone_notice: bool = False  # an older hpn did not say it

    @property
    def is_drawn(self) -> bool:
        """True if the fault picks packets at random, because it hits only a share of them."""
        share = self.parameters.get("share", 1)
        return not isinstance(share, str) and share < 1

    @property
    def direction(self) -> str | None:
        """Direction across its links, 'up' or 'down'; None: both, or it has none."""
        given = self.parameters.get("direction")
        return given if isinstance(given, str) else None


@dataclass(frozen=True, slots=True)
class AskedLimit:
    """An expectation as run. ``limit`` in ns, a count, a share of 1, a ratio, bit/s, or 1/0, as ``unit`` says."""

    text: str  # as verdict.json has it
    metric: str
    bound: str  # below, at_most, above, at_least
    limit: float
    unit: str
    fault: str | None = None  # None: of every fault
    edge: str = ""


@dataclass(frozen=True, slots=True)
class AskedDrill:
    """One drill as it ran; ``traffic``: what sent, in words, line by line."""

    name: str
    summary: str
    description: str
    source: str  # name of the file that it came from, without the way there
    profile: str
    healthy_ns: int
    end_ns: int
    delay_threshold_ns: int
    faults: tuple[AskedFault, ...]
    expects: tuple[AskedLimit, ...]
    traffic: tuple[str, ...]
    workload: Mapping[str, JsonValue] = field(default_factory=dict)  # of streams; empty: none ran
    job: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    client: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    asks: Mapping[str, JsonValue] = field(default_factory=dict)  # of job and client: every key that is not as usual
    seed: int | None = None  # of the topology as the drill has it; None: an older hpn did not say it
    other_fabric: tuple[str, ...] = ()  # what changed when the drill was put on this fabric; nothing on its own


DRILL = TypeAdapter(AskedDrill)
