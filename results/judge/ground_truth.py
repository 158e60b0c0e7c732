"""Result of the self-test: outages of known length and the methods' measurements; verdict and table.

Changes when a method is added or the claim it must keep changes. All times in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pydantic import TypeAdapter
from rich.table import Table

from hpn.failover.analysis.budget import Interval, around
from hpn.results.judge.verdict import Outcome
from hpn.results.text.tables import table
from hpn.results.text.values import span_text
from hpn.testbed.errors import MachineError

BIN_MS = 10.0
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class TruthMeasurement:
    """One outage of one flow. The true length is within half of ``width_ms`` of ``true_ms``."""

    direction: str  # up: host to fabric, dropped where the ToR receives; down: where the host receives
    flow: str
    rate_pps: float
    true_ms: float
    width_ms: float
    plbm_ms: float
    tbm_ms: float
    bins_ms: float
    disagree: bool  # PLBM and TBM, by the analysis' own rule
    claim_ms: float  # error limit of PLBM and TBM: packet interval, noise floor, half of ``width_ms``
    send_gap_ms: float
    low_ms: float  # the interval that a verdict would use
    high_ms: float
    disturbed: bool  # the sender paused, or delays varied, by more than the claim: noise that no method can remove
    pause_ms: float = 0.0  # deliberate pause of the sender
    paused_where: str = ""

    @property
    def contained(self) -> bool:
        """True if the interval can contain the true length: the claim that holds whatever a sender does."""
        return Interval(self.low_ms, self.high_ms).has(around(self.true_ms, self.width_ms / 2))

    @property
    def kept(self) -> bool:
        """True if the interval contains the true length and, without a deliberate pause, each method is accurate.

        A method is accurate within its claim (bins: plus two bins), and none may contradict another.
        """
        if self.pause_ms or not self.contained:
            return self.contained
        errors = ((abs(method.value(self) - self.true_ms), method.slack_ms) for method in _METHODS)
        return not self.disagree and all(error <= self.claim_ms + slack for error, slack in errors)

    @property
    def text(self) -> str:
        """Result of each method."""
        said = f"by loss {self.plbm_ms:.3f}, by time stamps {self.tbm_ms:.3f}, by bins {self.bins_ms:g} ms"
        within = f", interval {self.low_ms:.3f} to {self.high_ms:.3f} ms"
        planned = f", its sender stopped for {self.pause_ms:g} ms {self.paused_where}" if self.pause_ms else ""
        noise = f"; disturbed, its sender paused up to {self.send_gap_ms:.3f} ms" if self.disturbed else ""
        claimed = f"claimed {self.claim_ms:.3f} ms{within}{planned}{noise}"
        return f"{self.flow} {self.direction}: true {self.true_ms:.3f}, {said}; {claimed}"


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """One self-test. ``noise`` makes the complete run inconclusive; ``wrong`` is loss where nothing was dropped."""

    engine: str
    kernel: str
    datapath: str
    tick_ms: float
    noise_floor_ms: float
    send_gap_max_ms: float  # of the healthy phase
    delay_variation_ms: float
    measured: tuple[TruthMeasurement, ...]
    noise: tuple[str, ...]
    wrong: tuple[str, ...]

    @property
    def broken(self) -> tuple[TruthMeasurement, ...]:
        """Measurements that broke a claim without noise to explain it."""
        return tuple(one for one in self.measured if not one.kept and not one.disturbed)

    @property
    def outcome(self) -> Outcome:
        """Outcome; a run on a noisy machine is neither pass nor fail."""
        if self.noise:
            return Outcome.INCONCLUSIVE
        if self.broken or self.wrong or not self.measured:
            return Outcome.FAIL
        return Outcome.PASS if all(one.kept for one in self.measured) else Outcome.INCONCLUSIVE

    def to_json(self) -> bytes:
        """Return JSON for ``from_json``."""
        return _ADAPTER.dump_json(self, indent=2)

    def reasons(self) -> Iterator[str]:
        """Yield the reasons why it is no pass, one line each; for a noisy run only the noise."""
        if self.noise:
            yield from self.noise
            return
        yield from self.wrong
        if not self.measured:
            yield "no outage was measured"
        doubtful = [one for one in self.measured if not one.kept]
        for one in doubtful[:_SHOWN]:
            yield one.text
        if len(doubtful) > _SHOWN:
            yield f"and {len(doubtful) - _SHOWN} more"


_ADAPTER = TypeAdapter(GroundTruth)


def from_json(content: bytes) -> GroundTruth:
    """Return the result from JSON: the inverse of ``GroundTruth.to_json``. MachineError if it is damaged."""
    try:
        return _ADAPTER.validate_json(content)
    except ValueError as error:
        raise MachineError("the self-test wrote no readable result; run it again") from error


@dataclass(frozen=True, slots=True)
class _Method:
    name: str
    value: Callable[[TruthMeasurement], float]
    slack_ms: float  # beyond the claim


_METHODS = (
    _Method("missing / rate (PLBM)", lambda one: one.plbm_ms, 0.0),
    _Method("timestamp gap (TBM)", lambda one: one.tbm_ms, 0.0),
    _Method(f"{BIN_MS:g} ms bins", lambda one: one.bins_ms, 2 * BIN_MS),
)


def ground_truth_table(found: GroundTruth) -> Table:
    """Return the errors, measured minus true, for each rate, direction and method."""
    groups: dict[tuple[float, str], list[TruthMeasurement]] = {}
    for one in found.measured:
        if one.pause_ms:
            continue
        groups.setdefault((one.rate_pps, one.direction), []).append(one)
    rows = [(f"{key[0]:g}", key[1], *_row(method, groups[key])) for key in sorted(groups) for method in _METHODS]
    true_ms = [one.true_ms for one in found.measured] or [0.0]
    outages = span_text(min(true_ms), max(true_ms), "ms")
    title = (
        f"measured minus true, ms; outages of {outages}; engine {found.engine}, LAG"
        f" datapath {found.datapath}, noise floor {found.noise_floor_ms:.3f} ms, truth known to"
        f" {max((one.width_ms for one in found.measured), default=0.0):.3f} ms"
    )
    return table(title, (">packets/s", "direction", "method", ">outages", ">mean", ">worst", ">claimed"), rows, keys=3)


def paused_table(found: GroundTruth) -> Table:
    """Return the effect of a deliberate sender pause on the methods, and if the interval had the true length."""
    groups: dict[tuple[float, str], list[TruthMeasurement]] = {}
    for one in found.measured:
        if one.pause_ms:
            groups.setdefault((one.rate_pps, one.paused_where), []).append(one)
    rows = [(f"{rate:g}", where, *_paused_row(ones)) for (rate, where), ones in groups.items()]
    pauses = [one.pause_ms for one in found.measured if one.pause_ms] or [0.0]
    title = f"the sender stopped for {min(pauses):g} to {max(pauses):g} ms; measured minus true, ms"
    columns = (">packets/s", "stopped", ">outages", ">PLBM", ">TBM", ">widest interval", ">truth within")
    return table(title, columns, rows, keys=2)


def _paused_row(ones: list[TruthMeasurement]) -> tuple[str, ...]:
    errors = ([method.value(one) - one.true_ms for one in ones] for method in _METHODS[:2])
    spans = (f"{min(each):+.2f} to {max(each):+.2f}" for each in errors)
    widest = max(one.high_ms - one.low_ms for one in ones)
    return (f"{len(ones)}", *spans, f"{widest:.2f}", f"{sum(one.contained for one in ones)} of {len(ones)}")


def _row(method: _Method, ones: list[TruthMeasurement]) -> tuple[str, ...]:
    errors = [method.value(one) - one.true_ms for one in ones]
    worst, mean = max(errors, key=abs), sum(errors) / len(errors)
    claimed = max(one.claim_ms for one in ones) + method.slack_ms
    return (method.name, f"{len(ones)}", f"{mean:+.3f}", f"{worst:+.3f}", f"{claimed:.3f}")
