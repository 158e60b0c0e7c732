"""Likelihood: the suspects that together make the counts of packets likeliest. Pure.

Greedy, as set cover, but each step takes the suspect that explains most, by the binomial likelihood of its losses, and
explanations begin with several suspects: the first that explains most is often a node between two links at fault.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hpn.failover.locating.seen import HEALTHY_LOSS, MOST_FAULTS, Accused, Counts, Reals, Row, Seen

_SURE = 5.0
"""Natural logarithm of the odds that an accusation needs beyond one chance in as many as there are suspects."""
_ROUNDS = 5
_MOST_LOSS = 0.999999
_Index = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class _Effect:
    """Distribution of a suspect's losses over the paths across it.

    ``hit`` gets which of its paths lose far more than is explained, and returns those that tell its rate. ``weigh``
    gets by how much (natural logarithm) that rate makes the counts of each path likelier, and returns what counts.
    """

    hit: Callable[[Row], Row]
    weigh: Callable[[Reals], Reals]
    rarity: float  # natural logarithm of how much rarer such a fault is
    firsts: int  # suspects that an explanation may begin with, the likeliest of them


_ON_ALL = _Effect(lambda far_more: np.ones(len(far_more), dtype=np.bool_), lambda likelier: likelier, 0.0, 8)
_ON_SOME = _Effect(lambda far_more: far_more, lambda likelier: np.logaddexp(0, likelier) - np.log(2), 3.0, 1)
"""Each path across a suspect is hit or spared with equal chances, as by a fault in some hash buckets."""


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

    def summed(self, values: Reals | Counts | Row) -> Reals:
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
    """Return the suspects of the best explanation, surest first; each makes the counts much likelier beside the others.

    Losses of a path are binomial: with a suspect's own rate if it is crossed, else ``seen.healthy``. A suspect loses
    packets on all paths across it or, as a fault in one hash bucket does, on some. The latter counts if it explains
    more: two faults look like one that hits some paths of a part that both have in common. Confidence is the posterior
    among all suspects beside the others, each as likely beforehand, times that of the explanations with this suspect.
    """
    crossings = _Crossings.of(seen)
    found = [each for effect in (_ON_ALL, _ON_SOME) for each in _explanations(crossings, effect)]
    if not found:
        return []
    best = max(found, key=lambda each: each.score)
    odds = dict[frozenset[int], float]()
    for explanation in found:
        named = explanation.suspects
        odds[named] = max(odds.get(named, 0.0), math.exp(explanation.score - best.score))
    suspects = seen.suspects.suspects
    accused = []
    for each in best.blamed:
        share = sum(odd for named, odd in odds.items() if each.suspect in named) / sum(odds.values())
        accused.append(Accused(suspects[each.suspect], each.rate, each.confidence * share))
    return sorted(accused, key=lambda each: -each.confidence)


@dataclass(frozen=True, slots=True)
class _Explanation:
    """Suspects that together explain the losses; ``score``: natural logarithm, less what each of them must be worth."""

    blamed: Sequence[_Blamed]
    score: float

    @property
    def suspects(self) -> frozenset[int]:
        """Numbers of the suspects."""
        return frozenset(each.suspect for each in self.blamed)


def _explanations(crossings: _Crossings, effect: _Effect) -> Iterator[_Explanation]:
    """Yield explanations that begin with each of the likeliest suspects.

    Alone, what two faults have in common may be likelier than each of them.
    """
    for gain, first in _best(crossings, (), effect, effect.firsts):
        explanation = _grown(crossings, gain, first, effect)
        if explanation.blamed:
            yield explanation


def _grown(crossings: _Crossings, gain: float, first: _Blamed, effect: _Effect) -> _Explanation:
    """Add suspects one after the other; after each, those before are chosen again in the light of all others."""
    needed = math.log(len(crossings.seen.suspects.suspects) + 1) + _SURE + effect.rarity
    blamed: list[_Blamed] = []
    found = [(gain, first)]
    while found and found[0][0] >= needed and len(blamed) < MOST_FAULTS:
        blamed = _chosen_again(crossings, [*blamed, found[0][1]], effect)
        found = _best(crossings, blamed, effect)
    return _Explanation(blamed, _worth(crossings, blamed, effect) - needed * len(blamed))


def _worth(crossings: _Crossings, blamed: Sequence[_Blamed], effect: _Effect) -> float:
    """Return by how much (natural logarithm) these together make the counts likelier."""
    seen, worth = crossings.seen, 0.0
    for at, each in enumerate(blamed):
        paths = np.flatnonzero(seen.suspects.crossed[each.suspect])
        worth += effect.weigh(_likelier(seen, paths, _explained(seen, blamed[:at])[paths], each.rate)).sum()
    return worth


def _explained(seen: Seen, blamed: Sequence[_Blamed]) -> Reals:
    """Return the share of packets that each path is to lose by what is blamed."""
    arriving = np.ones(len(seen.sent)) - seen.healthy
    for each in blamed:
        arriving[each.hit] *= 1 - each.rate
    return 1 - arriving


def _chosen_again(crossings: _Crossings, blamed: list[_Blamed], effect: _Effect) -> list[_Blamed]:
    """Choose each again while the others stay, until none changes."""
    for _ in range(_ROUNDS if len(blamed) > 1 else 0):
        before = [each.suspect for each in blamed]
        for at in range(len(blamed)):
            for _, found in _best(crossings, blamed[:at] + blamed[at + 1 :], effect):
                blamed = [*blamed[:at], found, *blamed[at + 1 :]]
        if [each.suspect for each in blamed] == before:
            break
    return blamed


def _best(
    crossings: _Crossings, blamed: Sequence[_Blamed], effect: _Effect, most: int = 1
) -> list[tuple[float, _Blamed]]:
    """Return the suspects that explain most of what these leave, best first, and by how much each makes it likelier."""
    seen = crossings.seen
    gains, rates = _gains(crossings, _explained(seen, blamed), effect)
    gains[[each.suspect for each in blamed]] = 0
    found = []
    for at in np.argsort(-gains, kind="stable")[:most]:
        if gains[at] > 0:
            share = float(1 / np.exp(np.minimum(gains - gains[at], 0)).sum())
            rate = min(float(rates[at]), _MOST_LOSS)
            hit = seen.suspects.crossed[at] & (seen.lost > 0)
            found.append((float(gains[at]), _Blamed(int(at), rate, hit, share)))
    return found


def _gains(crossings: _Crossings, base: Reals, effect: _Effect) -> tuple[Reals, Reals]:
    """Return by how much (natural logarithm) each suspect makes the counts likelier, and its rate of loss."""
    seen = crossings.seen
    expected = base * seen.sent
    path, suspect = crossings.path, crossings.suspect
    far_more = (seen.lost > 2 * expected)[path]
    hit = effect.hit(far_more)
    sent, excess = (crossings.summed(counts[path] * hit) for counts in (seen.sent, seen.lost - expected))
    rates = np.clip(excess / np.maximum(sent, 1), HEALTHY_LOSS, _MOST_LOSS)
    gains = crossings.summed(effect.weigh(_likelier(seen, path, base[path], rates[suspect])))
    return np.where(crossings.summed(far_more) > 0, gains, 0), rates


def _likelier(seen: Seen, paths: _Index, before: Reals, rate: Reals | float) -> Reals:
    """Return the natural logarithm by which a rate of loss beside the one before makes the counts of paths likelier."""
    lost, sent = seen.lost[paths], seen.sent[paths]
    after = before + rate - before * rate
    found: Reals = lost * np.log(after / before) + (sent - lost) * np.log1p(-rate)
    return found
