"""Claims of the HPN paper about jobs. Pure; one entry each, as in ``scenarios.paper.claims``.

The paper compares (sections 6.1, 9.1, 9.2):

* AllReduce and Multi-AllReduce by 448 GPUs on 56 hosts, in one segment of HPN or in three and a half of DCN+;
* AllReduce of 4 GB across segments by 32 to 256 GPUs, above two planes or one;
* four AllReduces at once over 512 GPUs, with and without path selection;
* a job of some 2,300 GPUs before and after it moved from DCN+ to HPN.

Every network here is about 50 times smaller, with as much capacity above its ToRs as below.
"""

from __future__ import annotations

import math

from hpn.scenarios.paper import job_judges
from hpn.scenarios.paper.claim import Claim, Without
from hpn.scenarios.paper.gains import Faster, FasterTraining, Pair, ShorterQueues
from hpn.scenarios.paper.interval import Band
from hpn.scenarios.paper.segments import segments

_PLANES = Pair("job-cross-segment-hpn", "job-cross-segment-clos")
_LOSSLESS = Pair("job-cross-segment-pfc-hpn", "job-cross-segment-pfc-clos")
_PATHS = Pair("job-paths-chosen", "job-paths-in-turn")
_ALLREDUCE = Pair("job-allreduce-hpn", "job-allreduce-dcn-plus")
_MULTI = Pair("job-multi-allreduce-hpn", "job-multi-allreduce-dcn-plus")
_TRAINING = Pair("job-training-hpn", "job-training-dcn-plus")

_ONE_SEGMENT = "a job larger than a segment of DCN+"
_DRAWS = "hashes drawn"
_UP_TO = "the paper tells its highest gain, this is the mean of draws"

_RANGE = Band(0.501, 0.716, "the paper's own range, over 32 to 256 GPUs")
_QUEUES = Band(
    -math.inf,
    -0.85,
    "the paper tells 20 KB with two planes, 267 and 3 KB of a NIC's two ports without: -85 % of their mean; no queue is"
    " the least",
)


CLAIMS = (
    Claim(
        "single-tor-1-min-job",
        "single-ToR: repaired within 1 min, a job with NCCL's timers goes on",
        "goes on",
        "timeout 20 and 7 retries, each as long as told; a job of four GPUs",
        ("job-outage-60s", "job-outage-25s"),
        job_judges.short_outage_job,
        without=(Without("a repair within 1 min (after 2)", {"job-outage-60s": "job-outage-120s"}),),
        shortfall="the last retry leaves after 30.1 s, and after 34.4 s the queue pair is dead",
    ),
    Claim(
        "single-tor-2-min-job",
        "single-ToR: repaired after 2 min, a job with NCCL's timers is dead",
        "dead",
        "timeout 20 and 7 retries, each as long as told; a job of four GPUs",
        ("job-outage-120s",),
        job_judges.long_outage_job,
        without=(Without("only one ToR (HPN)", {"job-outage-120s": "job-outage-120s-hpn"}),),
    ),
    Claim(
        "cross-segment",
        "two planes speed traffic between segments up",
        "up to +71.6 %",
        f"8 GPUs, {_DRAWS}; a ring waits for its slowest hop: 6 or 8 of 8 queue pairs by one port are 1.5 or 2 times,"
        " and DCQCN keeps such a port some 80 % busy; tens of queue pairs, as the paper has, spread more evenly",
        _PLANES.drills,
        Faster(_PLANES, 0.716, "AllReduce", _RANGE),
        drawn=_PLANES.drills,
        without=(
            Without("two planes", {_PLANES.better: _PLANES.other}),
            Without("traffic between segments", {_PLANES.other: "job-cross-segment-local"}),
        ),
    ),
    Claim(
        "tor-queue-job",
        "two planes shorten the ToR's queue towards the NIC in a job with congestion control",
        "-91.8 %",
        "DCQCN with SimAI's values for 200G; the paper tells 267 and 3 KB of a NIC's two ports, 20 KB with two planes",
        _PLANES.drills,
        ShorterQueues(_PLANES, -0.918, _QUEUES),
        drawn=_PLANES.drills,
        without=(
            Without("two planes", {_PLANES.better: _PLANES.other}),
            Without("traffic between segments", {_PLANES.other: "job-cross-segment-local"}),
        ),
    ),
    Claim(
        "tor-queue-pfc",
        "the same over lossless switches with PFC, as the paper's fabric has it",
        "-91.8 %",
        "the paper does not tell its thresholds; in the Clos PFC stops ports, and part of the queue waits further up",
        _LOSSLESS.drills,
        ShorterQueues(_LOSSLESS, -0.918, _QUEUES),
        drawn=_LOSSLESS.drills,
        without=(
            Without("two planes", {_LOSSLESS.better: _LOSSLESS.other}),
            Without("traffic between segments", {_LOSSLESS.other: "job-cross-segment-pfc-local"}),
        ),
    ),
    Claim(
        "path-selection-job",
        "choosing paths speeds four AllReduces at once up",
        "up to +34.7 %",
        f"8 GPUs, {_DRAWS}, ToRs full; against ports and messages in turn: the paper does not tell its baseline",
        _PATHS.drills,
        Faster(_PATHS, 0.347, "AllReduce"),
        drawn=_PATHS.drills,
        without=(
            Without("chosen paths", {_PATHS.better: _PATHS.other}),
            Without("paths to choose (one segment)", {_PATHS.other: "job-paths-local"}),
        ),
        shortfall=_UP_TO,
    ),
    Claim(
        "allreduce",
        "AllReduce is faster than on DCN+",
        "up to +59.3 %",
        f"16 GPUs on 8 hosts, {_DRAWS} and orders of hosts; NVLink at the paper's share of the time, modelled: it hides"
        " some of what the network loses, as in the paper",
        _ALLREDUCE.drills,
        Faster(_ALLREDUCE, 0.593, "AllReduce"),
        drawn=(_ALLREDUCE.other,),
        without=(Without(_ONE_SEGMENT, {_ALLREDUCE.other: "job-allreduce-local"}),),
        shortfall=_UP_TO,
    ),
    Claim(
        "multi-allreduce",
        "concurrent AllReduces are faster than on DCN+",
        "up to +158.2 %",
        f"16 GPUs on 8 hosts, two AllReduces at once, {_DRAWS} and orders of hosts; with 2 queue pairs to a neighbour"
        " instead of 8 more is lost, with hosts in order less",
        _MULTI.drills,
        Faster(_MULTI, 1.582, "AllReduce"),
        drawn=(_MULTI.other,),
        without=(Without(_ONE_SEGMENT, {_MULTI.other: "job-multi-allreduce-local"}),),
        shortfall=_UP_TO,
    ),
    Claim(
        "training",
        "training is faster than on DCN+",
        "+14.9 %",
        f"16 GPUs on 8 hosts, {_DRAWS}; compute and sums as GPT-3 175B has them on 2,304 GPUs; the paper does not tell"
        " its model, and has +6.3 % for GPT-3 175B on 448 GPUs",
        _TRAINING.drills,
        FasterTraining(_TRAINING, 0.149),
        drawn=_TRAINING.drills,
        without=(Without(_ONE_SEGMENT, {_TRAINING.other: "job-training-local"}),),
        shortfall="the paper's job must spend more of its time on sums",
    ),
    Claim(
        "segments",
        "a job of some 2,300 GPUs spans fewer segments than on DCN+",
        "19 to 3, traffic -37 %",
        "as few segments as hold it; which hosts talk to which is not told, so both ends of what a ring can do",
        judge=segments,
        by="placement",
        without=(Without("rails and planes (DCN+)", pod="dcn-plus-pod"),),
    ),
)
