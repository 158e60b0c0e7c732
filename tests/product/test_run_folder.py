"""A run folder belongs to one run: nothing of an earlier one is left in it, nor of one that did not end."""

from __future__ import annotations

import os
import random
import re
import signal
from pathlib import Path

import pytest

from hpn.testbed.kernel.process import sandbox
from tests.product.chaos import DRILL, Strike
from tests.product.hpn import Hpn, skip_without_sandbox, until


@pytest.fixture(scope="module", autouse=True)
def _needs_sandbox() -> None:
    skip_without_sandbox()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_an_interrupted_run_leaves_no_old_verdict_and_no_raw_records(tmp_path: Path, number: signal.Signals) -> None:
    draw = random.Random(number)
    for _ in range(2):
        assert Strike("drill", number, draw.uniform(0, 4), begun=True).carry_out(Hpn(tmp_path)) == []


@pytest.mark.parametrize("out", ["/run/NAME/out", "taken/out", "new/below/" + "x" * 300])
def test_a_refused_out_creates_nothing(tmp_path: Path, out: str) -> None:
    (tmp_path / "taken").touch()
    out = out.replace("NAME", hidden := f"hpn-no-such-{os.getpid()}")
    before = sorted(os.listdir(tmp_path))
    said = Hpn(tmp_path).run("drill", "run", "link-down", "--out", out, code=2)
    assert "choose another" in said
    assert sorted(set(os.listdir(tmp_path)) - {"labs"}) == before
    assert not os.path.lexists(f"/run/{hidden}")


@pytest.mark.kernel
def test_a_disk_too_small_is_refused_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    sandbox.mount("small", str(tmp_path / "out"), "tmpfs", 0, "size=8m")
    said = Hpn(tmp_path).run("drill", "run", "link-flap", "--out", "out", code=3)
    assert re.search(r"needs up to \d+ MB of disk and 8 MB are free at \S+/out; free some, or choose another", said)
    assert os.listdir(tmp_path / "out") == []


@pytest.mark.kernel
@pytest.mark.parametrize("left", [1 << 20, 0])
def test_a_disk_that_fills_while_the_run_lasts_ends_it(tmp_path: Path, left: int) -> None:
    hpn = Hpn(tmp_path)
    (tmp_path / "quiet.yaml").write_text(DRILL)
    (tmp_path / "out").mkdir()
    sandbox.mount("small", str(tmp_path / "out"), "tmpfs", 0, "size=32m")
    run = hpn.start("drill", "run", "quiet.yaml", "--out", "out")
    until(lambda: (tmp_path / "out" / "quiet" / "sent-0.bin").exists(), "traffic")
    free = os.statvfs(tmp_path / "out")
    with (tmp_path / "out" / "film").open("wb") as film:
        os.posix_fallocate(film.fileno(), 0, free.f_bavail * free.f_frsize - left)
    out, err = run.communicate(timeout=60)
    assert (run.returncode, "Traceback" in err) == (3, False), f"{out}\n{err}"
    assert "of disk are left" in err or "No space left on device" in err
    assert not list((tmp_path / "out" / "quiet").glob("*.bin"))
    assert not (tmp_path / "out" / "quiet" / "verdict.json").exists()
