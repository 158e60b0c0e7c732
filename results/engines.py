"""The same drill on several engines side by side: failover times, and why they differ. Pure.

This is the cross-check that the nft datapath tells the truth: what Linux bonding does in a guest must differ from it
only by causes that can be named. Changes when engines are held against each other by another rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from failover.analysis.model import DrillMetrics, EdgeKind
from results.compare import Spread, compare
from results.comparison.causes import UNEXPLAINED, Side, causes
from results.run.manifest import Manifest
from results.text.tables import table
from results.text.values import milliseconds


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
    spreads = {side.label: {(s.edge, s.figure): s for s in compare(side.metrics)} for side in engines}
    reference, *others = engines
    kinds = {result.edge.label: result.edge.kind for result in reference.metrics[0].edges}
    found = []
    for key, base in spreads[reference.label].items():
        values = {side.label: _median(spreads[side.label].get(key)) for side in engines}
        reasons = {
            other.label: _reason(reference, other, base, spreads[other.label].get(key), kinds[base.edge])
            for other in others
        }
        found.append(Difference(base.edge, base.figure, values, reasons))
    return tuple(found)


def _by_engine(runs: Iterable[tuple[Manifest, DrillMetrics]]) -> list[Side]:
    """The runs of each engine and datapath, called 'qemu/kernel'."""
    groups: dict[str, list[tuple[Manifest, DrillMetrics]]] = {}
    for manifest, metrics in runs:
        groups.setdefault(f"{manifest.engine}/{manifest.datapath}", []).append((manifest, metrics))
    return [Side(label, of[0][0], [metrics for _, metrics in of]) for label, of in groups.items()]


def _median(spread: Spread | None) -> float | None:
    return None if spread is None else spread.median_ms


def _reason(reference: Side, other: Side, base: Spread, spread: Spread | None, kind: EdgeKind) -> str:
    """Why the other's figure differs; of causes those that make the slower one slower."""
    if spread is None:
        return f"not measured{f': {other.doubt}' if other.doubt else ''}"
    if base.interval_ms.has(spread.interval_ms):
        return f"agrees: {base.interval_ms.text} and {spread.interval_ms.text} ms have values in common"
    slower, faster = (other, reference) if spread.low_ms > base.high_ms else (reference, other)
    return "; ".join(causes(slower, faster, base.figure, at_repair=kind is EdgeKind.REPAIR)) or UNEXPLAINED


def engine_tables(found: Sequence[Difference]) -> list[Table]:
    """Failover times side by side, and below them each reason once with the figures it explains."""
    if not found:
        return []
    labels = list(found[0].values_ms)
    times = table(
        "failover times in ms, medians",
        ("edge", "figure", *(f">{label}" for label in labels)),
        ((d.edge, d.figure, *(milliseconds(d.values_ms[label]) for label in labels)) for d in found),
        keys=2,
    )
    columns = ("engine", "reason", "figures")
    return [times, table(f"why they differ from {labels[0]}", columns, _reason_rows(found), keys=2)]


def _reason_rows(found: Sequence[Difference]) -> Iterator[tuple[str, str, str]]:
    explained: dict[tuple[str, str], list[str]] = {}
    for difference in found:
        for label, reason in difference.reasons.items():
            explained.setdefault((label, reason), []).append(f"{difference.edge}: {difference.figure}")
    for (label, reason), figures in explained.items():
        yield label, reason, ", ".join(figures)
