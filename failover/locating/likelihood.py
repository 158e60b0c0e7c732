"""Likelihood: suspects that make the counts of packets likeliest, one after the other. Pure.

Greedy, as set cover, but each step takes the suspect that explains most, by the binomial likelihood of its losses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hpn.failover.locating.seen import HEALTHY_LOSS, MOST_FAULTS, Accused, Counts, Reals, Row, Seen

_SURE = 5.0
"""Natural logarithm of the odds that an accusation needs beyond one chance in as many as there are suspects."""
_ROUNDS = 5
_MOST_LOSS = 0.999999
_Index = npt.NDArray[np.intp]
_Effect = Callable[["_Crossings", Reals, Reals], tuple[Reals, Reals]]
"""How suspects lose packets on the paths across them: by how much each makes the counts likelier, and its rate."""


@dataclass(frozen=True, slots=True)
class _Crossings:
    """Each pair of a suspect on whose paths something was lost and a path across it, as two columns of numbers."""

    seen: Seen
    suspect: _Index
    path: _Index

    @classmethod
    def of(cls, seen: Seen) -> _Crossings:
        """Return the crossings of what was seen."""
        among = np.flatnonzero(seen.suspects.crossed[:, seen.lost > 0].any(axis=1))
        suspect, path = np.nonzero(seen.suspects.crossed[among])
        return cls(seen, among[suspect], path)

    def summed(self, values: Reals | Counts) -> Reals:
        """Return for each suspect the sum of a value of its crossings."""
        return np.bincount(self.suspect, values, len(self.seen.suspects.suspects)).astype(np.float64)


@dataclass(frozen=True, slots=True)
class _Blamed:
    """A suspect taken, by number; ``hit``: the paths on which it loses its ``rate``."""

    suspect: int
    rate: float
    hit: Row
    confidence: float


def likelihood(seen: Seen) -> Sequence[Accused]:
    """Return the suspects that make the counts likeliest, one after the other while each makes them much likelier.

    Losses of a path are binomial: with a suspect's own rate if it is crossed, else ``seen.healthy``. A suspect loses
    packets on all paths across it or, as a fault in one hash bucket does, on some. The latter counts if it explains
    more: two faults look like one that hits some paths of a part that both have in common. Confidence is the posterior
    among all suspects, each of them as likely beforehand.
    """
    crossings = _Crossings.of(seen)
    found = max((_explained(crossings, effect) for effect in (_on_all, _on_some)), key=lambda each: each.score)
    suspects = seen.suspects.suspects
    return [Accused(suspects[each.suspect], each.rate, each.confidence) for each in found.blamed]


@dataclass(frozen=True, slots=True)
class _Explanation:
    """Suspects that together explain the losses; ``score``: natural logarithm, less what each of them must be worth."""

    blamed: Sequence[_Blamed]
    score: float


def _explained(crossings: _Crossings, effect: _Effect) -> _Explanation:
    """Take suspects one after the other; after each, those before are chosen again in the light of all others."""
    needed = math.log(len(crossings.seen.suspects.suspects) + 1) + _SURE
    blamed: list[_Blamed] = []
    score = 0.0
    while len(blamed) < MOST_FAULTS:
        gain, found = _best(crossings, blamed, effect)
        if found is None or gain < needed:
            break
        blamed = _chosen_again(crossings, [*blamed, found], effect)
        score += gain - needed
    return _Explanation(blamed, score)


def _chosen_again(crossings: _Crossings, blamed: list[_Blamed], effect: _Effect) -> list[_Blamed]:
    """Choose each again while the others stay, until none changes."""
    for _ in range(_ROUNDS if len(blamed) > 1 else 0):
        before = [each.suspect for each in blamed]
        for at in range(len(blamed)):
            _, found = _best(crossings, blamed[:at] + blamed[at + 1 :], effect)
            if found is not None:
                blamed = [*blamed[:at], found, *blamed[at + 1 :]]
        if [each.suspect for each in blamed] == before:
            break
    return blamed


def _best(crossings: _Crossings, blamed: Sequence[_Blamed], effect: _Effect) -> tuple[float, _Blamed | None]:
    """Return the suspect that explains most of what these leave, and by how much it makes the counts likelier."""
    seen = crossings.seen
    arriving = np.full(len(seen.sent), 1 - seen.healthy)
    for each in blamed:
        arriving[each.hit] *= 1 - each.rate
    gains, rates = _gains(crossings, 1 - arriving, effect)
    if not gains.size or gains.max() <= 0:
        return 0.0, None
    best = int(gains.argmax())
    share = float(1 / np.exp(np.minimum(gains - gains[best], 0)).sum())
    rate = min(float(rates[best]), _MOST_LOSS)
    return float(gains[best]), _Blamed(best, rate, seen.suspects.crossed[best] & (seen.lost > 0), share)


def _gains(crossings: _Crossings, base: Reals, effect: _Effect) -> tuple[Reals, Reals]:
    """Return by how much (natural logarithm) each suspect makes the counts likelier, and its rate of loss."""
    seen = crossings.seen
    expected = base * seen.sent
    excess = np.maximum(seen.lost - expected, 0) * (seen.lost > 2 * expected)
    gains, rates = effect(crossings, base, excess)
    return np.where(crossings.summed(excess[crossings.path]) > 0, gains, 0), rates


def _on_all(crossings: _Crossings, base: Reals, excess: Reals) -> tuple[Reals, Reals]:
    rates = _rates(crossings, excess, np.ones(len(crossings.path), dtype=np.bool_))
    return crossings.summed(_likelier(crossings, base, rates)), rates


def _on_some(crossings: _Crossings, base: Reals, excess: Reals) -> tuple[Reals, Reals]:
    """Return the same if each path across a suspect is hit or spared with equal chances."""
    rates = _rates(crossings, excess, excess[crossings.path] > 0)
    return crossings.summed(np.logaddexp(0, _likelier(crossings, base, rates)) - np.log(2)), rates


def _rates(crossings: _Crossings, excess: Reals, hit: Row) -> Reals:
    """Return each suspect's rate of loss on the crossings that it hits."""
    sent = crossings.summed(crossings.seen.sent[crossings.path] * hit)
    return np.clip(crossings.summed(excess[crossings.path] * hit) / np.maximum(sent, 1), HEALTHY_LOSS, _MOST_LOSS)


def _likelier(crossings: _Crossings, base: Reals, rates: Reals) -> Reals:
    """Return the natural logarithm by which a suspect's rate makes the counts of each path across it likelier."""
    lost, sent = crossings.seen.lost[crossings.path], crossings.seen.sent[crossings.path]
    before, rate = base[crossings.path], rates[crossings.suspect]
    after = before + rate - before * rate
    found: Reals = lost * np.log(after / before) + (sent - lost) * np.log1p(-rate)
    return found
