"""A drill that asks for it has the machine's neighbour table raised while it runs, and nothing of that is left."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from results.run.folder import RunFolder
from results.run.progress import Progress
from scenarios.drill import catalogue
from scenarios.run import session
from scenarios.run.order import Order
from testbed.errors import MachineError
from testbed.kernel import neighbour_table
from testbed.lab.service import preflight

_PATIENCE_S = 10.0


@pytest.fixture
def limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Files in the place of the kernel's: never touch the real ones in a test."""
    files = tmp_path / "gc_thresh2", tmp_path / "gc_thresh3"
    for file, value in zip(files, (16, 32), strict=True):
        file.write_text(f"{value}")
    monkeypatch.setattr(neighbour_table, "_LIMITS", files)
    monkeypatch.setattr(preflight, "neighbour_limit", lambda: int(files[0].read_text()))
    monkeypatch.setenv("HPN_STATE_DIR", str(tmp_path / "state"))
    return files


def _now(limits: tuple[Path, Path]) -> tuple[int, ...]:
    return tuple(int(file.read_text()) for file in limits)


def _order(tmp_path: Path, *, raising: bool) -> Order:
    return Order(catalogue.load("link-down"), tmp_path / "run", (), raise_neighbours=raising)


def _stand_in(monkeypatch: pytest.MonkeyPatch, run: Callable[[], None]) -> None:
    """``run`` in the place of the drill in its sandbox."""

    def stand_in(_order: Order, folder: RunFolder, _listen: object) -> RunFolder:
        run()
        return folder

    monkeypatch.setattr(session, "_run", stand_in)


def test_it_is_raised_while_the_drill_runs_and_told(
    limits: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    during: list[tuple[int, ...]] = []
    told: list[Progress] = []
    _stand_in(monkeypatch, lambda: during.append(_now(limits)))
    session.run(_order(tmp_path, raising=True), told.append)
    assert during == [(48, 96)], "8 NICs of 2 ports, 3 entries each, and as many again"
    assert _now(limits) == (16, 32)
    assert [news.text for news in told] == ["neighbour table: limit raised to 48 until the drill is over"]


def test_it_is_put_back_after_a_drill_that_fails(
    limits: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise MachineError("the lab did not converge")

    _stand_in(monkeypatch, fails)
    with pytest.raises(MachineError, match="did not converge"):
        session.run(_order(tmp_path, raising=True), lambda _news: None)
    assert _now(limits) == (16, 32)


def test_it_is_put_back_after_a_drill_that_is_killed(
    limits: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _stand_in(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGKILL))
    child = os.fork()
    if child == 0:
        session.run(_order(tmp_path, raising=True), lambda _news: None)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    deadline = time.monotonic() + _PATIENCE_S
    while _now(limits) != (16, 32):
        assert time.monotonic() < deadline, "nobody put the limits back"
        time.sleep(0.01)


def test_a_drill_that_does_not_ask_is_refused(
    limits: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _stand_in(monkeypatch, lambda: None)
    with pytest.raises(MachineError, match="would need 24 neighbour entries but the machine starts to discard at 16"):
        session.run(_order(tmp_path, raising=False), lambda _news: None)
    assert _now(limits) == (16, 32)


def test_a_lab_that_fits_raises_nothing(
    limits: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits[0].write_text("24")
    _stand_in(monkeypatch, lambda: None)
    session.run(_order(tmp_path, raising=True), lambda _news: None)
    assert _now(limits) == (24, 32)
    assert not (tmp_path / "state" / "neighbours.json").exists()
