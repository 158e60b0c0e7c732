"""``from hpn import ...``: what it offers is there, explained, imported when asked for, and does what the page says."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import hpn
from hpn.testbed.errors import InputError
from tests.product.hpn import skip_without_sandbox

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "api.md").read_text()


@pytest.mark.parametrize("name", hpn.__all__)
def test_a_name_is_there_and_explained(name: str) -> None:
    found = getattr(hpn, name)
    if inspect.isfunction(found) or inspect.isclass(found):
        assert inspect.getdoc(found)
    assert f"`{name}`" in PAGE


def test_the_names_are_those_that_can_be_imported_and_that_type_checkers_see() -> None:
    assert set(hpn.__all__) == set(hpn._PLACES) == set(dir(hpn))
    source = inspect.getsource(hpn)
    assert all(f" as {name}\n" in source for name in hpn.__all__)
    with pytest.raises(AttributeError, match="has no 'runn'"):
        _ = hpn.runn


def test_importing_it_waits_for_nothing() -> None:
    asked = "import sys, hpn; print(sorted({'pydantic', 'numpy', 'rich', 'testbed', 'scenarios'} & set(sys.modules)))"
    said = subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert said == "[]\n"


def test_it_is_the_command_as_a_module() -> None:
    said = subprocess.run([sys.executable, "-m", "hpn", "presets"], cwd=ROOT, capture_output=True, text=True)
    assert "tiny-fat-tree" in said.stdout, said.stderr


def test_a_script_breaks_a_lab_and_mends_it() -> None:
    """With the actions of faults; each gives back what it takes."""
    skip_without_sandbox()

    async def one_port_less(lab: hpn.Lab) -> list[bool]:
        link = lab.fabric.nics[0].links[0]
        cut = hpn.LabActions.of(lab).cut([(link, link.lower.node)])
        cut.do()
        await lab.wait_for(lambda: not lab.link_up(link.name), 10)
        seen = [lab.link_up(link.name)]
        await cut.undo()
        await lab.converged(30)
        return [*seen, lab.link_up(link.name)]

    assert hpn.on_lab(hpn.load_fabric("tiny"), one_port_less) == [False, True]


def test_a_drill_changed_in_memory_is_no_drill_for_a_guest(tmp_path: Path) -> None:
    drill = hpn.load_drill("link-down")
    with pytest.raises(InputError, match="a guest reads link-down from its file, which says something else"):
        hpn.run(replace(drill, workload=replace(drill.workload, load=0.1)), tmp_path / "x", engine="uml")
    with pytest.raises(InputError, match="no engine 'kvm'; write host or qemu or uml or uml-virtual-time"):
        hpn.run(drill, tmp_path / "x", engine="kvm")
    assert not (tmp_path / "x").exists()
