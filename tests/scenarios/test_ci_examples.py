"""What we hand out for CI stays good: the suites load, and the workflows call what exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from scenarios.drill import catalogue
from scenarios.suite.suite import load_suite
from testbed.vm.engines import ENGINES, HOST

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "ci"


@pytest.mark.parametrize("name", ["suite.yaml", "smoke.yaml", "phases.yaml"])
def test_a_suite_has_no_mistakes(name: str) -> None:
    assert load_suite(EXAMPLES / name, ENGINES).runs


def test_the_smoke_suite_needs_no_guest() -> None:
    assert {run.engine for run in load_suite(EXAMPLES / "smoke.yaml", ENGINES).runs} == {HOST.name}


def test_the_phases_suite_runs_every_drill_at_ten_phases_in_virtual_time() -> None:
    suite = load_suite(EXAMPLES / "phases.yaml", ENGINES)
    here = {*catalogue.names()} - {line.split(":")[0] for line in suite.left_out}
    assert {(run.drill, run.engine, run.repeat) for run in suite.runs} == {
        (name, "uml-virtual-time", repeat) for name in here for repeat in range(1, 11)
    }


@pytest.mark.parametrize("name", ["github-actions.yml", "gitlab-ci.yml", "smoke.sh"])
def test_a_workflow_names_targets_and_suites_that_exist(name: str) -> None:
    text = (EXAMPLES / name).read_text()
    if name.endswith(".yml"):
        assert yaml.safe_load(text)
    targets = set(re.findall(r"^[^#\n]*\bmake ([a-z]+)", text, re.MULTILINE))
    known = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    suites = re.findall(r"examples/ci/[a-z]+\.yaml", text)
    assert "setup" in targets
    assert targets <= known
    assert f"hpn ci run {suites[0]} --out ci-out" in text or name == "smoke.sh"
    assert all((ROOT / suite).is_file() for suite in suites)
