"""Jobs of messages between pairs of ranks, without a collective that ties them: patterns of traffic. PURE."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from hpn.testbed.entries import Registry
from hpn.testbed.errors import InputError
from hpn.traffic.collectives.compose import Composer
from hpn.traffic.collectives.locations import Place
from hpn.traffic.job.job import Site

Pairs = list[tuple[int, int]]
_REQUEST_BYTES = 64  # size of a pull request


@dataclass(frozen=True, slots=True)
class MessageRequest:
    """Input of a message pattern."""

    places: Sequence[Place]
    rng: random.Random
    fan_in: int | None  # of an incast: senders; default: all others

    @property
    def rails(self) -> list[list[int]]:
        """The ranks of each rail."""
        numbers = sorted({place.rail for place in self.places})
        return [[rank for rank, place in enumerate(self.places) if place.rail == rail] for rail in numbers]


@dataclass(frozen=True, slots=True)
class MessagePattern:
    """Sources and targets by rank. ``pulled``: the target sends a request before each message."""

    name: str
    summary: str  # for docs/drills.md
    pairs: Callable[[MessageRequest], Pairs]
    pulled: bool = False


def _permutation(asked: MessageRequest) -> Pairs:
    pairs: Pairs = []
    for rail in asked.rails:
        ring = asked.rng.sample(rail, len(rail))
        pairs += zip(ring, ring[1:] + ring[:1], strict=True)
    return pairs


def _same_rail(asked: MessageRequest) -> Pairs:
    return [pair for rail in asked.rails for pair in zip(rail, rail[1:] + rail[:1], strict=True)]


def _cross_rail(asked: MessageRequest) -> Pairs:
    rails = asked.rails
    if len(rails) < 2:
        raise InputError("the pattern 'cross-rail' needs two rails; raise gpus", ("gpus", "messages.pattern"))
    shifted = [rail[1:] + rail[:1] for rail in rails[1:] + rails[:1]]
    if any(len(rail) != len(rails[0]) for rail in rails):
        raise InputError("the pattern 'cross-rail' needs equally many GPUs on each rail")
    return [pair for rail, targets in zip(rails, shifted, strict=True) for pair in zip(rail, targets, strict=True)]


def _all_to_all(asked: MessageRequest) -> Pairs:
    n = len(asked.places)
    return [(source, (source + ahead) % n) for ahead in range(1, n) for source in range(n)]


def _incast(asked: MessageRequest) -> Pairs:
    pairs: Pairs = []
    for rail in asked.rails:
        target, *senders = rail
        wanted = len(senders) if asked.fan_in is None else asked.fan_in
        if not 1 <= wanted <= len(senders):
            text = f"an incast of {wanted} to 1 does not fit a rail of {len(rail)} GPUs; raise hosts"
            raise InputError(text, ("messages.fan_in", "hosts"))
        pairs += [(sender, target) for sender in senders[:wanted]]
    return pairs


def _victim(asked: MessageRequest) -> Pairs:
    pairs: Pairs = []
    for rail in asked.rails:
        if len(rail) < 4:
            raise InputError(
                f"an incast beside a victim does not fit a rail of {len(rail)} GPUs; raise hosts", ("hosts",)
            )
        target, other, *senders, last = rail
        pairs += [*((sender, target) for sender in senders), (last, other)]
    return pairs


def _random(asked: MessageRequest) -> Pairs:
    return [
        (source, asked.rng.choice([target for target in rail if target != source]))
        for rail in asked.rails
        for source in rail
    ]


def _kv_pull(asked: MessageRequest) -> Pairs:
    """Return pairs from the first half of each rail, which has filled its caches, to the other, which decodes."""
    return [
        (rail[at % (len(rail) // 2)], target)
        for rail in asked.rails
        for at, target in enumerate(rail[len(rail) // 2 :])
    ]


MESSAGE_PATTERNS: Registry[MessagePattern] = Registry(
    "message pattern",
    lambda pattern: pattern.name,
    (
        MessagePattern("permutation", "on each rail every GPU sends to one other, drawn by the seed", _permutation),
        MessagePattern("same-rail", "every GPU sends to that of the next host on its rail", _same_rail),
        MessagePattern("cross-rail", "every GPU sends to that of the next host on the next rail", _cross_rail),
        MessagePattern("all-to-all", "every GPU sends to every other", _all_to_all),
        MessagePattern("incast", "on each rail `fan_in` GPUs send to the first", _incast),
        MessagePattern(
            "incast-victim", "as incast, but the last GPU of a rail sends to the second, which sends nothing", _victim
        ),
        MessagePattern("random", "every GPU sends to one on its rail that the seed draws; some get nothing", _random),
        MessagePattern(
            "kv-pull",
            "on each rail the second half of the GPUs (decode) ask those of the first (prefill) and are sent a cache",
            _kv_pull,
            pulled=True,
        ),
    ),
    of=MessagePattern,
)
"""Message patterns, by their name in a drill file."""


@dataclass(frozen=True, slots=True)
class MessageWork:
    """Exchange of ``count`` messages of ``size_bytes`` between every pair in each iteration, posted at once.

    An iteration takes at least ``every_ns``: with a pause before the next burst, if there is time left. Ranks that
    exchange no messages do not wait for each other.
    """

    KEY: ClassVar[str] = "messages"  # of a job in drill files

    pattern: str
    size_bytes: int
    count: int = 1
    every_ns: int = 0
    fan_in: int | None = None
    seed: int = 0

    def compose(self, composer: Composer, site: Site) -> None:
        """Write the ranks' operations. InputError when the pattern does not fit, or there is no message."""
        if self.pattern not in MESSAGE_PATTERNS:
            raise InputError(f"no message pattern {self.pattern!r}; there are {', '.join(MESSAGE_PATTERNS)}")
        if self.count < 1:
            raise InputError(f"the pattern {self.pattern!r} is to send {self.count} messages; at least 1")
        asked = MessageRequest(site.places, random.Random(self.seed), self.fan_in)
        if len(site.places) < 2 or (self.pattern != "all-to-all" and any(len(rail) < 2 for rail in asked.rails)):
            raise InputError(f"the pattern {self.pattern!r} needs two GPUs on every rail; raise hosts")
        pattern = MESSAGE_PATTERNS[self.pattern]
        pairs = pattern.pairs(asked)
        for rank in sorted({rank for pair in pairs for rank in pair}) if self.every_ns else ():
            composer.pause(rank, site.scale.ns(self.every_ns))
        for _ in range(self.count):
            for source, target in pairs:
                size_bytes, label = site.size(self.size_bytes), f"{source} to {target}"
                if pattern.pulled:
                    composer.pull(source, target, _REQUEST_BYTES, size_bytes, label)
                else:
                    composer.message(source, target, size_bytes, label)
