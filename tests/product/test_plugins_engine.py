"""An engine of a plug-in stands wherever engines stand: doctor, --engine, suites, results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpn.results.run.folder import load
from tests.product.test_plugins import OWN, hpn

UNDECLARED = """from hpn.testbed.vm.engines import ENGINES, EngineSpec

ENGINES.add(EngineSpec(name="{name}", start=object))
"""


def test_the_doctor_lists_an_engine_of_a_plug_in() -> None:
    found = json.loads(hpn("--plugin", str(OWN), "doctor", "--json").stdout)
    (nice,) = [each for each in found if each["name"] == "engine nice"]
    assert nice["present"]
    assert "this machine's own" in nice["detail"]
    assert "engine nice" not in hpn("doctor", "--json").stdout


def test_an_engine_of_a_plug_in_is_a_word_of_the_commands_that_it_is_for() -> None:
    helped = hpn("--plugin", str(OWN), "drill", "run", "--help", COLUMNS="200").stdout
    assert "--engine [host|qemu|uml|uml-virtual-time|nice]" in helped
    refused = hpn("drill", "run", "link-down", "--engine", "nice")
    assert refused.returncode == 2
    assert "'nice' is not one of 'host', 'qemu', 'uml', 'uml-virtual-time'" in refused.stderr
    for command in ("selftest", "campaign run", "vm shell"):
        assert "nice" not in hpn("--plugin", str(OWN), *command.split(), "--help", COLUMNS="200").stdout
    frozen = hpn("--plugin", str(OWN), "drill", "run", "link-down", "--engine", "nice", "--virtual-time")
    assert (frozen.returncode, frozen.stderr) == (2, "hpn: --virtual-time needs --engine uml-virtual-time\n")


def test_a_suite_may_name_an_engine_of_a_plug_in_and_no_other(tmp_path: Path) -> None:
    suite = tmp_path / "suite.yaml"
    suite.write_text("suite: s\nruns: [{drills: [link-down], engines: [nise]}]\n")
    found = hpn("--plugin", str(OWN), "ci", "run", str(suite), "--out", str(tmp_path / "out"))
    assert found.returncode == 2
    assert "unknown engine 'nise'; did you mean nice?" in found.stderr


@pytest.mark.parametrize(("name", "lacks"), [("mine", "instead"), ("a/b", "instead, name in a-z, 0-9 and '-'")])
def test_an_engine_that_forgets_something_is_told(tmp_path: Path, name: str, lacks: str) -> None:
    (tmp_path / "mine.py").write_text(UNDECLARED.format(name=name))
    found = hpn("--plugin", str(tmp_path), "doctor")
    assert found.returncode == 2
    assert f"{tmp_path}/mine.py:3: TypeError: engine " in found.stderr
    assert f"does not say its {lacks}\n" in found.stderr


@pytest.mark.kernel
@pytest.mark.timeout(240)
def test_a_run_of_a_suite_on_an_engine_of_a_plug_in_says_so(tmp_path: Path) -> None:
    """Whatever the drill's answer is on a busy machine."""
    suite = tmp_path / "suite.yaml"
    suite.write_text("suite: s\nruns: [{drills: [link-down], engines: [nice]}]\n")
    ran = hpn("--plugin", str(OWN), "ci", "run", str(suite), "--out", str(tmp_path / "out"))
    told = ran.stdout + ran.stderr + (tmp_path / "out" / "link-down.nice" / "output.txt").read_text()
    assert ran.returncode in (0, 1, 4), told
    manifest = load(tmp_path / "out" / "link-down.nice" / "link-down").manifest()
    assert (manifest.engine, manifest.kernel) == ("nice", Path("/proc/sys/kernel/osrelease").read_text().strip())
    assert " ".join(manifest.command).startswith("drill run --engine nice ")
