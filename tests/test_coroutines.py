"""A test that is a coroutine is run to its end, in the sandbox too; what nobody runs does not pass."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SAMPLE = """
import asyncio
import pytest

async def later():
    await asyncio.sleep(0)
    assert False, "only who runs this sees it"

async def test_passes():
    await asyncio.sleep(0)

async def test_fails():
    await later()

def test_hands_out_a_coroutine():
    return later()

async def test_hands_out_one_of_its_own():
    return later()

async def test_is_a_generator():
    yield

@pytest.mark.parametrize("number", [1, 2])
async def test_takes_values(number):
    assert number == 1

async def test_skips():
    await asyncio.sleep(0)
    pytest.skip("for a reason")

def test_returns_a_figure():
    return 1
"""
OUTCOMES = {
    "test_passes": "PASSED",
    "test_fails": "FAILED",
    "test_hands_out_a_coroutine": "FAILED",
    "test_hands_out_one_of_its_own": "FAILED",
    "test_is_a_generator": "FAILED",
    "test_takes_values[1]": "PASSED",
    "test_takes_values[2]": "FAILED",
    "test_skips": "SKIPPED",
    "test_returns_a_figure": "FAILED",
}


@pytest.mark.parametrize("mark", ["", "pytestmark = pytest.mark.kernel"], ids=["in place", "in a sandbox"])
def test_only_a_coroutine_that_ran_to_its_end_passes(tmp_path: Path, mark: str) -> None:
    sample = tmp_path / "test_sample.py"
    sample.write_text(SAMPLE + mark)
    command = (sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "-vv", str(sample))
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    if "no sandbox here" in ran.stdout:
        pytest.skip("no sandbox here")
    assert dict(re.findall(r"^\S+::(\S+) ([A-Z]+)", ran.stdout, re.MULTILINE)) == OUTCOMES, ran.stdout + ran.stderr
