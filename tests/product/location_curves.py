"""Pictures of docs/location-table.md: how often answers are right over time after a fault, and over the rate of probes.

Pure. Slower probes are the same runs with packets left out at random: each packet stays with the chance that the
slower rate has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

import numpy as np

from hpn.failover.locating.answer import Located, answered, at_once, names
from hpn.failover.locating.known import Standing
from hpn.failover.locating.observed import Observed
from hpn.failover.locating.rounds import STEP_NS

THINNED = (1, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32)
"""Shares of the probes that are left."""
WIDTH, HEIGHT = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 130, 20, 45
_COLOURS = ("#1b6ca8", "#c0392b", "#1e8449", "#b8860b", "#6c3483")

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Course:
    """Rightness of the answers after one fault, one each 100 ms; by share of the probes: if it was located for good."""

    case: str
    right: tuple[bool, ...]
    by_share: tuple[bool, ...]


def courses(found: Located, cases: Mapping[str, str], seed: int) -> Iterator[Course]:
    """Yield the course of each fault of a run on which probes lost packets; ``cases``: by id of a fault."""
    faults = [fault for fault, _ in found.scores]
    thinned = [answered(_thinned(found.seen, share, seed), faults, found.method) for share in THINNED[1:]]
    for at, (fault, score) in enumerate(found.scores):
        if fault.fault in cases and score.lost:
            every = (found, *thinned)
            yield Course(
                cases[fault.fault],
                tuple(_rightness(found, fault, faults)),
                tuple(each.scores[at][1].stable_ns is not None for each in every),
            )


def _rightness(found: Located, fault: Standing, faults: Sequence[Standing]) -> Iterator[bool]:
    count = at_once(fault, faults)
    for each in found.rounds:
        if fault.at_ns < each.at_ns <= fault.until_ns:
            yield names(each, found.seen, fault, count)


def _thinned(seen: Observed, share: float, seed: int) -> Observed:
    """Return what a share of the observations shows."""
    dice = np.random.default_rng([seed, round(1 / share)])
    made, bad = np.diff(seen.sent, axis=1), np.diff(seen.lost, axis=1)
    kept_bad = dice.binomial(bad, share)
    kept = kept_bad + dice.binomial(made - bad, share)
    return Observed.of(seen.bins, seen.suspects, list(kept), list(kept_bad), seen.healthy)


def over_time(found: Iterable[Course]) -> str:
    """Return the picture of how many answers are right, over the time since the fault."""
    lines = {}
    for case, mine in _by_case(found):
        steps = min(len(each.right) for each in mine)
        share = [sum(each.right[at] for each in mine) / len(mine) for at in range(steps)]
        lines[f"{case} ({len(mine)})"] = [(at * STEP_NS / 1e9, one) for at, one in enumerate(share, 1)]
    ticks = [(second, f"{second} s") for second in range(0, 11, 2)]
    return _plot(lines, ticks, "time since the fault; answers that name it, of all faults")


def over_rate(found: Iterable[Course], load_percent: float) -> str:
    """Return the picture of how many faults are located before their repair, over the load of the probes."""
    lines = {}
    for case, mine in _by_case(found):
        located = [sum(each.by_share[at] for each in mine) / len(mine) for at in range(len(THINNED))]
        lines[f"{case} ({len(mine)})"] = [(len(THINNED) - 1.0 - at, one) for at, one in enumerate(located)]
    ticks = [(len(THINNED) - 1 - at, f"{load_percent * share:.3g} %") for at, share in enumerate(THINNED)]
    return _plot(lines, ticks, "load of the probes, of a NIC's port; faults located before their repair")


def _by_case(found: Iterable[Course]) -> Iterator[tuple[str, Sequence[Course]]]:
    for case, mine in groupby(sorted(found, key=lambda each: each.case), key=lambda each: each.case):
        yield case, list(mine)


def _plot(lines: Mapping[str, Points], ticks: Sequence[tuple[float, str]], words: str) -> str:
    """Return an SVG of shares of 1 over some quantity."""
    least, most = min(at for at, _ in ticks), max(at for at, _ in ticks)

    def x(at: float) -> float:
        return round(_LEFT + (at - least) / (most - least) * (WIDTH - _LEFT - _RIGHT), 1)

    def y(share: float) -> float:
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)

    body = []
    for percent in range(0, 101, 20):
        body.append(f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y(percent / 100)}" y2="{y(percent / 100)}"/>')
        body.append(f'<text x="{_LEFT - 6}" y="{y(percent / 100) + 4}" text-anchor="end">{percent} %</text>')
    body += [
        f'<text x="{x(at)}" y="{HEIGHT - _BOTTOM + 16}" text-anchor="middle">{escape(name)}</text>'
        for at, name in ticks
    ]
    body.append(f'<text x="{_LEFT}" y="{HEIGHT - 8}">{escape(words)}</text>')
    for row, (name, points) in enumerate(lines.items()):
        colour = _COLOURS[row % len(_COLOURS)]
        places = " ".join(f"{x(at)},{y(share)}" for at, share in points if at <= most)
        body.append(f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        side, top = WIDTH - _RIGHT + 10, _TOP + 12 + 18 * row
        body.append(f'<text x="{side}" y="{top}" fill="{colour}">{escape(name)}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"'
    return (
        f'{head} font-size="12" stroke-width="1">\n<rect width="100%" height="100%" fill="#fff"/>\n<g stroke="#ddd">'
        + "".join(each for each in body if each.startswith("<line"))
        + "</g>\n"
        + "\n".join(each for each in body if not each.startswith("<line"))
        + "\n</svg>\n"
    )
