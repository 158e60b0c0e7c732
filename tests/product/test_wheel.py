"""hpn installed from its wheel: everything is in it, and it works where no checkout is."""

from __future__ import annotations

import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from hpn.scenarios.drill import catalogue
from hpn.testbed.package import own_files
from tests.product.wheel import ROOT, Installed, install, version

pytest.importorskip("setuptools", "77", reason="an older setuptools cannot build this project")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_every_file_of_the_rooms_and_nothing_else(installed: Installed) -> None:
    held = {name for name in zipfile.ZipFile(installed.wheel).namelist() if ".dist-info/" not in name}
    ours = {path for path in own_files("*") if path.is_file() and "__pycache__" not in path.parts}
    assert held == {str(path.relative_to(ROOT)) for path in ours}
    assert {name.partition("/")[0] for name in held} == {"hpn"}, "one name on everybody's path"


def test_its_papers_tell_version_and_licences(installed: Installed) -> None:
    wheel = zipfile.ZipFile(installed.wheel)
    information = f"hpn-{version()}.dist-info"
    told = Parser().parsestr(wheel.read(f"{information}/METADATA").decode())
    assert (told["Version"], told["License-Expression"]) == (version(), "Apache-2.0 AND GPL-2.0-only AND MIT")
    held = {name for name in wheel.namelist() if name.startswith(f"{information}/licenses/")}
    texts = ("LICENSE", "LICENSES/Apache-2.0.txt", "LICENSES/GPL-2.0-only.txt", "LICENSES/MIT.txt", "REUSE.toml")
    assert held == {f"{information}/licenses/{name}" for name in texts}
    assert installed.hpn("--version").stdout == f"hpn, version {version()}\n"
    assert f"  version = {{{version()}}},\n  license = {{{told['License-Expression']}}}" in installed.hpn("cite").stdout


def test_it_plans_a_network_and_knows_its_drills_and_those_of_its_user(installed: Installed) -> None:
    planned = installed.hpn("plan", "tiny")
    assert planned.returncode == 0, planned.stderr
    assert "GPUs (one per rail)       8" in planned.stdout
    listed = installed.hpn("drill", "ls")
    assert listed.returncode == 0, listed.stderr
    assert all(name in listed.stdout for name in catalogue.names())
    own = installed.cwd / "own.yaml"
    own.write_text(Path(ROOT, "scenarios/library/link-down.yaml").read_text())
    assert installed.hpn("drill", "validate", str(own)).returncode == 0
    own.write_text("faults: [\n")
    refused = installed.hpn("drill", "validate", str(own))
    assert refused.returncode == 2
    assert f"{own}:" in refused.stderr


def test_a_script_may_have_neighbours_that_are_called_as_parts_of_hpn_are(installed: Installed) -> None:
    names = ("results", "traffic", "testbed", "scenarios", "commands", "failover", "cli")
    for name in names:
        (installed.cwd / f"{name}.py").write_text(f"mine = {name!r}\n")
    (installed.cwd / "among.py").write_text(
        "import hpn, results, traffic, cli\n"
        "print(results.mine, traffic.mine, cli.mine, len(hpn.load_fabric('tiny').hosts), hpn.load_run.__name__)\n"
    )
    try:
        assert installed.script("among.py").stdout == "results traffic cli 4 load_run\n"
        assert installed.hpn("drill", "validate", "link-down").returncode == 0
    finally:
        for name in names:
            (installed.cwd / f"{name}.py").unlink()


def test_scripts_import_its_public_face(installed: Installed) -> None:
    (installed.cwd / "mine.py").write_text("from hpn import load_fabric\nprint(len(load_fabric('tiny').hosts))\n")
    assert installed.script("mine.py").stdout == "4\n"


def test_a_file_of_the_checkout_is_noticed(installed: Installed) -> None:
    noticed = installed.hpn("drill", "validate", str(ROOT / "scenarios/library/link-down.yaml"))
    assert noticed.returncode == 99
