"""The index is a cache: whatever becomes of its file, ``hpn results`` answers from the run folders."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from hpn.commands.results import results
from hpn.testbed.kernel.process import sandbox
from tests.results.test_index import add

ROOT = Path(__file__).parents[2]

_A_WAIT_S = 25  # SQLite's own wait for a lock was 30 s
ODD = os.fsdecode(b"odd-\xff")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    found = tmp_path / "runs"
    for at in range(12):
        add(found, f"{at}/link-down", 10 * at, *["the machine was full"] * (at % 3 == 0))
    return found


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def hpn(cache: Path, *arguments: str, timeout_s: float = 60, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "cli.py"), *arguments],
        env={**os.environ, "HPN_CACHE_DIR": str(cache), **environment},
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )


def listed(cache: Path, root: Path) -> str:
    """The list and a trend, for which every table is read. Nothing is said on stderr."""
    said = ""
    for what in (["list", "--json"], ["trend", "link-down", "--json"]):
        found = CliRunner(env={"HPN_CACHE_DIR": str(cache)}).invoke(results, [*what, "--runs", str(root)])
        assert (found.exception, found.stderr) == (None, "")
        said += found.stdout
    return said


def kept(cache: Path) -> Path:
    (file,) = (cache / "results").iterdir()
    return file


def _of_zeros(file: Path) -> None:
    """All but the header's page."""
    content = file.read_bytes()
    file.write_bytes(content[:4096] + bytes(len(content) - 4096))


def _one_letter(file: Path) -> None:
    """No structure of the file is hurt, and still it is no longer what the runs said."""
    content = file.read_bytes()
    assert b"inconclusive" in content
    file.write_bytes(content.replace(b"inconclusive", b"inconclusivE"))


def _no_utf_8(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b"link-down", b"link\xff\xfeown"))


def _half(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def _dropped(table: str) -> Callable[[Path], None]:
    def drop(file: Path) -> None:
        with closing(sqlite3.connect(file)) as other, other:
            other.execute(f"drop table {table}")

    return drop


def _pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(_of_zeros, id="pages of zeros"),
        pytest.param(_one_letter, id="another letter"),
        pytest.param(_no_utf_8, id="a text that is no UTF-8"),
        pytest.param(_half, id="cut in half"),
        pytest.param(lambda file: file.write_bytes(b""), id="empty"),
        pytest.param(_dropped("figures"), id="no figures"),
        pytest.param(_dropped("runs"), id="no runs"),
        pytest.param(_pipe, id="a pipe"),
    ],
)
def test_an_index_that_is_damaged_is_made_again(root: Path, cache: Path, damage: Callable[[Path], object]) -> None:
    whole = listed(cache, root)
    damage(kept(cache))
    assert listed(cache, root) == whole
    assert listed(cache, root) == whole
    assert kept(cache).is_file()


def test_nobody_s_lock_is_waited_for(root: Path, cache: Path) -> None:
    whole = listed(cache, root)
    with closing(sqlite3.connect(kept(cache))) as other:
        other.execute("begin exclusive")
        begin_s = time.monotonic()
        assert listed(cache, root) == whole
        add(root, "new/link-down")
        assert len(json.loads(hpn(cache, "results", "list", "--json", "--runs", str(root)).stdout)) == 13
        assert time.monotonic() - begin_s < _A_WAIT_S


def test_commands_at_once_all_answer(root: Path, cache: Path) -> None:
    words = [sys.executable, str(ROOT / "cli.py"), "results", "list", "--json", "--runs", str(root)]
    environment = {**os.environ, "HPN_CACHE_DIR": str(cache)}
    started = [
        subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)
    ]
    ended = [each.communicate(timeout=60) for each in started]
    assert len({said for said, _ in ended}) == 1
    assert [error for _, error in ended] == [b""] * 4
    assert kept(cache).suffix == ".sqlite", "and nothing lies beside it"


@pytest.mark.kernel
def test_a_full_cache_is_told_in_a_line_and_the_answer_is_whole(root: Path, cache: Path) -> None:
    cache.mkdir()
    sandbox.mount("small", str(cache), "tmpfs", 0, "size=4k")
    found = hpn(cache, "results", "list", "--json", "--runs", str(root))
    (line,) = found.stderr.splitlines()
    assert line.startswith(f"hpn: cannot keep the index in {cache}/results/")
    assert ".sqlite: No space left on device; the answer is whole; set HPN_CACHE_DIR" in line
    assert (found.returncode, len(json.loads(found.stdout))) == (0, 12)
    assert os.listdir(cache / "results") == [], "no half of it stays"


def test_a_cache_that_is_no_folder_is_told_in_a_line(root: Path, cache: Path) -> None:
    cache.write_text("")
    found = hpn(cache, "results", "list", "--json", "--runs", str(root))
    (line,) = found.stderr.splitlines()
    assert line.startswith(f"hpn: cannot keep the index in {cache}/results/")
    assert ".sqlite: Not a directory; the answer is whole; set HPN_CACHE_DIR" in line
    assert (found.returncode, len(json.loads(found.stdout))) == (0, 12)


@pytest.fixture
def odd(root: Path) -> Path:
    """A folder whose name is no UTF-8, with a run that is read, one that cannot be, and one more."""
    found = root / ODD
    for at in range(2):
        add(found, f"{at}/odd-drill", started_at=f"2025-01-0{at + 1}T00:00:00+00:00", drill="odd-drill")
    (found / "half").mkdir()
    (found / "half" / "manifest.json").write_text('{"drill": "a')
    return found


@pytest.mark.parametrize("below", [".", ODD])
def test_a_folder_whose_name_is_no_utf_8_is_listed_escaped(root: Path, odd: Path, cache: Path, below: str) -> None:
    paths = [f"{root}/odd-\\xff/{at}/odd-drill" for at in (1, 0)]
    query = "select path from runs where drill = 'odd-drill' order by path desc"
    for words in (["list", "--drill", "odd-drill"], ["sql", query]):
        found = hpn(cache, "results", *words, "--runs", str(root / below), COLUMNS="400")
        assert (found.returncode, found.stderr) == (0, "")
        assert [path in found.stdout for path in paths] == [True, True]
        told = hpn(cache, "results", *words, "--json", "--runs", str(root / below))
        assert [each["path"] for each in json.loads(told.stdout)] == paths
    found = hpn(cache, "results", "list", "--outcome", "none", "--json", "--runs", str(root / below))
    assert [each["why"][:24] for each in json.loads(found.stdout)] == ["manifest.json is damaged"]
    found = hpn(cache, "results", "trend", "odd-drill", "--json", "--runs", str(root / below))
    assert [each["path"] for each in json.loads(found.stdout)[0]["points"]] == paths[::-1]


def test_a_folder_whose_name_is_no_utf_8_is_pruned(root: Path, odd: Path, cache: Path) -> None:
    found = hpn(cache, "results", "prune", "--drill", "odd-drill", "--keep", "1", "--yes", "--runs", str(root))
    assert found.stdout.splitlines() == [f"deleted {root}/odd-\\xff/0/odd-drill", "1 run folders"]
    assert not (odd / "0" / "odd-drill").exists()
    assert (odd / "1" / "odd-drill").exists()
