"""``hpn vm kernels``: what the cache holds, what is booted of it, and whether apt has what was not built yet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.vm import kernel_cache, kernel_list, kernel_recipe, kernel_source
from hpn.testbed.vm.kernel_cache import Built
from hpn.testbed.vm.kernel_list import BOOTED, KEPT, OUTDATED
from hpn.testbed.vm.kernel_source import Source
from tests.product.hpn import Hpn

SOURCE = "linux-source-6.12 {}-1 sha256:12ab"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPN_CACHE_DIR", str(tmp_path / "cache"))


def _store(folder: Path, release: str, recipe: str | None = None) -> None:
    (folder / "linux").write_bytes(b"a kernel")
    recipe = recipe or kernel_recipe.checksum()
    built = Built(f"{release}-{recipe[:6]}", release, SOURCE.format(release), recipe, "gcc", 200.0)
    kernel_cache.store(built, folder / "linux", folder / "linux")


def _offer(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    source = Source(SOURCE.format(version), None, "linux-source-6.12", f"{version}-1")
    monkeypatch.setattr(kernel_source, "newest_package", lambda: source)


def test_the_newest_of_this_recipe_is_booted_and_no_other(tmp_path: Path) -> None:
    for release in ("6.9.1", "6.12.3"):
        _store(tmp_path, release)
    _store(tmp_path, "7.2.13", recipe="before the last patch")
    found = [(entry.release, entry.state) for entry in kernel_list.entries()]
    assert found == [("6.12.3", BOOTED), ("6.9.1", KEPT), ("7.2.13", OUTDATED)]
    booted = kernel_cache.newest()
    assert booted is not None
    assert kernel_list.entries()[0].program == str(booted.program)


@pytest.mark.parametrize(
    ("version", "built", "said"),
    [
        ("6.12.3", True, "a kernel here is of it"),
        ("6.12.4", False, "no kernel here is of it: hpn vm build-kernel"),
        ("6.9.1", False, "older than 6.12.3, which is here"),
    ],
)
def test_what_apt_offers_is_held_against_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, built: bool, said: str
) -> None:
    _store(tmp_path, "6.12.3")
    _offer(monkeypatch, version)
    found = kernel_list.offered()
    assert (found.built, found.text) == (built, f"apt offers linux-source-6.12 {version}-1: {said}")


def test_a_kernel_of_an_older_recipe_is_none_of_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _store(tmp_path, "6.12.3", recipe="before the last patch")
    _offer(monkeypatch, "6.12.3")
    assert kernel_list.offered().text.endswith("no kernel here is of it: hpn vm build-kernel")


def test_without_a_source_it_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Source:
        raise MachineError("no kernel source: apt offers no linux-source package")

    monkeypatch.setattr(kernel_source, "newest_package", none)
    assert kernel_list.offered().text.startswith("no kernel source")


def test_the_command_lists_them(tmp_path: Path) -> None:
    _store(tmp_path, "6.12.3")
    found = json.loads(Hpn(tmp_path).run("vm", "kernels", "--json"))
    assert [(entry["release"], entry["state"]) for entry in found["kernels"]] == [("6.12.3", BOOTED)]
    assert found["offered"]["text"]
    row = next(line for line in Hpn(tmp_path).run("vm", "kernels").splitlines() if line.startswith("6.12.3"))
    assert row.split()[:4] == ["6.12.3", BOOTED, "linux-source-6.12", "6.12.3-1"]
