"""Imports go one way (DESIGN): cli, scenarios, results, failover, traffic, testbed; and inside testbed likewise."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# A module may import modules of its own room and of rooms with a smaller number.
ROOMS = {
    "cli": 100,
    "scenarios": 90,
    "results": 80,
    "failover": 70,
    "traffic": 60,
    "testbed.vm": 50,
    "testbed.lab": 50,
    "testbed.doctor": 40,
    "testbed.routing": 30,
    "testbed.lag": 30,
    "testbed.fabric": 20,
    "testbed.kernel": 20,
    "testbed.yamlcheck": 11,
    "testbed.yamlfile": 10,
    "testbed.entries": 0,
    "testbed.errors": 0,
    "testbed.events": 0,
}
# Siblings that may not see each other although neither is above the other.
LAB_FREE = ("results", "failover")
# But for the injector and what it has done to a lab.
ACT_ON_A_LAB = {"failover.inject", "failover.levers", "failover.needs"}


def _sources() -> list[Path]:
    rooms = ("scenarios", "results", "failover", "traffic", "testbed")
    return [ROOT / "cli.py", *(path for room in rooms for path in sorted((ROOT / room).rglob("*.py")))]


def _room(module: str) -> str | None:
    parts = module.split(".")
    for name in (".".join(parts[:2]), parts[0]):
        if name in ROOMS:
            return name
    return None


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield from (f"{node.module}.{name.name}" for name in node.names)


@pytest.mark.parametrize("path", _sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_downwards(path: Path) -> None:
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    here = _room(module)
    if module == "testbed.__init__":
        return
    assert here is not None, f"{module} belongs to no room: add it to ROOMS"
    for imported in _imports(path):
        there = _room(imported)
        if there is None or there == here:
            continue
        assert ROOMS[there] < ROOMS[here], f"{module} ({here}) imports {imported} ({there})"
        if there == "testbed.lab" and here in LAB_FREE:
            assert module in ACT_ON_A_LAB, f"{module} must not know a running lab"


def test_the_command_starts_without_threads_and_without_numpy() -> None:
    """A process with threads can enter no sandbox (setns), so hpn exec and shell would fail; OpenBLAS starts one.

    Numpy would also make every command wait a tenth of a second.
    """
    asked = "import os, sys, cli; print(len(os.listdir('/proc/self/task')), 'numpy' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert said.split() == ["1", "False"]
