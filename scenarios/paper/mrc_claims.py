"""Claims of MRC's papers about many planes and paths, with their judges. Pure.

Resilient AI Supercomputer Networking using MRC and SRv6 (arXiv 2605.04333). Neither it nor MRC's specification was
read: figures are those of summaries. An NIC of 800G has a port of 100G in each of eight planes, and a queue pair's
packets take static paths over all of them.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from hpn.failover.analysis.denied import denied_at
from hpn.failover.analysis.job import JobMetrics
from hpn.failover.analysis.model import DrillMetrics, EdgeKind
from hpn.results.judge.verdict import at_most
from hpn.scenarios.paper.claim import Claim, Without
from hpn.scenarios.paper.job_judges import job_of
from hpn.scenarios.paper.measures import ClaimEvidence, Finding, every
from hpn.scenarios.paper.meta_claims import victim_and_incast_ms
from hpn.scenarios.paper.topology_claims import two_layers
from hpn.scenarios.paper.variants import Variant
from hpn.testbed.fabric.spec import FabricSpec
from hpn.traffic.flows.framing import wire_bytes

PORT_DOWN, FLAPS = "nic-port-down-eight-planes", "links-flap-multipath"
_CRASH, _SILENT = "agg-crash-srv6", "agg-dataplane-death-srv6"
_PORT_DOWN_RC, _FLAPS_RC, _SILENT_RC = f"{PORT_DOWN}-rc", f"{FLAPS}-rc", "agg-dataplane-death-rc"

_INCAST, _INCAST_RC = "incast-victim-multipath", "incast-victim-simai-200g"
_ALONE_MS = 4 * 8e6 / (2 * 200e6 / 1000) * wire_bytes(4096) / 4096
"""Its four messages of 1 MB by both ports of its NIC, at the drill's rates."""

_UNREAD = "figure not verified"
_NIC_BPS, _PLANES = 800 * 10**9, 8
_SWITCH_BPS = int(FabricSpec.model_fields["switch_capacity"].default)
_ROUND_TRIPS = 20
"""Tens of microseconds over a round trip of some 5 us, our assumption for two tiers at 800G."""
_NICS, _UPLINK_SHARES = 131_072, (0.004, 0.03)
_FLAP_LOSS = (0.15, 0.35)


def _pace_lost(job: JobMetrics, kind: EdgeKind, metrics: DrillMetrics) -> float:
    """Return the worst share of its pace that the job lost between such an edge and the next."""
    costs = zip(metrics.edges, job.edges, strict=True)
    return max(1 - cost.rate_during / cost.rate_before for edge, cost in costs if edge.edge.kind is kind)


def port_lost(found: ClaimEvidence) -> Finding:
    """Judge what a job loses by one port of a NIC: no more than one of eight, and half a percent for its ends."""
    metrics = found.drills[PORT_DOWN]
    job = job_of(metrics)
    if job.deaths:
        return Finding("the job dies", False)
    lost = _pace_lost(job, EdgeKind.FAILURE, metrics)
    return Finding(f"{-lost:.1%} of the job's pace", 0 < lost <= 1 / _PLANES + 0.005)


def bypassed(found: ClaimEvidence) -> Finding:
    """Judge how long a path goes on losing after the failure of a port, in round trips."""
    metrics = found.drills[PORT_DOWN]
    job = job_of(metrics)
    failures = [edge.edge for edge in metrics.edges if edge.edge.kind is EdgeKind.FAILURE]
    told = [each for _, each in denied_at(job.denied, failures)]
    if not told:
        return Finding("the job dies" if job.deaths else "no path is denied", False)
    worst = max(told, key=lambda each: each.round_trips)
    low, high = worst.within(job.tick_ms)
    text = f"{worst.round_trips:.1f} round trips ({low:.1f} to {high:.1f}) from the first loss of a path to its denial"
    soon = at_most("", worst.round_trips, _ROUND_TRIPS, low=low, high=high, strict=True)
    return Finding(f"{text}, {len(told)} paths", every(soon.outcome))


def flapping(found: ClaimEvidence) -> Finding:
    """Judge the mean pace of a job while links flap, from the first failure to the last repair."""
    metrics = found.drills[FLAPS]
    job = job_of(metrics)
    if job.deaths:
        return Finding("the job dies", False)
    times = [edge.edge.inject_before_ns for edge in metrics.edges]
    lengths = [until - since for since, until in pairwise(times)]
    lengths.append(lengths[-1])  # as long as the others, or the settled end would count
    done = sum(cost.rate_during * length for cost, length in zip(job.edges, lengths, strict=True))
    lost = 1 - done / sum(lengths) / job.edges[0].rate_before
    return Finding(f"{-lost:.0%} of the job's pace, and it lives", _FLAP_LOSS[0] <= lost <= _FLAP_LOSS[1])


def agg_lost(found: ClaimEvidence) -> Finding:
    """Judge the pace of a job while a tier-1 switch reboots, and while one drops everything unseen."""
    runs = [found.drills[name] for name in (_CRASH, _SILENT)]
    if any(job_of(run).deaths for run in runs):
        return Finding("the job dies", False)
    lost = [_pace_lost(job_of(run), EdgeKind.FAILURE, run) for run in runs]
    again = sum(job_of(run).packets_again for run in runs)
    text = f"{-lost[0]:.1%} of the job's pace by a reboot, {-lost[1]:.1%} by a failed data plane"
    return Finding(text, max(lost) <= 0.05, details=f"{again:,} packets sent again")


def victim_unharmed(found: ClaimEvidence) -> Finding:
    """Judge how much of its rate a flow past an incast loses: nothing, give or take a twentieth."""
    victim_ms, _ = victim_and_incast_ms(job_of(found.drills[_INCAST]).spans)
    lost = 1 - _ALONE_MS / victim_ms
    return Finding(f"{-lost:.0%} of the victim's rate: {victim_ms:.0f} ms, {_ALONE_MS:.0f} ms alone", lost <= 0.05)


def nics_of_two_tiers(planes: int, _found: ClaimEvidence) -> Finding:
    """Judge how many NICs two tiers join without oversubscription, with a port of each NIC in every plane."""
    radix = _SWITCH_BPS * planes // _NIC_BPS
    size = two_layers(radix)
    text = f"{size.endpoints:,} NICs, by {size.switches:,} switches of {radix} x {_NIC_BPS // planes // 10**9}G a plane"
    return Finding(text, size.endpoints == _NICS)


def uplink_share(planes: int, _found: ClaimEvidence) -> Finding:
    """Judge the share of a ToR's uplinks that one is, split and whole."""
    split, whole = (2 * _NIC_BPS / (_SWITCH_BPS * each) for each in (planes, 1))
    agrees = round(split, 3) == _UPLINK_SHARES[0] and round(whole, 2) == _UPLINK_SHARES[1]
    return Finding(f"{split:.2%} of a ToR's uplinks at {_NIC_BPS // planes // 10**9}G, {whole:.2%} at 800G", agrees)


_RC = "many paths (reliable connections)"
_ONE_PLANE = "planes (one)"
_CLOSED_FORM = "closed form"
_51T = "switches of 51.2 Tbit/s"

CLAIMS = (
    Claim(
        "mrc-nic-port",
        "not of this paper: a failed port costs a NIC with eight of them an eighth (MRC, 2026)",
        "-12 %",
        f"{_UNREAD}; a job that fills its NICs, over ECMP and an unbalanced LAG in place of static paths",
        (PORT_DOWN,),
        port_lost,
        without=(
            Without("eight planes (two)", {PORT_DOWN: "link-down-multipath"}),
            Without(_RC, {PORT_DOWN: _PORT_DOWN_RC}),
        ),
    ),
    Claim(
        "mrc-bypass",
        "not of this paper: senders leave failed paths at once (MRC, 2026)",
        "tens of microseconds",
        f"{_UNREAD}; rates here are 1:8000, so it is told in round trips, of which most are the acknowledgement's delay"
        f" and a full packet's time; agrees below {_ROUND_TRIPS}, as a round trip at 800G is taken for 5 us",
        (PORT_DOWN,),
        bypassed,
        without=(Without(_RC, {PORT_DOWN: _PORT_DOWN_RC}),),
    ),
    Claim(
        "mrc-flaps",
        "not of this paper: a job lives through four links that flap (MRC, 2026)",
        "-25 %",
        f"{_UNREAD}, nor which links and how often: here four of a ToR set's eight uplinks, half of the time",
        (FLAPS,),
        flapping,
        without=(Without(_RC, {FLAPS: _FLAPS_RC}),),
    ),
    Claim(
        "mrc-t1",
        "not of this paper: a tier-1 switch reboots, and the job is unaffected (MRC, 2026)",
        "unaffected",
        f"{_UNREAD}; one of two Aggs of a plane, which boots in 2 s",
        (_CRASH, _SILENT),
        agg_lost,
        without=(Without(_RC, {_SILENT: _SILENT_RC}),),
    ),
    Claim(
        "mrc-incast",
        "not of this paper: an incast costs its victim nothing, with RoCE 25 to 75 % (MRC, 2026)",
        "0 %",
        f"{_UNREAD}; 3:1 instead of 7:1; its congestion control is taken to be Ultra Ethernet's (NSCC), as its own was"
        " not read; the counterfactual is RoCE with DCQCN over lossless switches",
        (_INCAST,),
        victim_unharmed,
        without=(Without(_RC, {_INCAST: _INCAST_RC}),),
        variants=(Variant(_INCAST_RC, "incast-victim", {"job.congestion": "simai-200g"}),),
    ),
    Claim(
        "mrc-size",
        "not of this paper: two tiers join 131,072 NICs of 800G in eight planes (MRC, 2026)",
        f"{_NICS:,}",
        f"{_UNREAD}; {_51T}",
        judge=partial(nics_of_two_tiers, _PLANES),
        by=_CLOSED_FORM,
        counted="half the square of a switch's ports",
        without=(Without(_ONE_PLANE, judge=partial(nics_of_two_tiers, 1)),),
    ),
    Claim(
        "mrc-uplink",
        "not of this paper: a ToR-Agg link is less of a ToR at 100G than at 800G (MRC, 2026)",
        "0.4 %, 3 %",
        f"{_UNREAD}; {_51T}",
        judge=partial(uplink_share, _PLANES),
        by=_CLOSED_FORM,
        counted="one of half a switch's ports",
        without=(Without(_ONE_PLANE, judge=partial(uplink_share, 1)),),
    ),
)
