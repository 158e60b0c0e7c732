"""The table network x job x fault as Markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from hpn.failover.analysis.job import JobMetrics
from hpn.failover.analysis.model import DrillMetrics
from hpn.results.judge.verdict import Outcome, Verdict
from hpn.results.run.manifest import Manifest
from tests.product.client_cells import SIZE
from tests.product.client_loss import losses_of
from tests.product.lossless_cells import (
    HEALTHY_S,
    INCAST,
    NETWORKS,
    QUEUE,
    SETTLE_S,
    TITLES,
    TROUBLES,
    Lossy,
    Trial,
    Trouble,
)

TITLE = "\n## Lossy and lossless networks\n"
TOLD = f"""
The same jobs on HPN, a run for each cell. Lossy queues hold {QUEUE}; [lossless switches](lossless.md) have 2 MB, and
gloo's TCP is in the lossless class. gloo and rxe obey neither marks nor grants.

`123/5.6/14/40/0`: 123 ms an iteration, longest stall 5.6 s, 14 packets dropped by queues, 40 sent again (rxe: retries),
no queue pair dead. Incast: five ranks send {SIZE} each for {HEALTHY_S + SETTLE_S} s. *paused*: the port stopped most.
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Figures of one cell. ``again``: packets of the own model, retries of rxe; None where nothing counts them.

    ``died_s``: seconds from the fault, or from the begin, to the job's death.
    """

    period_ms: float
    stall_s: float
    dropped: int
    again: int | None
    dead: int
    paused_s: float
    unfinished: bool = False
    died_s: float | None = None


@dataclass(frozen=True, slots=True)
class Tried:
    """A run of the table."""

    trial: Trial
    manifest: Manifest
    verdict: Verdict
    cost: Cost | None


def cost_of(metrics: DrillMetrics) -> Cost | None:
    """Return the figures of a run; None if fewer than two iterations ended before the fault."""
    job = metrics.job
    if job is None or len(job.iterations) < 2:
        return None
    buffers = [each for each in metrics.buffers or () if each.is_switch]
    ports = () if metrics.ports is None or metrics.buffers is not None else metrics.ports.ports
    dropped = sum(each.lost for each in buffers) + sum(port.drops for port in ports)
    paused_s = max((each.paused_ns for each in metrics.buffers or ()), default=0) / 1e9
    counts = dropped, _again(job), _dead(job), paused_s
    edges = [result.edge for result in metrics.edges]
    losses = list(losses_of(job, edges).values())
    if losses:
        loss = losses[0]
        return Cost(loss.period_ms, loss.stall_ms / 1e3, *counts, unfinished=loss.unfinished, died_s=loss.died_s)
    if edges:
        return None
    ends = sorted(each.end_ns for each in job.iterations)
    gaps_ms = [(later - earlier) / 1e6 for earlier, later in pairwise(ends)]
    usual = median(gaps_ms)
    return Cost(usual, (max(gaps_ms) - usual) / 1e3, *counts)


def _again(job: JobMetrics) -> int | None:
    if job.client is None:
        return job.packets_again
    return sum(of["completer_retry_err"] for of in job.counters.values()) if job.counters else None


def _dead(job: JobMetrics) -> int:
    names = "req_transport_retries_exceeded", "retry_exceeded_err"
    counted = sum(of.get(name, 0) for of in job.counters.values() for name in names)
    return max(counted, len(job.deaths)) if job.counters else 0


def section(runs: Sequence[Tried]) -> Iterator[str]:
    """Yield the lines of the section."""
    yield TOLD.rstrip("\n")
    yield ""
    machines = {f"{each.manifest.machine.get('cpus', '?')} CPUs" for each in runs}
    newest = max((each.manifest for each in runs), key=lambda manifest: manifest.wall_end)
    commit = newest.commit[:12] or "unknown"
    if others := len({each.manifest.commit for each in runs}) - 1:
        commit += f" (newest of {others + 1})"
    dates = sorted({each.manifest.date[:10] for each in runs})
    kernels = sorted({each.manifest.kernel for each in runs})
    yield (
        f"{' to '.join(dict.fromkeys((dates[0], dates[-1])))}, commit {commit}, {', '.join(machines)},"
        f" Linux {', '.join(kernels)} in virtual time, {len(runs)} runs."
    )
    yield ""
    titles = " | ".join(trouble.title for trouble in TROUBLES)
    yield f"| network | job | {titles} | paused |"
    yield f"|---|---|{'---|' * len(TROUBLES)}---|"
    for network in NETWORKS:
        for number, job in enumerate(network.jobs):
            cells = [_cell(_of(runs, network, job, trouble)) for trouble in TROUBLES]
            incast = _of(runs, network, job, INCAST)
            paused = f"{incast.cost.paused_s:.1f} s" if incast and incast.cost and incast.cost.paused_s else "-"
            yield f"| {'' if number else network.title} | {TITLES[job]} | {' | '.join(cells)} | {paused} |"
    for each in runs:
        if each.verdict.outcome is not Outcome.PASS:
            broken = [check.text for check in each.verdict.checks if check.outcome is Outcome.FAIL]
            yield f"\n{each.trial.name}: {each.verdict.outcome.value}, {', '.join((*broken, *each.verdict.doubts[:1]))}"


def _of(runs: Sequence[Tried], network: Lossy, job: str, trouble: Trouble) -> Tried | None:
    return next((each for each in runs if each.trial == Trial(network, job, trouble)), None)


def _cell(found: Tried | None) -> str:
    if found is None:
        return "not run"
    if found.cost is None:
        return "nothing measured"
    cost = found.cost
    again = "-" if cost.again is None else str(cost.again)
    stall = f"{'>' if cost.unfinished else ''}{cost.stall_s:.1f}"
    died = "" if cost.died_s is None else f" **died {cost.died_s:.2f}**"
    return f"{cost.period_ms:.0f}/{stall}/{cost.dropped}/{again}/{cost.dead}{died}"
