"""Figures about a run as a whole: the noise floor, and the restored state of the lab. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.analysis.phrases import plain
from hpn.scenarios.expect.evidence import Evidence, from_metrics
from hpn.scenarios.expect.figure import Figure
from hpn.scenarios.expect.metric import PACKETS_ONLY, Lack, Larger, Metric, Needs, Shape, Slowed, Takes, Traffic, Unit
from hpn.scenarios.expect.selection import Selection


def _noise_floor(expectation: Selection, metrics: DrillMetrics) -> Figure:
    noise = metrics.noise
    if not noise.pseudo_edges:
        return Figure(None, "no traffic before the first fault")
    return Figure(
        noise.noise_floor_ms,
        f"{plain(noise.window_s)} s of traffic, sender gaps up to {plain(noise.send_gap_max_ms)} ms",
    )


def _state_restored(_expectation: Selection, evidence: Evidence) -> Figure:
    differences = evidence.facts.state_differences
    if differences is None:
        return Figure(None, "the state before and after was not compared")
    return Figure(float(not differences), first_of(differences) if differences else _RESTORED)


def first_of(found: Sequence[str]) -> str:
    """Return the first of several findings, and the number of further ones."""
    return f"{found[0]} and {len(found) - 1} more" if len(found) > 1 else found[0]


def _restored_text(expectation: Selection) -> str:
    return "state restored" if expectation.limit else "state not restored"


_RESTORED = "links, LACP, BGP and routes as before"
STATE_RESTORED = Metric(
    "state_restored",
    Unit.YES,
    Takes.NOTHING,
    Slowed.NOT,
    Needs(Traffic.EITHER),
    "links, LACP, BGP and routes after the drill as before; LACP partners, rates of ports and ECMP seeds as the fabric"
    " decides",
    _state_restored,
    Shape.YES_NO,
    _restored_text,
    larger=Larger.AS_LIMITED,
    unmodelled="no lab was changed",
)
METRICS = (
    Metric(
        "noise_floor",
        Unit.MS,
        Takes.NOTHING,
        Slowed.STRETCHED,
        Needs(),
        "the largest outage the method reports while nothing is wrong",
        from_metrics(_noise_floor),
        larger=Larger.WORSE,
        tells=dict.fromkeys((Lack.CUT_OFF, Lack.AFTER), "it is of the time before the first fault"),
        unmodelled=PACKETS_ONLY,
    ),
    STATE_RESTORED,
)
