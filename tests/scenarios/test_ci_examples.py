"""What we hand out for CI stays good: the suites load, and the workflows call what exists."""

from __future__ import annotations

import json
import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import jsonschema
import pytest
import yaml

from hpn.results.comparison.baseline import read
from hpn.results.comparison.gate import file_of, strays
from hpn.scenarios.batch.suite.baselines import kept_for
from hpn.scenarios.batch.suite.suite import load_suite
from hpn.scenarios.drill import catalogue
from hpn.testbed.vm import kernel_build
from hpn.testbed.vm.engines import ENGINES, HOST
from tests.docs import commandline
from tests.scenarios import own_repository
from tests.scenarios.own_repository import EXAMPLE, GITHUB, GITLAB

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
    assert {(run.name, run.engine, run.repeat) for run in suite.runs} == {
        (name, "uml-virtual-time", repeat) for name in here for repeat in range(1, 11)
    }


def test_the_smoke_script_names_targets_and_suites_that_exist() -> None:
    text = (EXAMPLES / "smoke.sh").read_text()
    suites = re.findall(r"examples/ci/[a-z]+\.yaml", text)
    assert {"setup"} <= {*re.findall(r"^[^#\n]*\bmake ([a-z]+)", text, re.MULTILINE)} <= commandline.targets()
    assert suites
    assert all((ROOT / suite).is_file() for suite in suites)


def test_the_own_repository_has_a_baseline_of_each_of_its_drills_and_no_other() -> None:
    suite = load_suite(EXAMPLE / "suite.yaml", ENGINES)
    wanted = {(run.name, run.engine) for run in suite.runs}
    assert len(wanted) == 2
    assert strays(EXAMPLE / "baseline", wanted) == ()
    kept = kept_for(suite, EXAMPLE / "baseline", pytest.fail)
    assert kept.baselines == {each: read(file_of(EXAMPLE / "baseline", *each)) for each in wanted}, (
        "each fits its drill"
    )
    assert all(found.stat().st_size < 8_000 for found in (EXAMPLE / "baseline").iterdir())


def shell(script: str) -> str:
    return subprocess.run(["bash", "-c", script], cwd=ROOT, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("name", [GITHUB, GITLAB])
def test_the_own_repository_installs_the_packages_that_virtual_time_needs(name: str) -> None:
    listed = shell(". .ci/packages.sh; virtual_time_packages").split()
    assert own_repository.packages(name) == set(listed)
    assert {*kernel_build.PACKAGES} <= set(listed)


@pytest.mark.parametrize("name", [GITHUB, GITLAB])
def test_what_the_own_repository_runs_is_shell_and_its_commands_exist(name: str) -> None:
    for script in own_repository.scripts(name):
        shell(f"bash -n <<'EOF'\n{script}\nEOF")
        assert [wrong for words in commandline.commands(script) for wrong in commandline.mistakes(words)] == []
    gate, *others = [script for script in own_repository.runs(name) if "hpn ci run" in script]
    assert gate == ".venv/bin/hpn ci run suite.yaml --baseline baseline --save results/baseline --out results"
    assert others == ([own_repository.baseline_script()] if name == GITHUB else [])


def test_both_ci_files_write_a_baseline_where_ci_runs_when_asked_by_hand() -> None:
    """There was none, and a baseline of another machine is not that of CI."""
    script = own_repository.baseline_script()
    assert script == ".venv/bin/hpn ci run suite.yaml --save results/baseline --out results"
    assert [wrong for words in commandline.commands(script) for wrong in commandline.mistakes(words)] == []
    assert "workflow_dispatch" in own_repository.loaded(GITHUB)["on"]  # type: ignore[operator]  # plain YAML
    by_hand = {
        step["run"]: step["if"] for step in own_repository.job(GITHUB)["steps"] if "ci run" in step.get("run", "")
    }
    assert [each.partition("github.event_name ")[2] for each in by_hand.values()] == [
        "!= 'workflow_dispatch'",
        "== 'workflow_dispatch'",
    ]


def test_both_ci_files_publish_what_a_suite_writes() -> None:
    *_, summary, artifact = own_repository.job(GITHUB)["steps"]
    assert summary["if"].split(" && ")[0] == artifact["if"] == "always()", "when it is red, too"
    assert summary["if"].endswith(f"hashFiles('{summary['run'].split()[1]}') != ''"), "where a run left one"
    assert artifact["with"]["path"] == "results"
    assert own_repository.job(GITLAB)["artifacts"]["reports"] == {"junit": "results/junit.xml"}  # type: ignore[call-overload]
    ignored = (EXAMPLE / ".gitignore").read_text().split()
    assert {"/results/", "/ci-out/", "/.venv/", "/.cache/"} <= set(ignored), (
        "ci-out is what hpn ci run writes to unasked"
    )


@pytest.mark.parametrize(("name", "schema"), [(GITHUB, "github-workflows"), (GITLAB, "gitlab-ci")])
def test_a_ci_file_fits_the_schema_of_its_system(name: str, schema: str) -> None:
    package = find_spec("check_jsonschema")
    if package is None or package.origin is None:
        pytest.skip("no schemas of CI systems here: make extras")
    rules = json.loads((Path(package.origin).parent / f"builtin_schemas/vendor/{schema}.json").read_text())
    document = yaml.safe_load((EXAMPLE / name).read_text())
    if True in document:  # 'on' in YAML 1.1
        document["on"] = document.pop(True)
    check = jsonschema.validators.validator_for(rules)(rules)
    assert [error.message for error in check.iter_errors(document)] == []
    (job,) = document["jobs"].values() if name == GITHUB else [document["failover"]]
    job["script" if name == GITLAB else "steps"] = 7
    assert not check.is_valid(document)


def test_the_image_is_made_by_the_scripts_that_set_up_a_checkout() -> None:
    """So that it has no list of packages of its own."""
    lines = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text()).splitlines()
    steps = [line.removeprefix("RUN ") for line in lines if line.startswith("RUN ")]
    first = """bash -c '. .ci/packages.sh && install_packages make "${pip_packages[@]}"'"""
    assert steps == [first, "make guests", "make kernel"]
    assert {word for step in steps[1:] for word in step.split()[1:]} <= commandline.targets()
    assert [line for line in lines if line.startswith("FROM ")] == ["FROM debian:12"]
    for step in steps:
        shell(f"sh -n <<'EOF'\n{step}\nEOF")
    kept_out = (ROOT / ".dockerignore").read_text().split()
    assert {".git", ".venv", "runs"} <= set(kept_out)


def test_the_devcontainer_is_that_image_and_works_in_the_checkout() -> None:
    found = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    place = ROOT / ".devcontainer"
    assert (place / found["build"]["dockerfile"]).resolve() == ROOT / "Dockerfile"
    assert (place / found["build"]["context"]).resolve() == ROOT
    assert found["postCreateCommand"] == "make guests"
    assert found["remoteEnv"]["PATH"].startswith("${containerWorkspaceFolder}/.venv/bin:")
