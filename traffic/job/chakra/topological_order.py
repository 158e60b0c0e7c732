"""Topological order of members with dependencies. PURE."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from heapq import heapify, heappop, heappush


class DependencyCycle(Exception):
    """Dependency cycle: ``member`` depends on itself, perhaps through others."""

    def __init__(self, member: int) -> None:
        super().__init__(member)
        self.member = member


def in_order(before: Mapping[int, Collection[int]], key: Callable[[int], tuple[int, ...]]) -> list[int]:
    """Return all members, each after those ``before`` it; among ready ones the smallest ``key`` is next. Circle."""
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
        raise DependencyCycle(_on_circle(before, before.keys() - set(found)))
    return found


def _on_circle(before: Mapping[int, Collection[int]], left: Collection[int]) -> int:
    """Return a member that depends on itself; each of ``left`` depends on another of them."""
    member = min(left)
    seen: set[int] = set()
    while member not in seen:
        seen.add(member)
        member = min(other for other in before[member] if other in left)
    return member
