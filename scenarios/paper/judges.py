"""Judges of the paper's claims: from evidence to our figure and the answer. Pure.

A new claim is one function here and one entry in ``scenarios.paper.claims``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from hpn.failover.analysis.intervals import RECOVER, phase_interval
from hpn.failover.analysis.model import DrillMetrics, EdgeKind, EdgeResult
from hpn.failover.analysis.ports import PortMetrics, PortResult
from hpn.results.judge.verdict import Check, Outcome, at_most
from hpn.scenarios.expect.evidence import Evidence, RunFacts
from hpn.scenarios.expect.expectation import Expectation
from hpn.scenarios.expect.outage import WORST_OUTAGE
from hpn.scenarios.expect.selection import At, Bound
from hpn.scenarios.expect.verdict import judge_expectation
from hpn.scenarios.paper.path_figures import PathFigures
from hpn.testbed.errors import MachineError
from hpn.testbed.events import Event
from hpn.testbed.fabric.inventory import Inventory
from hpn.testbed.fabric.model import LinkKind, Role

NEGLIGIBLE_MS = 100
"""Limit for 'negligible', for which the paper has no figure: our drills allow a receiver as much.

It is far below an iteration.
"""

AT_ONCE_MS = 5000
"""Limit for 'at once', for which the paper has no figure: well below the 9 s that it calls a halt."""

HALT_MS = 9000
"""Duration of a flap's halt in the paper."""

_BACK = 0.95
_IDLE = 0.01  # share of a port's rate: control frames and acknowledgements


@dataclass(frozen=True, slots=True)
class ClaimEvidence:
    """Measured and computed evidence: runs by name, path figures by architecture, the whole pod's inventory.

    A run is a drill, or a drill with another seed: ``DRILL@SEED`` (``scenarios.paper.claim.drawn``).
    """

    drills: Mapping[str, DrillMetrics]
    events: Mapping[str, Sequence[Event]]  # by the same names
    paths: Mapping[str, PathFigures]
    pod: Inventory
    preset: str = "pod"  # source of ``pod``


@dataclass(frozen=True, slots=True)
class Finding:
    """Result for a claim. ``agrees`` is None if unknown: there is no figure, or its limit lies in its interval."""

    ours: str
    agrees: bool | None


_TOLD = {Outcome.PASS: True, Outcome.FAIL: False, Outcome.INCONCLUSIVE: None}


def _edges(metrics: DrillMetrics, kind: EdgeKind) -> list[EdgeResult]:
    return [result for result in metrics.edges if result.edge.kind is kind]


def worst_outage(metrics: DrillMetrics, at: At, bound: Bound, limit_ms: float) -> Check:
    """Compare the longest outage of any flow over all edges of a kind with a limit, as for a drill's expectation."""
    return judge_expectation(Expectation(WORST_OUTAGE, bound, limit_ms * 1e6, edge=at), Evidence(metrics, RunFacts()))


def _ms(check: Check, digits: str) -> str:
    return f"untold ({check.evidence})" if check.measured is None else f"{check.measured:{digits}} ms"


def every(*told: bool | Outcome | None) -> bool | None:
    """Return True if all hold, else False if one does not, else None."""
    found = [_TOLD.get(one, one) if isinstance(one, Outcome) else one for one in told]
    return False if False in found else None if None in found else True


def deaths(metrics: DrillMetrics) -> int:
    """Return the number of queue pairs that exhausted their retries."""
    return sum(result.flows_died for result in metrics.edges)


def kept(metrics: DrillMetrics, host: str) -> float:
    """Return the goodput left for a host's NICs after the first failure has settled, as a share; 1.0: all."""
    failure = _edges(metrics, EdgeKind.FAILURE)[0]
    shares = [nic.goodput for nic in failure.nics if nic.nic.startswith(f"{host}.")]
    return sum(goodput.after_bps for goodput in shares) / sum(goodput.before_bps for goodput in shares)


def silent(metrics: DrillMetrics) -> tuple[int, int]:
    """Return how many hit flows deliver nothing after the first failure has settled, and the number of hit flows."""
    failure = _edges(metrics, EdgeKind.FAILURE)[0]
    hit = [flow for flow in metrics.flows_at(failure) if flow.relation.is_touched]
    return sum(flow.goodput.after_bps < 0.01 * flow.goodput.before_bps for flow in hit), len(hit)


def hit_left(metrics: DrillMetrics) -> float:
    """Return the goodput left for the best hit NIC after the failure has settled, as a share."""
    failure = _edges(metrics, EdgeKind.FAILURE)[0]
    shares = [nic.goodput for nic in failure.nics if nic.nic in failure.edge.nics and nic.goodput.before_bps > 0]
    return max(goodput.after_bps / goodput.before_bps for goodput in shares)


def still(metrics: DrillMetrics) -> tuple[int, int]:
    """Return how many hit flows have their goodput back after the last repair has settled, and how many are hit."""
    failure, repair = _edges(metrics, EdgeKind.FAILURE)[0], _edges(metrics, EdgeKind.REPAIR)[-1]
    pairs = zip(metrics.flows_at(failure), metrics.flows_at(repair), strict=True)
    hit = [(at, end) for at, end in pairs if at.relation.is_touched]
    return sum(end.goodput.after_bps >= _BACK * at.goodput.before_bps for at, end in hit), len(hit)


def dual_tor_loses(found: ClaimEvidence) -> Finding:
    """Judge 6.25 %: the loss of an 8-rail host without one of its ports; a stalled flow would halt the job."""
    lost = 1 - kept(found.drills["link-down-full-load"], "p0.s0.h0")
    stand, hit = silent(found.drills["link-down"])
    text = f"{-lost:.2%} of the host's goodput, at 90 % load; at 40 % load {stand} of {hit} flows hit stand still"
    return Finding(text, 0.03 <= lost <= 0.08 and stand == 0 < hit)


def back_at_once(found: ClaimEvidence) -> Finding:
    """Judge dual-ToR after a repair: no loss by it, every flow works, and the port soon carries traffic again."""
    worst = worst_outage(found.drills["link-down"], At.REPAIR, Bound.BELOW, NEGLIGIBLE_MS)
    back, hit = still(found.drills["link-down"])
    again, soon = _fits_again(found.drills["link-down-full-load"])
    told = _ms(worst, ".1f")
    text = f"longest outage at the repair {told}, {back} of {hit} flows hit go on; at 90 % load all fits {again}"
    return Finding(text, every(worst.outcome, back == hit > 0, soon))


def _fits_again(metrics: DrillMetrics) -> tuple[str, Outcome]:
    """Return when every flow gets through after the last repair, and the outcome for 'at once'."""
    repair = _edges(metrics, EdgeKind.REPAIR)[-1]
    ms = repair.phases.recover.ms
    if ms is None:
        return "never", Outcome.FAIL
    low, high = phase_interval(RECOVER, ms, repair, metrics)
    return f"after {ms / 1000:.1f} s", at_most("", ms, AT_ONCE_MS, low=low, high=high, strict=True).outcome


def single_tor_halts(found: ClaimEvidence) -> Finding:
    """Judge single-ToR without its only link."""
    left = hit_left(found.drills["link-down-single-tor"])
    return Finding(f"{left:.1%} of the NIC's goodput left", left < 0.01)


def short_outage(found: ClaimEvidence) -> Finding:
    """Judge single-ToR, repaired within a minute, with NCCL's own timers."""
    told, short = deaths(found.drills["outage-60s"]), deaths(found.drills["outage-30s"])
    fitted = deaths(found.drills["outage-60s-patient"])
    text = f"{told} queue pairs dead ({short} when repaired in 30 s; fitted: {fitted} if adapters wait twice as long)"
    return Finding(text, told == 0)


def long_outage(found: ClaimEvidence) -> Finding:
    """Judge single-ToR, repaired after two minutes, with NCCL's own timers."""
    told, fitted = deaths(found.drills["outage-120s"]), deaths(found.drills["outage-120s-patient"])
    return Finding(f"{told} queue pairs dead (fitted: {fitted} if adapters wait twice as long)", told > 0)


def flap_single_tor(found: ClaimEvidence) -> Finding:
    """Judge a flapping link without another port."""
    metrics = found.drills["link-flap-single-tor"]
    flaps = [each.edge for each in _edges(metrics, EdgeKind.FAILURE)]
    away_ms = (flaps[0].window_end_ns - flaps[0].inject_before_ns) / 1e6
    worst = worst_outage(metrics, At.FAILURE, Bound.ABOVE, HALT_MS)
    text = f"halted {_ms(worst, '.0f')} by {len(flaps)} x {away_ms:.0f} ms without carrier"
    return Finding(text, every(worst.outcome))


def flap_dual_tor(found: ClaimEvidence) -> Finding:
    """Judge a flapping link with another port."""
    names = ("link-flap", "link-flap-clos")
    hpn, clos = (worst_outage(found.drills[name], At.FAILURE, Bound.BELOW, NEGLIGIBLE_MS) for name in names)
    outages = f"{_ms(hpn, '.1f')} (HPN), {_ms(clos, '.1f')} (Clos)"
    text = f"longest outage {outages}; negligible: below {NEGLIGIBLE_MS} ms"
    return Finding(text, every(hpn.outcome, clos.outcome))


def rack_gone(found: ClaimEvidence) -> Finding:
    """Judge a failed data plane at a stack's primary, and at an HPN ToR."""
    stacked, hpn = (silent(found.drills[name]) for name in ("stacked-dataplane-death", "tor-dataplane-death"))
    text = f"flows of the rack that carry nothing: stacked {stacked[0]} of {stacked[1]}; HPN {hpn[0]} of {hpn[1]}"
    return Finding(text, stacked[0] == stacked[1] > 0 and hpn[0] < hpn[1])


def upgrade(found: ClaimEvidence) -> Finding:
    """Judge a set of ToRs in which one has another version."""
    stacked, hpn = (_shut_down(found.events[name]) for name in ("stacked-upgrade", "stacked-upgrade-hpn"))
    text = f"ToRs that shut themselves down: stacked {', '.join(stacked) or 'none'}; HPN {', '.join(hpn) or 'none'}"
    return Finding(text, bool(stacked) and not hpn)


def _shut_down(events: Sequence[Event]) -> list[str]:
    """Return the ToRs that a stack took out of service."""
    return sorted({event.node for event in events if event.subject == "stack" and event.what == "shut-down"})


def imbalance(found: ClaimEvidence) -> Finding:
    """Judge the load of the two ports towards a NIC."""
    clos, hpn = (ratios(found.drills[f"port-load-{name}"]) for name in ("clos", "hpn"))
    text = f"Clos: up to {max(clos):.1f}x, median {median(clos):.1f}x; dual plane: {max(hpn):.2f}x ({len(hpn)} NICs)"
    computed = _computed(found, lambda clos, hpn: f"{clos.worst_ratio:.1f}x and {hpn.worst_ratio:.1f}x")
    return Finding(text + computed, max(clos) >= 2 and max(hpn) < 1.1)


def polarisation(found: ClaimEvidence) -> Finding:
    """Judge hash polarisation: idle ports from Aggs to ToRs if all switches hash alike, and drops of others."""
    (idle, dropped, ports), hpn = (_unused(found.drills[f"one-seed-{name}"]) for name in ("clos", "hpn"))
    text = (
        f"Agg ports towards ToRs that carry nothing: Clos {idle} of {ports}, the others drop {dropped:,} packets; "
        f"two planes {hpn[0]} of {hpn[2]}, dropped {hpn[1]:,}"
    )
    return Finding(text, idle * 4 >= ports and hpn[0] == 0)


def _unused(metrics: DrillMetrics) -> tuple[int, int, int]:
    """Return of the ports from Aggs to ToRs: idle ports, packets dropped by all, number of ports."""
    ports = [port for port in _sampled(metrics).ports if port.tier == "agg down"]
    return sum(port.load < _IDLE for port in ports), sum(port.drops for port in ports), len(ports)


def queues(found: ClaimEvidence) -> Finding:
    """Judge the queues of the ports towards NICs, the mean over ports and time."""
    runs = [found.drills[f"port-load-{name}"] for name in ("clos", "hpn")]
    clos, hpn = (_towards_nics(run) for run in runs)
    mean_clos, mean_hpn = (mean_queue_ms(run) for run in runs)
    worst = [max(port.queue_p99_ms for port in ports) for ports in (clos, hpn)]
    shrinks = 1 - mean_hpn / mean_clos if mean_clos else 0.0
    text = (
        f"{-shrinks:+.1%}: {mean_clos:.2f} ms with Clos, {mean_hpn:.4f} ms with two planes, on the mean of {len(hpn)} "
        f"ports at 80 % load; p99 of the worst port {worst[0]:.1f} and {worst[1]:.2f} ms"
    )
    return Finding(text, shrinks > 0.5)


def selection(found: ClaimEvidence) -> Finding:
    """Judge path selection against ports in turn, which already fills both planes.

    The slowest NIC sets a collective's pace. By hash, a whole NIC may be on one port (Linux bonding's hash is linear).
    It is a poor baseline and only shown for comparison.
    """
    paces = {name: pace(found.drills[f"path-choice-{name}"]) for name in ("disjoint", "in-turn", "hash")}
    best = paces["disjoint"]
    gains = {name: best / slowest - 1 for name, slowest in paces.items()}
    slowest_pair = worst_pair(found.drills["path-choice-hash"])
    text = (
        f"{gains['in-turn']:+.1%} against ports in turn ({gains['hash']:+.1%} against hashes): at 90 % load the "
        f"slowest NIC gets {best:.0%} through by choice, {paces['in-turn']:.0%} in turn, {paces['hash']:.0%} by hash "
        f"(the slowest queue pair by hash {slowest_pair:.0%})"
    )
    computed = _computed(found, _worst_links)
    return Finding(text + computed, gains["in-turn"] > 0.1)


def _computed(found: ClaimEvidence, words: Callable[[PathFigures, PathFigures], str]) -> str:
    """Return a second opinion as text: computed from the exact paths of the host's kernel, if labs can run there."""
    if not found.paths:
        return ""
    return f"; computed from paths: {words(found.paths['dual-tor-clos'], found.paths['hpn'])}"


def _worst_links(_clos: PathFigures, hpn: PathFigures) -> str:
    loads = f"{hpn.hashed_worst:.0%} by hash, {hpn.turns_worst:.0%} in turn, {hpn.chosen_worst:.0%} by choice"
    return f"load of the worst link at full rate {loads}"


def ratios(metrics: DrillMetrics) -> list[float]:
    """Return for every receiving NIC the load of its busier port over that of the other; infinite if that one idles."""
    return [nic.ratio or float("inf") for nic in _sampled(metrics).balance]


def mean_queue_ms(metrics: DrillMetrics) -> float:
    """Return the mean queue of the ports towards NICs in ms, over ports and time."""
    return fmean(port.queue_mean_ms for port in _towards_nics(metrics))


def _towards_nics(metrics: DrillMetrics) -> list[PortResult]:
    return [port for port in _sampled(metrics).ports if port.nic is not None]


def _sampled(metrics: DrillMetrics) -> PortMetrics:
    """Return the metrics of a run's ports. MachineError for a run without samples."""
    if metrics.ports is None:
        raise MachineError("a run has no samples of its ports; its drill must say what to sample")
    return metrics.ports


def pace(metrics: DrillMetrics) -> float:
    """Return the delivered share of packets for the worst NIC; 1.0: all."""
    sent: Counter[str] = Counter()
    received: Counter[str] = Counter()
    for flow in metrics.flows:
        sent[flow.src_nic] += flow.sent - flow.in_flight_at_end
        received[flow.src_nic] += flow.received
    return min(received[nic] / sent[nic] for nic in sent)


def worst_pair(metrics: DrillMetrics) -> float:
    """Return the delivered share of packets for the worst queue pair."""
    return min(flow.received / (flow.sent - flow.in_flight_at_end) for flow in metrics.flows)


def pod(found: ClaimEvidence) -> Finding:
    """Judge the size of a pod."""
    pod = found.pod
    links = f"{pod.link_count(LinkKind.ACCESS):,} + {pod.link_count(LinkKind.FABRIC):,} links"
    text = f"{pod.gpus:,} GPUs, {pod.tors} ToRs, {pod.aggs} Aggs, {links}"
    return Finding(text, (pod.gpus, pod.tors, pod.aggs) == (15_360, 240, 120))


def oversubscription(found: ClaimEvidence) -> Finding:
    """Judge the downlink over uplink capacity of a ToR."""
    ratios = {budget.role: budget.oversubscription or 0.0 for budget in found.pod.budgets}
    return Finding(f"ToR {ratios[Role.TOR]:.3f}:1", abs(ratios[Role.TOR] - 1.067) < 0.001)
