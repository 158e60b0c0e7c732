"""Engines are known by their entries: nobody else has their names, and what is asked for by words is found there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from hpn.testbed.errors import InputError
from hpn.testbed.package import PACKAGES
from hpn.testbed.vm import engines, repeatable, shell
from hpn.testbed.vm.engines import ENGINES, HOST, EngineSpec, asked_for, named, words
from hpn.testbed.vm.guest import environment

ROOT = Path(__file__).parents[2]
KNOWS = {"testbed/vm/engines.py", "testbed/vm/kernel_cache.py"}  # the entries; a folder of the cache


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_knows_a_guest_engine_by_name(package: str) -> None:
    guests = {spec.name for spec in ENGINES.values() if spec.start is not None}
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}"
        for path in sorted((ROOT / package).rglob("*.py"))
        if str(path.relative_to(ROOT)) not in KNOWS
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in guests
    ]
    assert found == []


def test_an_engine_is_found_by_its_name_or_as_before_by_its_word_and_its_clock() -> None:
    assert words() == ("host", "qemu", "uml", "uml-virtual-time")
    assert tuple(asked_for(word, False).name for word in words()) == words()
    assert {asked_for(word, True).name for word in ("uml", "uml-virtual-time")} == {"uml-virtual-time"}
    for word in ("host", "qemu"):
        with pytest.raises(InputError, match=r"^--virtual-time needs --engine uml-virtual-time$"):
            asked_for(word, True)
    with pytest.raises(InputError, match="no engine 'kvm'; write host or qemu or uml or uml-virtual-time"):
        named("kvm")
    with pytest.raises(InputError, match="engine host is this kernel"):
        HOST.engine()


def test_an_engine_that_has_no_other_clock_takes_virtual_time_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    only = EngineSpec(name="only", start=named("uml").start, virtual_time=True, instead="another")
    monkeypatch.setattr(engines, "ENGINES", {"only": only})
    assert asked_for("only", False) is asked_for("only", True) is only


def test_every_guest_finds_the_same_things(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HPN_PLUGINS", str(tmp_path))
    wanted = {"PYTHONHASHSEED": "0", "HPN_STATE_DIR": "/run/hpn-state", "HPN_PLUGINS": str(tmp_path)}
    assert environment() == wanted
    assert wanted.items() <= repeatable.environment().items()
    assert wanted.items() <= shell.job(("true",)).environment.items()


def test_a_shell_is_opened_in_the_guest_that_boots_first(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shell.words() == ("uml", "qemu", "uml-virtual-time")
    assert [spec.name for spec in shell.guests(virtual_time=True)] == ["uml-virtual-time"]
