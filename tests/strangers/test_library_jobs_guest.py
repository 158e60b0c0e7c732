"""Drills of the library with jobs on fabrics drawn for this commit, in virtual time: no verdict without a cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.strangers.library import numbers, run_one

pytestmark = [pytest.mark.guest, pytest.mark.timeout(400)]


@pytest.mark.parametrize("number", numbers(job=True))
def test_its_verdict_has_a_cause(number: int, tmp_path: Path) -> None:
    run_one(number, tmp_path)
