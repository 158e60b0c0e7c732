"""A guest engine of a plug-in, in virtual time: its runs bear its name, and nothing shifts their clock."""

from __future__ import annotations

import json

import pytest

from hpn.results.run.folder import RunFolder, load
from tests.product.hpn import skip_without_virtual_time
from tests.product.test_plugins import hpn

pytestmark = [pytest.mark.guest, pytest.mark.timeout(300)]

ENGINE = """from hpn.testbed.vm.engines import ENGINES, EngineSpec
from hpn.testbed.vm.uml import Uml

ENGINES.add(
    EngineSpec(
        name="mine", start=lambda: Uml(virtual_time=True), virtual_time=True, instead="engine uml with --virtual-time"
    )
)
"""
AUDIT = """import json
import sys
from pathlib import Path

from hpn.scenarios.run import runner
from hpn.testbed.vm import repeatable

before, begin, judge = set(), repeatable.begin, runner._Run._judge


def begun():
    before.update(sys.modules)
    begin()


def judged(self, *rest):
    Path("imported.json").write_text(json.dumps(sorted(set(sys.modules) - before)))
    judge(self, *rest)


repeatable.begin, runner._Run._judge = begun, judged
"""
"""Notes what the supervisor of a drill imports between the begin of a guest's time and the end of its measurements."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """One run of a drill on the engine of a plug-in."""
    folder = tmp_path_factory.mktemp("plug-ins")
    skip_without_virtual_time()
    (folder / "engine.py").write_text(ENGINE)
    (folder / "audit.py").write_text(AUDIT)
    command = ("drill", "run", "link-down", "--engine", "mine", "--virtual-time", "--out", str(folder / "out"))
    ran = hpn("--plugin", str(folder), *command)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return load(folder / "out" / "link-down")


def test_a_run_has_the_name_of_its_engine_and_the_command_of_its_user(run: RunFolder) -> None:
    manifest = run.manifest()
    assert manifest.engine == "mine"
    assert manifest.command[2:6] == ("drill", "run", "link-down", "--engine")


def test_from_its_begin_to_the_end_of_its_measurements_a_run_imports_nothing(run: RunFolder) -> None:
    """Each file that is opened moves the clock of a guest in virtual time, and so every time after it."""
    assert json.loads((run.path / "imported.json").read_text()) == []
