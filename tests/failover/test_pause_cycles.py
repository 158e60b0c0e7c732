"""Who waits for whom under PFC, and rings of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpn.failover.analysis.buffers import ClassUse
from hpn.failover.analysis.pause_cycles import deadlock, waiting_for
from tests.results.sample import class_use


def _stopped(a: str, b: str, priority: int = 3, queue: int = 1, last: int = 0) -> tuple[ClassUse, ClassUse]:
    """``b`` stops ``a``'s queue towards it; hosts are named 'h...', all others are switches."""
    link = "-".join(sorted((a, b)))
    near, far = (
        replace(class_use(f"{x}:{y}", priority), link=link, is_switch=not x.startswith("h"))
        for x, y in ((a, b), (b, a))
    )
    return replace(near, paused=True, queue_bytes=queue, last_packets=last), replace(far, pausing=True)


def _both(a: str, b: str) -> tuple[ClassUse, ClassUse]:
    """Each stops the other."""
    (stopped, stops), (stopped_too, stops_too) = _stopped(a, b), _stopped(b, a)
    return replace(stopped, pausing=stops_too.pausing), replace(stopped_too, pausing=stops.pausing)


RING = (*_stopped("a", "b"), *_stopped("b", "c"), *_stopped("c", "a"))


def test_a_ring_is_told_in_the_order_of_waiting() -> None:
    assert waiting_for(RING)["a:b", 3] == {("b:c", 3)}
    found = deadlock(RING)
    assert sorted(found) == ["a:b", "b:c", "c:a"]
    assert {(found[n], found[(n + 1) % 3]) for n in range(3)} == {("a:b", "b:c"), ("b:c", "c:a"), ("c:a", "a:b")}


@pytest.mark.parametrize(
    "found",
    [
        (),
        (*_stopped("a", "b"), *_stopped("b", "c")),
        (*_stopped("a", "b"), *_stopped("b", "c"), *_stopped("c", "a", 4)),
        (*_stopped("a", "b"), *_stopped("b", "c"), *_stopped("c", "a", queue=0)),
        (*_stopped("a", "b"), *_stopped("b", "c"), *_stopped("c", "a", last=1)),
        _both("t", "h0"),
        (*_both("t", "a"), *_stopped("t", "h0"), *_both("a", "u"), *_stopped("u", "h1")),
        (*RING, *_stopped("b", "h0")),
    ],
    ids=[
        "nothing",
        "a chain",
        "another priority",
        "an empty queue",
        "one of them moves",
        "a host and its ToR stop each other",
        "two hosts are stuck and all between them stands still",
        "a queue of the ring may hold packets for a host that is stuck",
    ],
)
def test_what_is_no_ring_is_none(found: tuple[ClassUse, ...]) -> None:
    assert deadlock(found) == ()


def test_two_switches_that_stop_each_other_wait_for_each_other() -> None:
    assert set(deadlock((*_stopped("a", "b"), *_stopped("b", "a")))) == {"a:b", "b:a"}
