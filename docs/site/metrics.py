"""The reference of metrics and expectations, read from the registry and from what stands behind each name."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic.fields import FieldInfo

from docs.site.markdown import code, page, plain, table
from docs.site.models import keys
from hpn.scenarios.drill.schema import (
    OrderExpectation,
    UntouchedExpectation,
    YesOrNoExpectation,
    expectation_model,
)
from hpn.scenarios.expect.metric import Metric, Pauses, Shape, Slowed, Traffic
from hpn.scenarios.expect.metrics import METRICS
from hpn.scenarios.expect.selection import Bound

_INTRODUCTION = """# Metrics and expectations

An entry of a drill's `expect:` is the name of a metric and a limit: `- worst_outage: {below: 50 ms, edge: failure}`.
A limit inside the interval of what was measured is *inconclusive*."""

_TRAFFIC = {
    Traffic.STREAMS: "streams",
    Traffic.JOB: "a job of hpn's own",
    Traffic.RANKS: "a job or a client",
    Traffic.FLOWS: "streams, or a job of hpn's own",
    Traffic.EITHER: "any traffic",
}
_SLOWED = {
    Slowed.NOT: "as it is",
    Slowed.STRETCHED: "stretched, on a very slow kernel",
    Slowed.PER_PACKET: "divided, as packets are",
    Slowed.PER_QUEUE_PAIR: "divided, as queue pairs are",
}
_LIMIT = {Shape.YES_NO: "yes or no", Shape.PARTS: "parts of the fabric", Shape.EVENTS: "events"}


def metrics() -> str:
    """The page of every metric."""
    rows = ((f"[{key}](#{key})", plain(metric.summary)) for key, metric in METRICS.items())
    return page(_INTRODUCTION, table(("metric", ""), rows), *(_metric(metric) for metric in METRICS.values()))


def _metric(metric: Metric) -> str:
    model, limits = _behind(metric)
    return page(
        f"## {code(metric.key)}",
        plain(metric.summary),
        table(("", ""), _facts(metric, limits)),
        model,
    )


def _behind(metric: Metric) -> tuple[str, str]:
    """The table of keys behind a metric's name without its limits, and what a limit is."""
    if metric.shape is Shape.PARTS:
        return keys(UntouchedExpectation), _LIMIT[metric.shape]
    if metric.shape is Shape.EVENTS:
        return keys(OrderExpectation), _LIMIT[metric.shape]
    if metric.shape is Shape.YES_NO:
        return keys(YesOrNoExpectation), _LIMIT[metric.shape]
    model = expectation_model(metric)
    bounds: dict[str, FieldInfo] = {name: f for name, f in model.model_fields.items() if name in list(Bound)}
    example = next((field.examples[0] for field in bounds.values() if field.examples), "")
    limit = f"{', '.join(code(name) for name in bounds)}, such as {code(f'{_first(bounds)}: {example}')}"
    return keys(model, left_out=bounds), limit


def _first(bounds: dict[str, FieldInfo]) -> str:
    return next(name for name, field in bounds.items() if field.examples)


def _facts(metric: Metric, limits: str) -> Iterator[tuple[str, str]]:
    needs = metric.needs
    yield "limit", limits
    if metric.unit.value and metric.shape is Shape.LIMITS:
        yield "unit in results", plain(metric.unit)
    wanted = [_TRAFFIC[needs.traffic]]
    wanted += ["a fault"] if needs.fault else []
    wanted += ["a host replaced by a spare"] if needs.takeover else []
    wanted += ["`sample:`"] if needs.samples else []
    wanted += ["a topology with `switch:`"] if needs.buffers else []
    wanted += ["a NIC of two ports"] if needs.two_ports else []
    wanted += ["a pattern of transfers"] if needs.transfers else []
    yield "needs", ", ".join(wanted)
    if needs.pauses is Pauses.BLIND:
        yield "flows that pause", "cannot be judged by it"
    if metric.slowed is not Slowed.NOT:
        yield "limit where a kernel gets part of the traffic", _SLOWED[metric.slowed]
