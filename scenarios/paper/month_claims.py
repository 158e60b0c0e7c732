"""Claims of the HPN paper about months in production, held against the failures of ``hpn month``. Pure.

Imports numpy when a judge runs. The months are drawn by the paper's rates of failed links and ToRs (section 2.3), on a
pod of the paper's size.
"""

from __future__ import annotations

import math
from functools import partial

from hpn.scenarios.model.month.assumptions import Assumptions
from hpn.scenarios.paper.claim import Claim, Without
from hpn.scenarios.paper.measures import ClaimEvidence, Finding

_SPELL, _MONTHS = 8, 24
"""Months that the paper tells of, and months drawn here for a pod."""
_NONE_SEEN = -math.log(0.05)
"""Upper 95 % limit of a Poisson mean of which no event was seen."""
_JOB_GPUS, _JOB_MONTHS = 2304, 96


def stops_in_months(network: str, found: ClaimEvidence) -> Finding:
    """Judge how often links and ToRs stop a job on the whole pod in eight months, against none seen."""
    stops, rates = _SPELL * _crashes(network, _MONTHS), Assumptions()
    stacked = _SPELL * found.pod.tors * rates.tors_a_month * rates.stacks_lost
    job = f"a job on {found.pod.gpus:,} GPUs"
    text = f"{stops:.2f} stops of {job} in {_SPELL} months; none seen says at most {_NONE_SEEN:.1f}"
    details = f"a stack's by its rates: {stacked:.1f}, which {_SPELL} months do not tell from none"
    return Finding(text, stops <= _NONE_SEEN, details=details)


def crashes_a_month(network: str, _found: ClaimEvidence) -> Finding:
    """Judge how often links and ToRs stop a job of the paper's size in a month."""
    crashes = _crashes(network, _JOB_MONTHS, _JOB_GPUS)
    return Finding(f"{crashes:.2f} a month, of a job on {_JOB_GPUS:,} GPUs", 1 <= crashes <= 2)


def _crashes(network: str, months: int, gpus: int | None = None) -> float:
    """Return the mean number of crashes in a month; two queue pairs of a NIC need both of its ports, as many do."""
    from hpn.scenarios.model.month.month import MonthRequest, reckon

    asked = MonthRequest((network,), gpus=gpus, queue_pairs=2, months=months)
    (outcome,) = reckon(asked, math.inf, lambda _line: None)
    return outcome.crashes.mean


CLAIMS = (
    Claim(
        "months-without-single-point",
        "dual-ToR: eight months in production without a single-point failure",
        "none seen",
        "by the paper's rates; one pod filled by one job, the paper's clusters have O(10K) GPUs",
        judge=partial(stops_in_months, "hpn"),
        by=f"hpn month, {_MONTHS} months drawn",
        without=(
            Without("a second ToR", judge=partial(stops_in_months, "single-tor")),
            Without("path control", judge=partial(stops_in_months, "hpn-no-path-control")),
        ),
        counted="the model lets a job live while its NICs have one port each: only two failures at once stop it",
    ),
    Claim(
        "single-tor-crashes",
        "single-ToR: failed links and ToRs crash a job once or twice a month",
        "1-2",
        "by the paper's rates; 2,304 GPUs, its largest job; what else crashes a job is not counted",
        judge=partial(crashes_a_month, "single-tor"),
        by=f"hpn month, {_JOB_MONTHS} months drawn",
        without=(Without("only one ToR (HPN)", judge=partial(crashes_a_month, "hpn")),),
    ),
)
