"""The list of mutants fits the code and the tests of today, and its runner tells a mutant that no test catches."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.mutants import ROOT, Mutant, load, main

MUTANTS = load(ROOT / "tests" / "mutants")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_has_its_place_and_its_tests_exist(mutant: Mutant) -> None:
    changed = mutant.planted((ROOT / mutant.file).read_text())
    assert mutant.find != mutant.replace
    if mutant.file.endswith(".py"):
        compile(changed, mutant.file, "exec")
    assert mutant.tests
    for test in mutant.tests:
        file, *names = test.split("[", 1)[0].split("::")
        assert "::".join(names) in _tests_of(file), test


def test_every_mutant_has_a_name_of_its_own_and_says_what_it_breaks() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert sorted(set(names)) == sorted(names)
    assert all(mutant.breaks for mutant in MUTANTS)


@cache
def _tests_of(file: str) -> frozenset[str]:
    """The tests of a file, 'test_x' and 'TestX::test_y', and '' for all of them."""
    found = {""}
    for node in ast.parse((ROOT / file).read_text()).body:
        if isinstance(node, _FUNCTIONS):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{each.name}" for each in node.body if isinstance(each, _FUNCTIONS)}
    return frozenset(found)


_CODE = "def double(number):\n    if number:\n        return number * 2\n    return 0\n"
_TESTS = """\
import pytest
from code_of_it import double

@pytest.mark.parametrize("number", [1, 2])
def test_twice(number):
    assert double(number) == 2 * number

def test_nothing():
    assert double(0) == 0

def test_wrong():
    assert double(1) == 1

def test_elsewhere():
    pytest.skip("not on this machine")
"""
_LIST = """\
- {name: caught, breaks: nothing is doubled, kind: pure, file: code_of_it.py,
   find: return number * 2, replace: return number, test: tests/test_it.py::test_twice}
- {name: one-of-two, breaks: nothing is doubled, kind: pure, file: code_of_it.py,
   find: return number * 2, replace: return number,
   test: ['tests/test_it.py::test_twice', 'tests/test_it.py::test_nothing']}
- {name: other-reason, breaks: nothing is doubled, kind: pure, file: code_of_it.py,
   find: return number * 2, replace: return number, test: tests/test_it.py::test_twice, says: KeyError}
- {name: no-import, breaks: it cannot be imported, kind: pure, file: code_of_it.py,
   find: "def double(number):", replace: "import nowhere\\ndef double(number):",
   test: tests/test_it.py::test_twice, says: No module named 'nowhere'}
- {name: lines, breaks: twice too much, kind: pure, file: code_of_it.py,
   find: "if number:\\n    return", replace: "if number:\\n    return 2 *", test: 'tests/test_it.py::test_twice[2]'}
- {name: twice-there, breaks: it returns too much, kind: pure, file: code_of_it.py,
   find: return, replace: return 1 +, test: tests/test_it.py::test_twice}
- {name: no-python, breaks: it is no program, kind: pure, file: code_of_it.py,
   find: "number:", replace: number, test: tests/test_it.py::test_twice}
- {name: red-before, breaks: nothing is doubled, kind: pure, file: code_of_it.py,
   find: return number * 2, replace: return number, test: tests/test_it.py::test_wrong}
- {name: skipped, breaks: nothing is doubled, kind: kernel, file: code_of_it.py,
   find: return number * 2, replace: return number, test: tests/test_it.py::test_elsewhere}
"""
_TOLD = {
    "caught": "caught          caught                       assert 1 == (2 * 1)",
    "one-of-two": "survived        one-of-two                   tests/test_it.py::test_nothing passes",
    "other-reason": "tests/test_it.py::test_twice fails otherwise: assert 1 == (2 * 1)",
    "no-import": "caught          no-import                    ModuleNotFoundError: No module named 'nowhere'",
    "lines": "caught          lines                        assert 8 == (2 * 2)",
    "twice-there": "does not apply  twice-there                  code_of_it.py has not exactly one place",
    "no-python": "does not apply  no-python                    expected ':'",
    "red-before": "red without it  red-before                   assert 2 == 1",
    "skipped": "not run         skipped                      not on this machine",
}


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    (folder / "tests" / "mutants").mkdir(parents=True)
    (folder / "code_of_it.py").write_text(_CODE)
    (folder / "tests" / "test_it.py").write_text(_TESTS)
    (folder / "tests" / "mutants" / "list.yaml").write_text(_LIST)
    return folder


def test_the_runner_tells_what_became_of_each(
    toy: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # pytest starts in half the time
    assert main([], toy) == 1
    told = capsys.readouterr().out.splitlines()
    assert len(told) == len(_TOLD) + 1
    for line, (name, text) in zip(told, _TOLD.items(), strict=False):
        assert text in line, name
    assert told[-1] == "3 of 9 caught"
    assert (toy / "code_of_it.py").read_text() == _CODE


def test_one_that_is_caught_ends_with_0_and_a_kind_leaves_the_others_out(
    toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["caught"], toy) == 0
    assert main(["--kind", "kernel", "--list"], toy) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("skipped")


def test_a_name_that_is_none_is_refused() -> None:
    command = [sys.executable, "-m", "tests.mutants", "no-such-mutant"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "there is no such mutant" in ended.stderr
