"""Guest tests run last, although whole files go to workers: so no file may mix them with others."""

from __future__ import annotations

import pytest


def test_guests_come_last_and_in_files_of_their_own(request: pytest.FixtureRequest) -> None:
    tests = [(item.get_closest_marker("guest") is not None, item.path) for item in request.session.items]
    assert [guest for guest, _ in tests] == sorted(guest for guest, _ in tests)
    mixed = {path for guest, path in tests if guest} & {path for guest, path in tests if not guest}
    assert not mixed, f"move the guest tests of {mixed} into a file of their own"
