"""Claims of the HPN paper about steady streams and about what is computed. Pure; one entry each.

The judge of an entry takes every figure of ours from evidence; none is written down here.
"""

from __future__ import annotations

from hpn.scenarios.paper import judges
from hpn.scenarios.paper.claim import Claim, Without

_STEADY = "steady streams instead of a job"
_PORT_LOAD = ("port-load-clos", "port-load-hpn")
_ONE_PLANE = Without("two planes", {"port-load-hpn": "port-load-clos"})
_DCN_PLUS = Without("rails and planes (a DCN+ pod)", pod="dcn-plus-pod")

CLAIMS = (
    Claim(
        "dual-tor-link-down",
        "dual-ToR: with one NIC-ToR link down a job loses little",
        "-6.25 %",
        f"{_STEADY}: what the fabric can still carry, not what iterations take; 6.25 % is one port of 16 at full load",
        ("link-down-full-load", "link-down"),
        judges.dual_tor_loses,
        without=(
            Without("a second ToR", {"link-down-full-load": "link-down-full-load-single-tor"}),
            Without("path control", {"link-down": "link-down-no-path-control"}),
            Without("a LAG that leaves a dead port", {"link-down": "link-down-lag-stays"}),
        ),
    ),
    Claim(
        "dual-tor-repair",
        "dual-ToR: back at once after the repair",
        "at once",
        "the paper gives no time, 5 s is ours; Linux bonding waits 2 s before it uses a port again",
        ("link-down", "link-down-full-load"),
        judges.back_at_once,
        without=(Without("a second ToR", {"link-down": "link-down-single-tor"}),),
    ),
    Claim(
        "single-tor-link-down",
        "single-ToR: a link down halts the job at once",
        "halt",
        f"{_STEADY}; one NIC that stands still halts a job",
        ("link-down-single-tor",),
        judges.single_tor_halts,
        without=(Without("only one ToR (HPN)", {"link-down-single-tor": "link-down"}),),
    ),
    Claim(
        "single-tor-1-min",
        "single-ToR: repaired within 1 min, the job goes on",
        "goes on",
        "the factor of 2 is fitted to the paper: the standard lets adapters wait up to 4 times as long as told",
        ("outage-60s", "outage-30s", "outage-60s-patient"),
        judges.short_outage,
        without=(Without("a repair within 1 min (after 2)", {"outage-60s": "outage-120s"}),),
        shortfall="NCCL's own timers, timeout 20 and 7 retries, end after 34.4 s",
    ),
    Claim(
        "single-tor-2-min",
        "single-ToR: repaired after 2 min, the job is dead",
        "dead",
        "NCCL's own timers; also with the fitted factor of the line above",
        ("outage-120s", "outage-120s-patient"),
        judges.long_outage,
        without=(Without("only one ToR (HPN)", {"outage-120s": "outage-120s-hpn"}),),
    ),
    Claim(
        "single-tor-flap",
        "single-ToR: a flapping link halts the job",
        "> 9 s",
        "a halt of what the fabric carries; a job waits for retry timers and for its slowest NIC as well",
        ("link-flap-single-tor",),
        judges.flap_single_tor,
        without=(Without("only one ToR (HPN)", {"link-flap-single-tor": "link-flap"}),),
        shortfall="the paper does not say how long its link flapped; streams go on as soon as there is a way",
    ),
    Claim(
        "dual-tor-flap",
        "dual-ToR: a flapping link is negligible",
        "negligible",
        "the paper gives no time, 100 ms is ours; figures of this kernel and BIRD; in virtual time computing is free",
        ("link-flap", "link-flap-clos"),
        judges.flap_dual_tor,
        without=(
            Without("path control", {"link-flap": "link-flap-no-path-control"}),
            Without("a LAG that leaves a dead port", {"link-flap": "link-flap-lag-stays"}),
            Without("a second ToR", {"link-flap": "link-flap-single-tor"}),
        ),
    ),
    Claim(
        "stacked-collapse",
        "stacked dual-ToR: the primary's data plane dies, the secondary shuts itself down, the rack is gone",
        "rack gone",
        "the stack's timers are ours, the paper gives none",
        ("stacked-dataplane-death", "tor-dataplane-death"),
        judges.rack_gone,
        without=(Without("a stack (HPN)", {"stacked-dataplane-death": "tor-dataplane-death"}),),
    ),
    Claim(
        "stacked-upgrade",
        "stacked dual-ToR: an upgrade that leaves two versions takes a ToR down",
        "ToRs down",
        "which versions fit together is a comparison here: equal ones do; the paper: 70 % of upgrades did not",
        ("stacked-upgrade", "stacked-upgrade-hpn"),
        judges.upgrade,
        without=(Without("a stack (HPN)", {"stacked-upgrade": "stacked-upgrade-hpn"}),),
    ),
    Claim(
        "port-imbalance",
        "Clos above dual-ToR: the two ports towards a NIC differ in load, with two planes they do not",
        "up to 3x",
        "16 NICs, 16 queue pairs each and 4 Aggs instead of 60; a full port carries no more: 3x would show as 2.5x",
        _PORT_LOAD,
        judges.imbalance,
        paths=True,
        without=(_ONE_PLANE, Without("a second hash (HPN)", {"port-load-clos": "port-load-hpn"})),
    ),
    Claim(
        "polarisation",
        "two planes: no second hash, so hashes that are alike polarise nothing; in a Clos they do",
        "none",
        "every switch has one seed; in the Clos an Agg then meets only flows that it hashes to one of its two ToRs",
        ("one-seed-clos", "one-seed-hpn"),
        judges.polarisation,
        without=(
            Without("two planes", {"one-seed-hpn": "one-seed-clos"}),
            Without("one seed everywhere", {"one-seed-clos": "port-load-clos"}),
        ),
        counted="in a plane only the sender's ToR hashes, so nothing can meet the same hash again",
    ),
    Claim(
        "tor-queue",
        "two planes shorten the ToR's queue towards the NIC",
        "-91.8 %",
        "no congestion control: a port offered too much stays full, others empty; each receiver has one sender",
        _PORT_LOAD,
        judges.queues,
        without=(_ONE_PLANE,),
        counted="without congestion control a queue is full where a port is offered too much, else empty",
    ),
    Claim(
        "path-selection",
        "choosing source ports by their paths speeds collectives up",
        "+34.7 %",
        f"{_STEADY} and no congestion control; paper: 4 AllReduces at once over 512 GPUs, its baseline not told",
        ("path-choice-hash", "path-choice-in-turn", "path-choice-disjoint"),
        judges.selection,
        paths=True,
        without=(
            Without("chosen paths (ports in turn)", {"path-choice-disjoint": "path-choice-in-turn"}),
            Without("chosen paths (hashes)", {"path-choice-disjoint": "path-choice-hash"}),
        ),
    ),
    Claim(
        "pod-size",
        "one pod: 15,360 GPUs below 240 ToRs and 120 Aggs",
        "15,360 / 240 / 120",
        "the same: counted, not measured",
        judge=judges.pod,
        by="hpn plan pod",
        without=(_DCN_PLUS,),
    ),
    Claim(
        "tor-oversubscription",
        "a ToR is nearly not oversubscribed",
        "1.067:1",
        "the same: counted, not measured",
        judge=judges.oversubscription,
        by="hpn plan pod",
        without=(_DCN_PLUS,),
    ),
    Claim(
        "bounce-deadlock",
        "not of this paper: paths that bounce after failures deadlock a lossless Clos for good (Tagger, CoNEXT 2017)",
        "deadlock",
        "Microsoft's deadlock (SIGCOMM 2016, section 4.2) came of flooding, which routed ports do not do",
        ("deadlock-bounce",),
        judges.bounces_deadlock,
        without=(
            Without("valleys (one ASN per tier)", {"deadlock-bounce": "deadlock-bounce-per-tier"}),
            Without("PFC (a lossy class)", {"deadlock-bounce": "deadlock-bounce-lossy"}),
            Without("a ring that nobody breaks (a PFC watchdog)", {"deadlock-bounce": "deadlock-bounce-watchdog"}),
        ),
    ),
    Claim("failure-rates", "how often links and ToRs fail", "0.057 %, 0.051 % a month", "an observation of a fleet"),
)
