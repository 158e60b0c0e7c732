"""Claim about retry timers and a link that blinks, by a paper other than HPN's, with its judge. Pure.

Jiang et al., MegaScale (NSDI 2024), section 3.6: NCCL's timer and retry count are tuned for fast recovery, and the
adapter's adaptive retransmission recovers faster still when a link flaps for a short time.
"""

from __future__ import annotations

from pydantic import JsonValue

from hpn.scenarios.paper.claim import Claim, Without
from hpn.scenarios.paper.job_judges import job_of
from hpn.scenarios.paper.measures import ClaimEvidence, Finding
from hpn.scenarios.paper.variants import Variant

_DRILL = "job-flap-timers"
_PERIOD_MS = 2000
_DOWN_MS = (50, 200, 800)
_TIMERS = ("ib", "adaptive")


def _name(timer: str, down_ms: int | None) -> str:
    return f"{_DRILL}-{timer}-{'calm' if down_ms is None else f'{down_ms}ms'}"


def _variant(timer: str, down_ms: int | None) -> Variant:
    """Return the drill with a timer and one blink of a length; None: without a fault."""
    changes: dict[str, JsonValue] = {"job.retry_timer": timer}
    if down_ms is None:
        changes["timeline"] = {"healthy": "8 s"}
    else:
        changes["timeline.faults.0.duty"] = f"{100 * down_ms / _PERIOD_MS:g} %"
    return Variant(_name(timer, down_ms), _DRILL, changes)


_RUNS = {timer: tuple(_name(timer, down_ms) for down_ms in _DOWN_MS) for timer in _TIMERS}
_CALM = {name: _name(timer, None) for timer in _TIMERS for name in _RUNS[timer]}


def faster_recovery(found: ClaimEvidence) -> Finding:
    """Judge what each blink adds to the longest iteration: less with adaptive timers, every time."""
    told, adaptive = ([_added_ms(found, name) for name in _RUNS[timer]] for timer in _TIMERS)
    tick_ms = job_of(found.drills[_RUNS[_TIMERS[0]][0]]).tick_ms
    text = f"blinks of {_list(_DOWN_MS)} ms halt for {_list(adaptive)} ms, with NCCL's timers {_list(told)} ms"
    return Finding(text, all(more - less > 2 * tick_ms for more, less in zip(told, adaptive, strict=True)))


def _added_ms(found: ClaimEvidence, name: str) -> float:
    """Return by how much the longest iteration of a run is longer than the shortest."""
    times = [each.ms for each in job_of(found.drills[name]).iterations]
    return max(times) - min(times)


def _list(values: tuple[int, ...] | list[float]) -> str:
    return ", ".join(f"{value:.0f}" for value in values)


CLAIMS = (
    Claim(
        "megascale-timers",
        "not of this paper: adaptive retransmission recovers faster from short flaps (MegaScale, NSDI 2024)",
        "faster",
        "the paper gives no figure; one port per NIC without a LAG's wait, timeout 20 with 2, 4, 8, ... ms or without",
        (*_RUNS["ib"], *_RUNS["adaptive"]),
        faster_recovery,
        without=(Without("a flap", _CALM),),
        variants=tuple(_variant(timer, down_ms) for timer in _TIMERS for down_ms in (*_DOWN_MS, None)),
    ),
)
