"""Partners of NICs: who sends to whom on each rail. Pure.

Changes when a pattern chooses partners in another way.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric, Nic

Pair = tuple[Nic, Nic]
_SWAPS = 8  # random exchanges per NIC: enough to mix a permutation well


def permutation(fabric: Fabric, seed: int, across_segments: bool = True) -> list[Pair]:
    """Pair NICs so that on each rail every NIC sends to one other and receives from one, across segments if possible.

    With one segment only, or without ``across_segments``, the other NIC is any NIC of another host. InputError when a
    rail has one host, or a segment holds more than half of them.
    """
    pairs: list[Pair] = []
    for rail, nics in _rails(fabric).items():
        groups = _groups(fabric, nics, across_segments)
        targets = _derangement(groups, random.Random(f"{seed}/{rail}"), f"rail {rail}")
        pairs += [(nics[i], nics[target]) for i, target in enumerate(targets)]
    return pairs


def pairs(fabric: Fabric, seed: int, across_segments: bool = True) -> list[Pair]:
    """Pair the NICs of each rail two by two, both ways; across segments: the same position in two segments.

    A NIC left over stays idle; ``seed`` has no effect. InputError when no NIC has a partner.
    """
    found: list[Pair] = []
    for nics in _rails(fabric).values():
        ordered = list(nics)
        if across_segments:
            ordered.sort(key=lambda nic: (fabric.node(nic.host).index, _segment(fabric, nic)))
        for a, b in zip(ordered[::2], ordered[1::2], strict=False):
            found += [(a, b), (b, a)]
    if not found:
        raise InputError("the pattern 'pairs' needs two active hosts; raise hosts or segments")
    return found


def incast(fabric: Fabric, seed: int, across_segments: bool = True) -> list[Pair]:
    """Pair all NICs of each rail, or those of other segments if any, with one receiver drawn by ``seed``.

    Every sender keeps its own rate: the receiver is offered many times its capacity.
    """
    found: list[Pair] = []
    for rail, nics in _rails(fabric).items():
        if len(nics) < 2:
            raise InputError("the pattern 'incast' needs two active hosts; raise hosts or segments")
        groups = _groups(fabric, nics, across_segments)
        target = random.Random(f"{seed}/{rail}").randrange(len(nics))
        found += [(nic, nics[target]) for i, nic in enumerate(nics) if groups[i] != groups[target]]
    return found


def near_and_far(fabric: Fabric, seed: int, across_segments: bool = True) -> list[Pair]:
    """Pair every NIC with one in its own rack and with one in the rack half way round, on each rail.

    A rack is a set of ToRs with the NICs behind it. Every NIC sends and receives both, so that an outage of one pair
    tells the NIC's from its partner's. Alone in its rack, a NIC sends to a second rack. ``seed`` and
    ``across_segments`` have no effect. InputError when no NIC has a partner.
    """
    found: list[Pair] = []
    for nics in _rails(fabric).values():
        racks = _racks(nics)
        for here, rack in enumerate(racks):
            for at, nic in enumerate(rack):
                found += [(nic, partner) for partner in _partners(racks, here, at)]
    if not found:
        raise InputError("the pattern 'near-and-far' needs two active hosts; raise hosts or segments")
    return found


def probes(fabric: Fabric, seed: int, across_segments: bool = True) -> list[Pair]:
    """Pair every NIC as ``near_and_far`` does and, where switches join rails, with NICs of the next rail as well.

    Without those, a rail's link up to an Agg and the link down from it lie on the same paths wherever a rail has two
    racks, and no method can tell them apart. ``seed`` and ``across_segments`` have no effect.
    """
    found = near_and_far(fabric, seed)
    rails = list(_rails(fabric).values())
    if not fabric.rails_meet or len(rails) < 2:
        return found
    for at, nics in enumerate(rails):
        others = rails[(at + 1) % len(rails)]
        found += [(nic, partner) for nic in nics for partner in _across(nic, others)]
    return found


def _across(nic: Nic, others: Sequence[Nic]) -> list[Nic]:
    """Return the NICs of another rail that a NIC sends to: one at its own host's place in each of two racks."""
    racks = _racks(others)
    own = next((at for at, rack in enumerate(racks) if any(other.host == nic.host for other in rack)), 0)
    shifts = dict.fromkeys((0, max(1, len(racks) // 2))) if len(racks) > 1 else {0: None}
    chosen = []
    for shift in shifts:
        rack = [other for other in racks[(own + shift) % len(racks)] if other.host != nic.host]
        if rack:
            chosen.append(rack[sum(nic.name.encode()) % len(rack)])
    return chosen


def _racks(nics: Sequence[Nic]) -> list[list[Nic]]:
    """Return NICs by the ToRs that they are wired to."""
    found: dict[frozenset[str], list[Nic]] = {}
    for nic in nics:
        found.setdefault(frozenset(link.upper.node for link in nic.links), []).append(nic)
    return list(found.values())


def _partners(racks: Sequence[Sequence[Nic]], here: int, at: int) -> list[Nic]:
    """Return the NICs that NIC ``at`` of rack ``here`` sends to."""
    rack, count = racks[here], len(racks)
    shifts = [max(1, count // 2)] if count > 1 else []
    if len(rack) == 1 and count > 2:
        shifts.append(1 if shifts != [1] else 2)
    others = [racks[(here + shift) % count] for shift in shifts]
    near = [rack[(at + 1) % len(rack)]] if len(rack) > 1 else []
    return [*near, *(other[at % len(other)] for other in others)]


def _segment(fabric: Fabric, nic: Nic) -> tuple[int, int]:
    host = fabric.node(nic.host)
    return host.pod, host.segment or 0


def _rails(fabric: Fabric) -> Mapping[int, Sequence[Nic]]:
    """Return the NICs of active hosts by rail, in fabric order."""
    found: dict[int, list[Nic]] = {}
    for nic in fabric.active_nics:
        found.setdefault(nic.rail, []).append(nic)
    return found


def _groups(fabric: Fabric, nics: Sequence[Nic], across_segments: bool) -> list[int]:
    """Return the group number of each NIC. No NIC sends within its group, which is a segment or else a host."""
    segments = [_segment(fabric, nic) for nic in nics]
    numbers = {segment: i for i, segment in enumerate(dict.fromkeys(segments))}
    if across_segments and len(numbers) > 1:
        return [numbers[segment] for segment in segments]
    return list(range(len(nics)))


def _derangement(groups: Sequence[int], rng: random.Random, where: str) -> list[int]:
    """Return a random permutation that maps no index to its own group."""
    by_group: dict[int, list[int]] = {}
    for i, group in enumerate(groups):
        by_group.setdefault(group, []).append(i)
    largest = max(len(members) for members in by_group.values())
    if 2 * largest > len(groups):
        raise InputError(
            f"the pattern 'permutation' on {where}: {largest} of {len(groups)} hosts are in one segment,"
            " so not everyone finds a partner outside; raise hosts or segments"
        )
    ordered: list[int] = []
    for members in rng.sample(list(by_group.values()), len(by_group)):
        ordered += rng.sample(members, len(members))
    # Groups are contiguous and none is longer than ``largest``, so a rotation by that much always leaves the group.
    targets = [0] * len(groups)
    for place, member in enumerate(ordered):
        targets[member] = ordered[(place + largest) % len(ordered)]
    for _ in range(_SWAPS * len(groups)):
        a, b = rng.randrange(len(groups)), rng.randrange(len(groups))
        if groups[a] != groups[targets[b]] and groups[b] != groups[targets[a]]:
            targets[a], targets[b] = targets[b], targets[a]
    return targets
