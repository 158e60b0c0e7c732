"""Drills of the library with streams on fabrics drawn for this commit, in virtual time: no verdict without a cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.strangers.library import drawn, numbers, run_one, seed

pytestmark = [pytest.mark.guest, pytest.mark.timeout(400)]


def test_any_commit_has_ten_drills_that_fit_their_fabrics() -> None:
    for of in ("0", "1", "2", "3", seed()):
        found = list(drawn(of))
        assert len(found) == 10
        assert {each.topology["lag"] for each in found} == {"nft", "kernel"}
        assert sum(each.job for each in found) == 5


@pytest.mark.parametrize("number", numbers(job=False))
def test_its_verdict_has_a_cause(number: int, tmp_path: Path) -> None:
    run_one(number, tmp_path)
