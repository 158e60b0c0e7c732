"""Built kernels in the cache: found again, or not, by what they were built from."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.testbed.vm import kernel_cache, kernel_recipe
from hpn.testbed.vm.kernel_cache import Built


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPN_CACHE_DIR", str(tmp_path / "cache"))


def _store(tmp_path: Path, release: str, recipe: str | None = None) -> Built:
    (tmp_path / "linux").write_bytes(b"a kernel")
    (tmp_path / ".config").write_text("CONFIG_NET=y\n")
    found = recipe or kernel_recipe.checksum()
    built = Built(f"key-{release}", release, "linux-source", found, "gcc", 200.0)
    kernel_cache.store(built, tmp_path / "linux", tmp_path / ".config")
    return built


def test_an_empty_cache_has_no_kernel() -> None:
    assert kernel_cache.newest() is None


def test_the_newest_release_is_taken_by_number_not_by_text(tmp_path: Path) -> None:
    _store(tmp_path, "6.9.1")
    newer = _store(tmp_path, "6.12.3")
    assert kernel_cache.newest() == newer
    assert newer.program.read_bytes() == b"a kernel"
    assert newer.program.stat().st_mode & 0o111


def test_a_kernel_of_another_recipe_is_not_used(tmp_path: Path) -> None:
    older = _store(tmp_path, "6.12.3", recipe="before the last change of the configuration")
    assert list(kernel_cache.all_built()) == [older]
    assert kernel_cache.newest() is None


def test_damaged_entries_are_passed_over(tmp_path: Path) -> None:
    good = _store(tmp_path, "6.1.5")
    for name, text in (("torn", '{"key": "torn", "rel'), ("other", '{"key": "somebody else"}'), ("list", "[]")):
        (kernel_cache.folder() / name).mkdir()
        (kernel_cache.folder() / name / "kernel.json").write_text(text)
    half = _store(tmp_path, "9.9.9")
    half.program.unlink()
    assert kernel_cache.newest() == good


def test_source_and_compiler_make_the_key() -> None:
    keys = {kernel_cache.key_of(source, gcc) for source in ("linux 6.1", "linux 6.12") for gcc in ("gcc 12", "gcc 13")}
    assert len(keys) == 4


@pytest.mark.parametrize(
    ("environment", "where"),
    [
        ({"HPN_CACHE_DIR": "/somewhere"}, Path("/somewhere")),
        ({"XDG_CACHE_HOME": "/xdg"}, Path("/xdg/hpn")),
        ({"HOME": "/home/me"}, Path("/home/me/.cache/hpn")),
    ],
)
def test_where_the_cache_is(environment: dict[str, str], where: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HPN_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert kernel_cache.cache_folder() == where
