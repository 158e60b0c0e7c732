"""The claims of the HPN paper that a testbed can speak to, and what each is held against. Pure.

Alibaba HPN, SIGCOMM 2024, doi 10.1145/3651890.3672265. A new claim is one entry of ``CLAIMS``; every figure of ours is
taken from evidence by ``scenarios.reproduce_judges``, none is written down here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from scenarios import reproduce_judges as judges
from scenarios.reproduce_judges import Evidence, Finding


class Answer(StrEnum):
    """How a claim fared."""

    AGREES = "agrees"  # a run says the same; a figure may differ, for the reason given
    COMPUTED = "agrees, computed"  # arithmetic does: no packet was sent
    DIFFERS = "differs"
    NOT_REPRODUCED = "not reproduced"  # nothing here speaks to it yet
    NOT_RUN = "not run"  # this machine could not, or the run was too noisy


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim. Without ``judge`` nothing here speaks to it, and ``why`` says what is missing."""

    key: str
    claim: str
    paper: str
    why: str  # ours differs from the paper's
    drills: tuple[str, ...] = ()
    judge: Callable[[Evidence], Finding] | None = None
    by: str = ""  # what speaks to it, when it is no drill
    paths: bool = False  # path figures are a second opinion


_STEADY = "steady streams instead of a job"
_PORT_LOAD = ("port-load-clos", "port-load-hpn")

CLAIMS = (
    Claim(
        "dual-tor-link-down",
        "dual-ToR: with one NIC-ToR link down a job loses little",
        "-6.25 %",
        f"{_STEADY}: what the fabric can still carry, not what iterations take; 6.25 % is one port of 16 at full load",
        ("link-down-full-load",),
        judges.dual_tor_loses,
    ),
    Claim(
        "dual-tor-repair",
        "dual-ToR: back at once after the repair",
        "at once",
        "the paper gives no time; at 40 % load, so that what is lost is outage",
        ("link-down",),
        judges.back_at_once,
    ),
    Claim(
        "single-tor-link-down",
        "single-ToR: a link down halts the job at once",
        "halt",
        f"{_STEADY}; one NIC that stands still halts a job",
        ("link-down-single-tor",),
        judges.single_tor_halts,
    ),
    Claim(
        "single-tor-1-min",
        "single-ToR: repaired within 1 min, the job goes on",
        "goes on",
        "holds only if adapters wait longer than NCCL asks (34.4 s), as the standard lets them, up to 4 times as long",
        ("outage-30s", "outage-60s", "outage-60s-patient"),
        judges.short_outage,
    ),
    Claim(
        "single-tor-2-min",
        "single-ToR: repaired after 2 min, the job is dead",
        "dead",
        "any adapter that waits less than 3.5 times as long as told agrees",
        ("outage-120s-patient",),
        judges.long_outage,
    ),
    Claim(
        "single-tor-flap",
        "single-ToR: a flapping link halts the job",
        "> 9 s",
        "the paper does not say how long the link was away; streams go on at once, a job waits for retry timers",
        ("link-flap-single-tor",),
        judges.flap_single_tor,
    ),
    Claim(
        "dual-tor-flap",
        "dual-ToR: a flapping link is negligible",
        "negligible",
        "figures of this kernel and BIRD, not of an ASIC; in virtual time computing takes no time",
        ("link-flap", "link-flap-clos", "link-flap-single-tor"),
        judges.flap_dual_tor,
    ),
    Claim(
        "stacked-collapse",
        "stacked dual-ToR: the primary's data plane dies, the secondary shuts itself down, the rack is gone",
        "rack gone",
        "the stack's timers are ours, the paper gives none",
        ("stacked-dataplane-death", "tor-dataplane-death"),
        judges.rack_gone,
    ),
    Claim(
        "stacked-upgrade",
        "stacked dual-ToR: an upgrade that leaves two versions takes a ToR down",
        "ToRs down",
        "which versions fit together is a comparison here: equal ones do; the paper: 70 % of upgrades did not",
        ("stacked-upgrade", "stacked-upgrade-hpn"),
        judges.upgrade,
    ),
    Claim(
        "port-imbalance",
        "Clos above dual-ToR: the two ports towards a NIC differ in load, with two planes they do not",
        "up to 3x",
        "16 NICs, 16 queue pairs each and 4 Aggs instead of 60; a full port carries no more: 3x would show as 2.5x",
        _PORT_LOAD,
        judges.imbalance,
        paths=True,
    ),
    Claim(
        "tor-queue",
        "two planes shorten the ToR's queue towards the NIC",
        "-91.8 %",
        "no congestion control: a port offered too much stays full, others empty; each receiver has one sender",
        _PORT_LOAD,
        judges.queues,
    ),
    Claim(
        "path-selection",
        "choosing source ports by their paths speeds collectives up",
        "+34.7 %",
        f"{_STEADY} and no congestion control; paper: 4 AllReduces at once over 512 GPUs",
        ("path-choice-hash", "path-choice-in-turn", "path-choice-disjoint"),
        judges.selection,
        paths=True,
    ),
    Claim(
        "pod-size",
        "one pod: 15,360 GPUs below 240 ToRs and 120 Aggs",
        "15,360 / 240 / 120",
        "the same: counted, not measured",
        judge=judges.pod,
        by="hpn plan pod",
    ),
    Claim(
        "tor-oversubscription",
        "a ToR is nearly not oversubscribed",
        "1.067:1",
        "the same: counted, not measured",
        judge=judges.oversubscription,
        by="hpn plan pod",
    ),
    Claim("training", "training is faster than on DCN+", "+14.9 %", "no training iteration runs here yet"),
    Claim("cross-segment", "two planes speed cross-segment traffic up", "up to +71.6 %", "needs congestion control"),
    Claim("allreduce", "AllReduce is faster than on DCN+", "up to +59.3 %", "no collective runs here yet"),
    Claim("multi-allreduce", "concurrent AllReduces are faster", "up to +158.2 %", "no collective runs here yet"),
    Claim("segments", "a job spans fewer segments", "19 to 3, traffic -37 %", "no scheduler places jobs here"),
    Claim("failure-rates", "how often links and ToRs fail", "0.057 %, 0.051 % a month", "an observation of a fleet"),
)
