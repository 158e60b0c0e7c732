"""Files that a user asked for, on a full disk: all of it or none, and the exit code says which."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpn.commands.drill_runs import make
from hpn.commands.page import Page
from hpn.results.run.folder import RunFolder
from hpn.scenarios.drill import catalogue
from hpn.scenarios.run.run_order import Batch
from hpn.testbed.errors import MachineError
from hpn.testbed.files.replacing import replace
from hpn.testbed.kernel.process import sandbox
from tests.product.hpn import Hpn
from tests.results.sample import metrics
from tests.results.test_index import add

_EARLIER = "an earlier one"


def full_disk(place: Path) -> Path:
    """A full disk, but for a page and a file ``earlier``; in a test's own sandbox, which ends with it."""
    disk = place / "disk"
    disk.mkdir()
    sandbox.mount("small", str(disk), "tmpfs", 0, "size=16k")
    (disk / "earlier").write_text(_EARLIER)
    free = os.statvfs(disk)
    (disk / "film").write_bytes(bytes(free.f_bavail * free.f_bsize - 4096))
    return disk


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("x.svg", ["graph", "tiny", "--out", "x.svg"]),
        ("x.json", ["drill", "schema", "--out", "x.json"]),
        ("x.html", ["report", "RUN", "--out", "x.html"]),
        ("x.html", ["compare", "RUN", "RUN", "--html", "x.html"]),
        ("x.yaml", ["drill", "new", "--force", "--fault", "link-flap", "--out", "x.yaml"]),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else value,
)
def test_a_file_is_whole_or_not_there(tmp_path: Path, name: str, words: list[str]) -> None:
    full = full_disk(tmp_path)
    (full / "more").write_bytes(bytes(4096))
    run = add(tmp_path, "run")
    RunFolder(run).write_metrics(metrics(20))
    places = {"RUN": str(run), name: str(full / name)}
    found = Hpn(tmp_path).run(*(places.get(word, word) for word in words), code=3)
    assert f"hpn: cannot write {full / name}: No space left on device; make room, or choose another --" in found
    assert sorted(os.listdir(full)) == ["earlier", "film", "more"]


@pytest.mark.kernel
@pytest.mark.parametrize("name", ["new", "earlier"])
def test_no_half_of_a_file_is_left(tmp_path: Path, name: str) -> None:
    full = full_disk(tmp_path)
    with pytest.raises(OSError, match=f"No space left on device: '{full / name}'"):
        replace(full / name, bytes(3 * 4096))
    assert sorted(os.listdir(full)) == ["earlier", "film"]
    assert (full / "earlier").read_text() == _EARLIER


@pytest.mark.kernel
@pytest.mark.parametrize("option", ["junit", "job_page"])
def test_a_report_that_cannot_be_written_is_told_and_none_is_left(tmp_path: Path, option: str) -> None:
    full = full_disk(tmp_path)
    (full / "more").write_bytes(bytes(4096))
    batch = Batch([catalogue.load("link-down")], 1, tmp_path / "out", ())
    (order,) = batch.orders()
    with pytest.raises(MachineError, match=f"cannot write {full}/report: No space left on device; make room"):
        make(batch, [(order, MachineError("no such kernel"))], Page(as_json=True), **{option: full / "report"})
    assert sorted(os.listdir(full)) == ["earlier", "film", "more"]


def test_a_link_stays_one_and_permissions_stay(tmp_path: Path) -> None:
    (tmp_path / "there").write_text(_EARLIER)
    (tmp_path / "there").chmod(0o640)
    (tmp_path / "link").symlink_to("there")
    replace(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there").read_text() == "new"
    assert (tmp_path / "there").stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(tmp_path)) == ["link", "there"]


def test_what_is_no_file_is_written_and_not_replaced(tmp_path: Path) -> None:
    assert Hpn(tmp_path).run("graph", "tiny", "--out", "/dev/stdout").startswith("<svg")
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    replace(tmp_path / "pipe", b"content")
    assert os.read(reader, 100) == b"content"
    os.close(reader)


def test_a_long_name_is_no_hindrance(tmp_path: Path) -> None:
    replace(tmp_path / ("n" * 255), b"content")
    assert os.listdir(tmp_path) == ["n" * 255]
