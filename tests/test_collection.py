"""Guest tests run last, extras behind them, although whole files go to workers: so no file may mix them with others."""

from __future__ import annotations

from collections import Counter

import pytest

_LAST = ("guest", "extra")


def test_guests_come_last_and_extras_behind_them_in_files_of_their_own(request: pytest.FixtureRequest) -> None:
    tests = [(_kind(item), item.path) for item in request.session.items]
    assert [kind for kind, _ in tests] == sorted(kind for kind, _ in tests)
    files = Counter(path for _, path in set(tests))
    mixed = {path for path, kinds in files.items() if kinds > 1}
    assert not mixed, f"move the guest tests of {mixed} into a file of their own"


def _kind(item: pytest.Item) -> tuple[bool, ...]:
    return tuple(item.get_closest_marker(name) is not None for name in _LAST)
