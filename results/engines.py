"""The same drill on several engines side by side: failover times, and why they differ. Pure.

This is the cross-check that the nft datapath tells the truth: what Linux bonding does in a guest must differ from it
only by causes that can be named. Changes when an engine or a datapath gets another timer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from failover.analysis.model import DrillMetrics, EdgeKind
from results.compare import Spread, compare
from results.comparison.causes import CPU_COST as CPU_COST
from results.comparison.causes import UNEXPLAINED as UNEXPLAINED
from results.run.manifest import Manifest
from results.text.tables import table
from results.text.terminal import milliseconds
from testbed.lag.datapaths import DATAPATHS
from testbed.vm.engines import has_virtual_time


@dataclass(frozen=True, slots=True)
class EngineRuns:
    """The runs of one drill on one engine; their medians are compared."""

    runs: tuple[tuple[Manifest, DrillMetrics], ...]

    @property
    def manifest(self) -> Manifest:
        """The manifest of the first run."""
        return self.runs[0][0]

    @property
    def label(self) -> str:
        """'qemu/kernel'."""
        return f"{self.manifest.engine}/{self.manifest.datapath}"

    @property
    def virtual(self) -> bool:
        """Whether its clock is virtual."""
        return has_virtual_time(self.manifest.engine)

    @property
    def busy(self) -> str:
        """Why its figures are doubtful, '' when they are not."""
        doubts = [doubt for _, metrics in self.runs for doubt in metrics.inconclusive]
        idle = [metrics.host.idle_mean_pct for _, metrics in self.runs if metrics.host is not None]
        if doubts:
            return doubts[0]
        return f"its host was {min(idle):.0f} % idle" if idle and min(idle) < 10 else ""


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure of one edge: ms by engine label (None: not measured), and each engine's reason against the first."""

    edge: str
    figure: str
    values_ms: Mapping[str, float | None]
    reasons: Mapping[str, str]


def side_by_side(runs: Iterable[tuple[Manifest, DrillMetrics]]) -> tuple[Difference, ...]:
    """Every figure that the first run's engine, the reference, measured; the others against it."""
    engines = _by_engine(runs)
    if not engines:
        return ()
    spreads = {e.label: {(s.edge, s.figure): s for s in compare([m for _, m in e.runs])} for e in engines}
    reference, *others = engines
    kinds = {result.edge.label: result.edge.kind for result in reference.runs[0][1].edges}
    found = []
    for key, base in spreads[reference.label].items():
        values = {e.label: _median(spreads[e.label].get(key)) for e in engines}
        reasons = {
            other.label: _reason(reference, other, base, spreads[other.label].get(key), kinds[base.edge])
            for other in others
        }
        found.append(Difference(base.edge, base.figure, values, reasons))
    return tuple(found)


def _by_engine(runs: Iterable[tuple[Manifest, DrillMetrics]]) -> list[EngineRuns]:
    groups: dict[tuple[str, str], list[tuple[Manifest, DrillMetrics]]] = {}
    for manifest, metrics in runs:
        groups.setdefault((manifest.engine, manifest.datapath), []).append((manifest, metrics))
    return [EngineRuns(tuple(found)) for found in groups.values()]


def _median(spread: Spread | None) -> float | None:
    return None if spread is None else spread.median_ms


def _reason(reference: EngineRuns, other: EngineRuns, base: Spread, spread: Spread | None, kind: EdgeKind) -> str:
    if spread is None:
        return f"not measured{f': {other.busy}' if other.busy else ''}"
    if base.interval_ms.has(spread.interval_ms):
        return f"agrees: {base.interval_ms.text} and {spread.interval_ms.text} ms have values in common"
    return "; ".join(_causes(reference, other, base.figure, kind)) or UNEXPLAINED


def _causes(reference: EngineRuns, other: EngineRuns, figure: str, kind: EdgeKind) -> Iterator[str]:
    """What is known to differ between the two and touches this figure."""
    datapaths = {reference.manifest.datapath, other.manifest.datapath}
    if len(datapaths) > 1 and figure != "detect":
        yield _how_they_react(datapaths, kind)
    if reference.virtual != other.virtual:
        yield CPU_COST
    for engine in (reference, other):
        if engine.busy:
            yield f"CPU noise on {engine.label}: {engine.busy}"


def _how_they_react(datapaths: set[str], kind: EdgeKind) -> str:
    """What each LAG datapath says of its own time."""
    known = [lag for lag in DATAPATHS.values() if lag.name in datapaths]
    said = [lag.at_repair if kind is EdgeKind.REPAIR else lag.at_failure for lag in known]
    unknown = sorted(datapaths - DATAPATHS.keys())
    return "; ".join([*said, *(f"nothing is known here of the {name} datapath (a plug-in?)" for name in unknown)])


def engine_tables(found: Sequence[Difference]) -> list[Table]:
    """Failover times side by side, and below them each reason once with the figures it explains."""
    if not found:
        return []
    labels = list(found[0].values_ms)
    times = table(
        "failover times in ms, medians",
        ("edge", "figure", *(f">{label}" for label in labels)),
        ((d.edge, d.figure, *(milliseconds(d.values_ms[label]) for label in labels)) for d in found),
    )
    return [times, table(f"why they differ from {labels[0]}", ("engine", "reason", "figures"), _reason_rows(found))]


def _reason_rows(found: Sequence[Difference]) -> Iterator[tuple[str, str, str]]:
    explained: dict[tuple[str, str], list[str]] = {}
    for difference in found:
        for label, reason in difference.reasons.items():
            explained.setdefault((label, reason), []).append(f"{difference.edge}: {difference.figure}")
    for (label, reason), figures in explained.items():
        yield label, reason, ", ".join(figures)
