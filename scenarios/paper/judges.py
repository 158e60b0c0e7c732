"""Judges of the paper's claims: from evidence to our figure and the answer. Pure.

A new claim is one function here and one entry in ``scenarios.paper.claims``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from hpn.failover.analysis.intervals import RECOVER, phase_interval
from hpn.failover.analysis.model import DrillMetrics, EdgeKind
from hpn.failover.analysis.pause_cycles import deadlock
from hpn.results.judge.verdict import Check, Outcome, at_most
from hpn.scenarios.expect.selection import At, Bound
from hpn.scenarios.paper.measures import (
    ClaimEvidence,
    Finding,
    deaths,
    edges_of,
    every,
    hit_left,
    kept,
    mean_queue_ms,
    pace,
    ratios,
    sampled,
    silent,
    still,
    towards_nics,
    worst_outage,
    worst_pair,
)
from hpn.scenarios.paper.path_figures import PathFigures
from hpn.testbed.events import Event
from hpn.testbed.fabric.model import LinkKind, Role

NEGLIGIBLE_MS = 100
"""Limit for 'negligible', for which the paper has no figure: our drills allow a receiver as much.

It is far below an iteration.
"""

AT_ONCE_MS = 5000
"""Limit for 'at once', for which the paper has no figure: well below the 9 s that it calls a halt."""

HALT_MS = 9000
"""Duration of a flap's halt in the paper."""

_IDLE = 0.01  # share of a port's rate: control frames and acknowledgements


def _ms(check: Check, digits: str) -> str:
    return f"untold ({check.evidence})" if check.measured is None else f"{check.measured:{digits}} ms"


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
    repair = edges_of(metrics, EdgeKind.REPAIR)[-1]
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
    flaps = [each.edge for each in edges_of(metrics, EdgeKind.FAILURE)]
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


def bounces_deadlock(found: ClaimEvidence) -> Finding:
    """Judge a deadlock: a ring of queues waits at the end, and no flow gets through once all links are back."""
    metrics = found.drills["deadlock-bounce"]
    if metrics.buffers is None:
        return Finding("no counters of buffers", None)
    repair = edges_of(metrics, EdgeKind.REPAIR)[-1]
    flows = metrics.flows_at(repair)
    stand = sum(flow.goodput.after_bps == 0 for flow in flows)
    ring = deadlock(metrics.buffers)
    text = f"queues that wait for each other at the end: {len(ring)}; flows that stand still after the repair: {stand}"
    return Finding(f"{text} of {len(flows)}", bool(ring) and stand == len(flows))


def imbalance(found: ClaimEvidence) -> Finding:
    """Judge the load of the two ports towards a NIC."""
    clos, hpn = (ratios(found.drills[f"port-load-{name}"]) for name in ("clos", "hpn"))
    text = f"Clos: up to {max(clos):.1f}x, median {median(clos):.1f}x; dual plane: {max(hpn):.2f}x ({len(hpn)} NICs)"
    computed = _computed(found, lambda clos, hpn: f"{clos.worst_ratio:.1f}x and {hpn.worst_ratio:.1f}x")
    return Finding(text, max(clos) >= 2 and max(hpn) < 1.1, details=computed)


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
    ports = [port for port in sampled(metrics).ports if port.tier == "agg down"]
    return sum(port.load < _IDLE for port in ports), sum(port.drops for port in ports), len(ports)


def queues(found: ClaimEvidence) -> Finding:
    """Judge the queues of the ports towards NICs, the mean over ports and time."""
    runs = [found.drills[f"port-load-{name}"] for name in ("clos", "hpn")]
    clos, hpn = (towards_nics(run) for run in runs)
    mean_clos, mean_hpn = (mean_queue_ms(run) for run in runs)
    worst = [max(port.queue_p99_ms for port in ports) for ports in (clos, hpn)]
    shrinks = 1 - mean_hpn / mean_clos if mean_clos else 0.0
    text = f"{-shrinks:+.1%}: {mean_clos:.2f} ms with Clos, {mean_hpn:.4f} ms with two planes"
    details = f"mean of {len(hpn)} ports at 80 % load; p99 of the worst port {worst[0]:.1f} and {worst[1]:.2f} ms"
    return Finding(text, shrinks > 0.5, details=details)


def selection(found: ClaimEvidence) -> Finding:
    """Judge path selection against ports in turn, which already fills both planes.

    The slowest NIC sets a collective's pace. By hash, a whole NIC may be on one port (Linux bonding's hash is linear).
    It is a poor baseline and only shown for comparison.
    """
    paces = {name: pace(found.drills[f"path-choice-{name}"]) for name in ("disjoint", "in-turn", "hash")}
    best = paces["disjoint"]
    gains = {name: best / slowest - 1 for name, slowest in paces.items()}
    slowest_pair = worst_pair(found.drills["path-choice-hash"])
    text = f"{gains['in-turn']:+.1%} against ports in turn ({gains['hash']:+.1%} against hashes)"
    through = (
        f"at 90 % load the slowest NIC gets {best:.0%} through by choice, {paces['in-turn']:.0%} in turn, "
        f"{paces['hash']:.0%} by hash (the slowest queue pair by hash {slowest_pair:.0%})"
    )
    details = "; ".join(each for each in (through, _computed(found, _worst_links)) if each)
    return Finding(text, gains["in-turn"] > 0.1, details=details)


def _computed(found: ClaimEvidence, words: Callable[[PathFigures, PathFigures], str]) -> str:
    """Return a second opinion as text: computed from the exact paths of the host's kernel, if labs can run there."""
    if not found.paths:
        return ""
    return f"computed from paths: {words(found.paths['dual-tor-clos'], found.paths['hpn'])}"


def _worst_links(_clos: PathFigures, hpn: PathFigures) -> str:
    loads = f"{hpn.hashed_worst:.0%} by hash, {hpn.turns_worst:.0%} in turn, {hpn.chosen_worst:.0%} by choice"
    return f"load of the worst link at full rate {loads}"


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
