"""``make survivors`` makes mutants by operators, and lists those that no test catches."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants import ROOT

pytest.importorskip("libcst", reason="pip install --no-deps -r tests/survivors/requirements.lock")
pytest.importorskip("mutmut", reason="pip install --no-deps -r tests/survivors/requirements.lock")

_CODE = """\
from dataclasses import dataclass

@dataclass(frozen=True)
class Limit:
    most: int

    def kept(self, value: int) -> bool:
        return value <= self.most

    @property
    def text(self) -> str:
        return f"at most {self.most}"

def alone() -> int:
    return 1
"""
_TESTS = """\
from hpn.room.limit import Limit

def test_below():
    assert Limit(3).kept(2)
    assert not Limit(3).kept(4)

def test_text():
    assert Limit(3).text == "at most 3"
"""


def test_a_condition_is_dropped_settled_and_turned_round() -> None:
    from tests.survivors.generate import mutants

    code = "def f(a, b):\n    if a and b:\n        return 'text'\n    return [a - b]\n"
    made = {each.text.split("\n", 1)[1] for each in mutants("f.py", code)}
    for condition in ("a or b", "a", "b", "True", "False", "not (a and b)"):
        assert f"    if {condition}:\n        return 'text'\n    return [a - b]\n" in made
    for value in ("[a + b]", "[a]", "[b]", "[]", "None"):
        assert f"    if a and b:\n        return 'text'\n    return {value}\n" in made
    assert all(
        "text" in each or "return None" in each or "return True" in each or "return False" in each for each in made
    )


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    (folder / "room").mkdir()
    (folder / "room" / "limit.py").write_text(_CODE)
    (folder / "hpn").mkdir()
    (folder / "hpn" / "__init__.py").touch()
    (folder / "hpn" / "room").symlink_to("../room")
    shutil.copytree(ROOT / "tests" / "survivors", folder / "tests" / "survivors")
    shutil.copy(ROOT / "tests" / "mutants.py", folder / "tests")
    (folder / "tests" / "__init__.py").touch()
    (folder / "tests" / "test_limit.py").write_text(_TESTS)
    return folder


def _survivors(toy: Path) -> tuple[str, str]:
    command = [sys.executable, "-m", "tests.survivors", "room"]
    ended = subprocess.run(
        command, cwd=toy, env={**os.environ, "PYTHONPATH": str(toy)}, capture_output=True, text=True, check=True
    )
    return ended.stdout, (toy / "runs" / "survivors.txt").read_text()


def test_survivors_are_listed_with_place_and_diff_and_kept_for_the_next_time(toy: Path) -> None:
    told, listed = _survivors(toy)
    assert "room/limit.py:8 Limit.kept: survives\n-        return value <= self.most\n+        return value <" in listed
    assert "room/limit.py:15 alone: no test calls it\n-    return 1\n+    return 2\n" in listed
    assert "return value > " not in listed
    assert "Limit.text" not in listed  # in a decorated class, and killed
    assert "'killed': " in told
    known = toy / "runs" / "survivors.known"
    before = known.read_text()
    assert _survivors(toy)[1] == listed
    assert known.read_text() == before
    assert (toy / "room" / "limit.py").read_text() == _CODE
