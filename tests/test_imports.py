"""Imports go one way (DESIGN): cli, commands, scenarios, results, failover, traffic, testbed; so inside."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpn.testbed.package import PACKAGES, own_files

ROOT = Path(__file__).resolve().parent.parent

# A module may import modules of its own room and of rooms with a smaller number; the longest name counts.
ROOMS = {
    "hpn.cli": 200,
    "docs": 220,  # makes the site: nothing imports it
    "hpn.__main__": 210,
    "hpn": 190,
    "hpn.commands": 190,
    "hpn.scenarios.selfcheck.bench": 180,
    "hpn.scenarios.explore": 173,  # settles as audits do, shrinks as campaigns do
    "hpn.scenarios.audit": 172,  # asks as campaigns do which flows have a path left
    "hpn.scenarios.campaign": 170,
    "hpn.scenarios.model.month": 170,
    "hpn.scenarios.paper": 175,  # holds claims against what a month is assumed to break
    "hpn.scenarios.selfcheck.selftest": 170,
    "hpn.scenarios.batch.suite": 170,
    "hpn.scenarios.batch.kept_runs": 167,
    "hpn.scenarios.batch.pool": 165,
    "hpn.scenarios.batch.matrix": 165,
    "hpn.scenarios.run": 160,
    "hpn.scenarios.model": 155,
    "hpn.scenarios.drill": 150,
    "hpn.scenarios.expect": 140,
    "hpn.results": 130,
    "hpn.failover.inject": 120,
    "hpn.failover.sampling": 110,
    "hpn.failover.faults": 105,
    "hpn.failover.locating": 102,
    "hpn.failover.analysis": 100,
    "hpn.traffic": 60,
    "hpn.testbed.vm": 52,
    "hpn.testbed.lab.service": 52,
    "hpn.testbed.lab": 50,
    "hpn.testbed.doctor": 40,
    "hpn.testbed.routing": 30,
    "hpn.testbed.routing.srv6": 25,
    "hpn.testbed.routing.pathcontrol": 15,
    "hpn.testbed.routing.pathcontrol.agent_io": 30,  # what has to do with a kernel
    "hpn.testbed.routing.pathcontrol.tor_agent": 30,
    "hpn.testbed.routing.pathcontrol.fib": 25,
    "hpn.testbed.lag": 30,
    "hpn.testbed.importing": 40,
    "hpn.testbed.fabric.json_schema": 38,
    "hpn.testbed.fabric.writing": 38,
    "hpn.testbed.fabric.exporting": 39,
    "hpn.testbed.fabric.load": 37,
    "hpn.testbed.fabric.build": 36,
    "hpn.testbed.fabric.buffers": 33,  # computes the options of a discipline of the kernel
    "hpn.testbed.fabric.buffer_rules": 34,
    "hpn.testbed.fabric.rules": 35,  # asks what a topology file may name: architectures, LAG datapaths, BGP daemons
    "hpn.testbed.fabric": 20,
    "hpn.testbed.kernel": 20,
    "hpn.testbed.files": 10,
    "hpn.testbed.background": 0,
    "hpn.testbed.entries": 0,
    "hpn.testbed.condition": 0,
    "hpn.testbed.errors": 0,
    "hpn.testbed.events": 0,
    "hpn.testbed.oldnames": 1,
    "hpn.testbed.package": 0,
    "hpn.testbed.plugins": 2,
    "hpn.testbed.variables": 1,
    "hpn.testbed.versions": 1,
}
# Rooms below which a running lab stands and which must not see one all the same; who acts on a lab, neither.
LAB_FREE = (
    *("hpn.results", "hpn.scenarios.expect", "hpn.scenarios.drill", "hpn.scenarios.model"),
    *("hpn.failover.analysis", "hpn.failover.faults", "hpn.failover.locating", "hpn.failover.sampling"),
)
OF_A_LAB = ("hpn.testbed.lab", "hpn.testbed.lab.service", "hpn.failover.inject")


def _sources() -> list[Path]:
    return own_files("*.py")


def _room(module: str) -> str | None:
    parts = module.split(".")
    return next((name for n in range(len(parts), 0, -1) if (name := ".".join(parts[:n])) in ROOMS), None)


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
    if module.endswith(".__init__") and here is None:
        return
    assert here is not None, f"{module} belongs to no room: add it to ROOMS"
    for imported in _imports(path):
        there = _room(imported)
        if there is None or there == here:
            continue
        assert ROOMS[there] < ROOMS[here], f"{module} ({here}) imports {imported} ({there})"
        assert there not in OF_A_LAB or here not in LAB_FREE, f"{module} must not know a running lab"


def test_nothing_that_a_lab_is_made_of_knows_the_lab() -> None:
    """Not for its types either: what breaks a lab or looks whether it stands takes the parts that it uses."""
    todo, seen = ["hpn.testbed.lab.lab"], set[str]()
    while todo:
        module = todo.pop()
        parts = set(_own_modules(ROOT / f"{module.replace('.', '/')}.py"))
        assert "hpn.testbed.lab.lab" not in parts, f"{module} imports the lab, which is made of it"
        todo += parts - seen
        seen |= parts


def _own_modules(path: Path) -> Iterator[str]:
    """The modules of the product that one imports."""
    for imported in _imports(path):
        for name in (imported, imported.rpartition(".")[0]):
            if (ROOT / f"{name.replace('.', '/')}.py").is_file():
                yield name
                break


def test_the_product_states_its_errors_and_asserts_nothing() -> None:
    """What is asserted is either seen by the type checker or can happen; then an error says what and where."""
    trees = ((path, ast.parse(path.read_text())) for path in _sources())
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert)
    ]
    assert found == []


def test_the_command_starts_without_threads_and_without_numpy() -> None:
    """A process with threads can enter no sandbox (setns), so hpn exec and shell would fail; OpenBLAS starts one.

    Numpy would also make every command wait a tenth of a second.
    """
    asked = (
        "import importlib, os, sys\nfrom hpn import cli\n"
        "for command in cli.COMMANDS.values(): importlib.import_module(command.module)\n"
        "print(len(os.listdir('/proc/self/task')), 'numpy' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert said.split() == ["1", "False"]


def test_every_package_is_one_of_the_import_order_and_of_the_wheel() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests", "hpn"}
    links = {path.name: path.readlink() for path in (ROOT / "hpn").iterdir() if path.is_symlink()}
    assert packages == set(PACKAGES)
    assert links == {name: Path("..", name) for name in (*packages, "cli.py")}
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert metadata["setuptools"]["packages"]["find"]["include"] == ["hpn*"]
    assert "hpn" in metadata["mypy"]["files"]


def test_help_and_version_import_nothing_that_takes_time() -> None:
    asked = (
        "import sys\nfrom hpn import cli\n"
        "cli.command_line.main([sys.argv[1]], prog_name='hpn', standalone_mode=False)\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules}), *sys.modules)"
    )
    for option in ("--help", "--version"):
        command = [sys.executable, "-c", asked, option]
        said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
        found = set(said.split())
        assert (
            found & {"pydantic", "rich", "yaml", "numpy", "hpn.scenarios", "hpn.results", "hpn.commands.drill"} == set()
        ), option


def test_nothing_imports_a_package_by_the_name_that_only_a_checkout_has() -> None:
    """It would be a second copy of the same module: what a test changes in one, the command looks up in the other."""
    folders = (*own_files("*.py"), *(ROOT / "tests").rglob("*.py"), *(ROOT / "examples").rglob("*.py"))
    found = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in folders
        for name in _imports(path)
        if name.partition(".")[0] in {*PACKAGES, "cli"}
    ]
    assert found == []
