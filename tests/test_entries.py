"""A registry is complete when it is made, or it cannot be made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

import pytest

from hpn.testbed.entries import Registry


@dataclass(frozen=True)
class Thing:
    key: str
    unit: str = ""


def _lacks(thing: Thing) -> set[str]:
    return set() if thing.unit else {"unit"}


def test_entries_keep_their_order_and_are_found_by_key() -> None:
    found = Registry("thing", lambda thing: thing.key, (Thing("b"), Thing("a")))
    assert list(found) == ["b", "a"]
    assert (found["a"], "c" in found, len(found)) == (Thing("a"), False, 2)


def test_an_entry_that_does_not_say_what_every_entry_must_is_an_error_at_once() -> None:
    with pytest.raises(TypeError, match="thing 'b' does not say its unit"):
        Registry("thing", lambda thing: thing.key, (Thing("a", "ms"), Thing("b")), _lacks)


def test_two_entries_of_one_key_are_an_error_at_once() -> None:
    with pytest.raises(TypeError, match="thing 'a' is there already"):
        Registry("thing", lambda thing: thing.key, (Thing("a"), Thing("a", "ms")))


class Colour(Enum):
    RED = auto()


@dataclass(frozen=True)
class Painted:
    key: str
    colour: Colour
    paint: Callable[[], None]


def test_an_entry_whose_arguments_have_slipped_is_an_error_at_once() -> None:
    slipped = Painted("a", print, Colour.RED)  # type: ignore[arg-type]  # that they are wrong is the point
    with pytest.raises(TypeError, match="thing 'a' does not say its colour, paint"):
        Registry("thing", lambda thing: thing.key, (slipped,))


def test_what_is_no_entry_at_all_is_an_error_at_once() -> None:
    things = Registry("thing", lambda thing: thing.key, (Thing("a"),), of=Thing)
    with pytest.raises(TypeError, match=r"'a' is no thing: that is a tests.test_entries.Thing"):
        things.add("a")  # type: ignore[arg-type]
