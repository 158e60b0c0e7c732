"""The table of networks as Markdown. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hpn.failover.analysis.model import DrillMetrics, EdgeResult
from hpn.results.judge.verdict import Verdict
from hpn.results.run.manifest import Manifest
from tests.product.network_cells import (
    BROKEN_S,
    FAULTS,
    HOSTS,
    IB_TIMEOUT,
    NETWORKS,
    SIZE,
    Fault,
    Network,
    Trial,
    fabric_of,
    switches,
)
from tests.product.network_counts import Counts
from tests.product.network_sizes import MONTHS, QUEUE_PAIRS, SIZES, AtSize
from tests.product.table_notes import doubted, facts

TOLD = f"""\
# Networks side by side

Written by `make network-table`: the same faults and traffic on each [network](architectures.md), in virtual time. Path
control is as each network comes. A fault lasts {BROKEN_S} s. Queue pairs have `ib_timeout: {IB_TIMEOUT}`,
NCCL's default, and outlive it. NICs of one port wait for no LACP. Rates are those of each network's preset, so compare
within a row first.
"""
STREAMS = """\
## Outages

Longest outage of a stream, in brackets the streams that lost packets, of all. A goodput of all below 100 % while the
fault lasts is shown. A lost packet counts as the interval between two, 0.8 to 3.3 ms here. Nothing lost is *0*.
"""
JOB = f"""\
## A job

{HOSTS} GPUs in different racks repeat a ring all-reduce of {SIZE}. *Healthy* is an iteration before the fault. Then
come the longest iteration under the fault, in multiples of that, and iterations lost.

The last packet of a message has none behind it that tells of its loss. It waits for the retry timer, 4.3 s, which is 36
or 72 iterations. Whether one is hit hangs on the moment, and each cell is one run. Eight planes have NSCC and switches
that trim. A plane that has lost half of a ToR's uplinks is full, and each step waits for its slowest packet. So that
costs more than a NIC port, whose plane is left alone.
"""
COUNTS = """\
## Size and cost

Whole networks as published, counted from their plans. Switches, links, optics and dollars are per GPU. *Paths*:
shortest ones between NICs of a rail in the first and the last segment, by every port. Prices are ours, and by rate.
51.2T of switch ports in use cost 40,000 dollars, a 400G transceiver 800 (two a link between switches), a NIC-ToR cable
of 400G 800.
"""


SIZED = f"""\
## At three sizes

The same switches of 51.2T for all, and sizes of ours where none is published: no tier is narrower above than below.
Hosts have eight NICs of 400G, MRC's of 800G; one in direct networks. *Hops*: switches on the longest of the shortest
paths. At {SIZES[0]:,} GPUs {MONTHS} [months](model.md#a-month) of failures are modelled, with {QUEUE_PAIRS} queue pairs
a NIC, each on one path, and what `hpn month` assumes. *Cut*: an iteration with a NIC-ToR link cut.
"""


@dataclass(frozen=True, slots=True)
class Made:
    """A run of the table."""

    trial: Trial
    manifest: Manifest
    verdict: Verdict
    metrics: DrillMetrics


def page(runs: Sequence[Made], counted: Iterable[Counts], sized: Sequence[Sequence[AtSize]] = ()) -> str:
    """Return the page; a network lacks the cells of runs that are not there, and jobs are left out without any."""
    job = ["", JOB, *_rows(runs, "job")] if any(each.trial.traffic == "job" for each in runs) else []
    parts = [TOLD, *facts(runs), "", STREAMS, *_rows(runs, "streams"), *job, *doubted(runs)]
    sizes = [line for at, rows in enumerate(sized) for line in _at_size(at, rows)]
    return "\n".join((*parts, "", COUNTS, *_counts(counted), *(("", SIZED, *sizes[1:]) if sizes else ()))) + "\n"


def _rows(runs: Sequence[Made], traffic: str) -> Iterator[str]:
    job = traffic == "job"
    heads = ["network", *(["healthy"] if job else ["switches"]), *(fault.title for fault in FAULTS)]
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    found = {(each.trial.network, each.trial.fault): each.metrics for each in runs if each.trial.traffic == traffic}
    for network in NETWORKS:
        mine = {fault: found.get((network, fault)) for fault in FAULTS if fault.target(fabric_of(network))}
        yield f"| {' | '.join((network.title, _first(network, mine.values(), job), *_cells(mine, job)))} |"


def _first(network: Network, mine: Iterable[DrillMetrics | None], job: bool) -> str:
    if not job:
        return str(switches(network))
    return next((f"{each.job.mean_ms:.0f} ms" for each in mine if each is not None and each.job is not None), "")


def _cells(mine: dict[Fault, DrillMetrics | None], job: bool) -> Iterator[str]:
    for fault in FAULTS:
        if fault not in mine:
            yield "no Agg"
            continue
        metrics = mine[fault]
        yield "" if metrics is None else _job(metrics) if job else _streams(metrics.edges[0], metrics.flow_count)


def _streams(edge: EdgeResult, flows: int) -> str:
    if edge.flows_died:
        return f"**{edge.flows_died} dead**"
    over = "over " if edge.never_over else ""
    worst, goodput = edge.worst_outage_plbm_ms, edge.goodput
    if worst < _LEAST_MS:
        return "0"
    left = f"{goodput.during_bps / goodput.before_bps:.0%}"
    return f"{over}{_ms(worst)} ({edge.flows_lossy}/{flows}){'' if left == '100%' else f', {left}'}"


_LEAST_MS = 0.1


def _ms(value: float) -> str:
    return f"{value / 1000:.1f} s" if value >= 1000 else f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def _job(metrics: DrillMetrics) -> str:
    job = metrics.job
    if job is None or job.dead or not job.mean_ms:
        return "**dead**"
    edge = job.edges[0]
    return f"x{edge.longest_ms / job.mean_ms:.1f}, {max(edge.lost, 0.0):.1f}"


_HEADS = ("network", "GPUs", "tiers", "switches", "links", "optics", "dollars", "paths", "NICs below a ToR")


def _counts(counted: Iterable[Counts]) -> Iterator[str]:
    yield f"| {' | '.join(_HEADS)} |"
    yield "|---" * len(_HEADS) + "|"
    for each in counted:
        yield f"| {each.title} | {each.gpus:,} | {each.tiers} | {' | '.join(_figures(each))} |"


def _figures(each: Counts) -> Iterator[str]:
    yield from (f"{each.switches:.3f}", f"{each.links:.2f}", f"{each.optics:.2f}", f"{each.dollars:,.0f}")
    yield from (f"{each.paths:,}", f"{each.below_tor}")


_SIZE_HEADS = ("network", "GPUs", "hops", "switches", "links", "optics", "dollars", "paths", "NICs a ToR")
_MONTH_HEADS = ("iteration", "cut", "crashes", "lost")


def _at_size(at: int, rows: Sequence[AtSize]) -> Iterator[str]:
    heads = (*_SIZE_HEADS, *(_MONTH_HEADS if any(row.month for row in rows) else ()))
    yield from ("", f"### {SIZES[at]:,} GPUs", "", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|")
    for row in rows:
        each, month = row.counts, row.month
        if each is None:
            yield f"| {row.network.title} | {row.network.why} |{' |' * (len(heads) - 2)}"
            continue
        cells = [row.network.title, f"{each.gpus:,}", f"{each.hops}", *_figures(each)]
        if month is not None:
            cut = f"x{month.one_link_cut:.3f}" if math.isfinite(month.one_link_cut) else "stops"
            cells += [f"{month.iteration_s:.2f} s", cut, f"{month.crashes.mean:.1f}", f"{month.lost_share:.2%}"]
        yield f"| {' | '.join(cells)} |"
