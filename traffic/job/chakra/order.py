"""Puts what waits for one another into an order in which it can be done. PURE."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from heapq import heapify, heappop, heappush


class Circle(Exception):
    """There is no order: ``member`` waits for itself, over others perhaps."""

    def __init__(self, member: int) -> None:
        super().__init__(member)
        self.member = member


def in_order(before: Mapping[int, Collection[int]], key: Callable[[int], tuple[int, ...]]) -> list[int]:
    """All members, each behind those ``before`` it, of several the one with the smallest ``key``. Circle."""
    left = {member: len(others) for member, others in before.items()}
    after: dict[int, list[int]] = {member: [] for member in before}
    for member, others in before.items():
        for other in others:
            after[other].append(member)
    ready = [(key(member), member) for member, many in left.items() if not many]
    heapify(ready)
    found: list[int] = []
    while ready:
        _, member = heappop(ready)
        found.append(member)
        for other in after[member]:
            left[other] -= 1
            if not left[other]:
                heappush(ready, (key(other), other))
    if len(found) < len(before):
        raise Circle(_on_circle(before, before.keys() - set(found)))
    return found


def _on_circle(before: Mapping[int, Collection[int]], left: Collection[int]) -> int:
    """A member that waits for itself; each of ``left`` waits for another of them."""
    member = min(left)
    seen: set[int] = set()
    while member not in seen:
        seen.add(member)
        member = min(other for other in before[member] if other in left)
    return member
