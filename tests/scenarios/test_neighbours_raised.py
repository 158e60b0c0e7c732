"""A drill that asks for it has the machine's neighbour table raised while it runs, and nothing of that is left."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hpn.results.run.folder import RunFolder
from hpn.results.run.progress import Progress
from hpn.scenarios.drill import catalogue
from hpn.scenarios.run import session
from hpn.scenarios.run.run_order import Order
from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.kernel.neighbour_table import Raised
from hpn.testbed.lab.service import preflight
from tests.kernel.limits import Limits, now, stand_in

_PATIENCE_S = 10.0


@pytest.fixture
def limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Limits:
    """Files in the place of the kernel's: never touch the real ones in a test."""
    files = stand_in(tmp_path, (16, 32), monkeypatch).limits
    monkeypatch.setattr(preflight, "neighbour_limit", lambda: int(files[0].read_text()))
    monkeypatch.setenv("HPN_STATE_DIR", str(tmp_path / "state"))
    return files


def _order(tmp_path: Path, *, raising: bool) -> Order:
    return Order(catalogue.load("link-down"), tmp_path / "run", (), raise_neighbours=raising)


def _stand_in(monkeypatch: pytest.MonkeyPatch, run: Callable[[], None]) -> None:
    """``run`` in the place of the drill in its sandbox."""

    def stand_in(_order: Order, _planned: object, folder: RunFolder, _check: object, _listen: object) -> RunFolder:
        run()
        return folder

    monkeypatch.setattr(session, "_run", stand_in)


def test_it_is_raised_while_the_drill_runs_and_told(
    limits: Limits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    during: list[tuple[int, ...]] = []
    told: list[Progress] = []
    _stand_in(monkeypatch, lambda: during.append(now(limits)))
    session.run(_order(tmp_path, raising=True), told.append)
    assert during == [(48, 96)], "8 NICs of 2 ports, 3 entries each, and as many again"
    assert now(limits) == (16, 32)
    assert [news.text for news in told] == ["neighbour table: limit raised to 48 until the drill is over"]


def test_it_is_put_back_after_a_drill_that_fails(
    limits: Limits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise MachineError("the lab did not converge")

    _stand_in(monkeypatch, fails)
    with pytest.raises(MachineError, match="did not converge"):
        session.run(_order(tmp_path, raising=True), lambda _news: None)
    assert now(limits) == (16, 32)


def test_it_is_put_back_after_a_drill_that_is_killed(
    limits: Limits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _stand_in(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGKILL))
    child = os.fork()
    if child == 0:
        session.run(_order(tmp_path, raising=True), lambda _news: None)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    deadline = time.monotonic() + _PATIENCE_S
    while now(limits) != (16, 32):
        assert time.monotonic() < deadline, "nobody put the limits back"
        time.sleep(0.01)


def test_a_drill_that_does_not_ask_is_refused(limits: Limits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _stand_in(monkeypatch, lambda: None)
    with pytest.raises(MachineError, match="would need 24 neighbour entries but the machine starts to discard at 16"):
        session.run(_order(tmp_path, raising=False), lambda _news: None)
    assert now(limits) == (16, 32)


def test_a_lab_that_fits_raises_nothing(limits: Limits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits[0].write_text("24")
    _stand_in(monkeypatch, lambda: None)
    session.run(_order(tmp_path, raising=True), lambda _news: None)
    assert now(limits) == (24, 32)
    assert not (tmp_path / "machine").exists()


def _raised_in(folder: Path, preset: str, monkeypatch: pytest.MonkeyPatch) -> Raised | None:
    """What root with its labs in ``folder`` has raised for one more."""
    monkeypatch.setenv("HPN_STATE_DIR", str(folder))
    return preflight.raised_for(build(PRESETS[preset].spec))


@pytest.mark.parametrize("first_ends", [True, False])
def test_labs_in_two_folders_leave_each_other_what_they_need(
    limits: Limits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first_ends: bool
) -> None:
    """Each by its own folder would put back what it met: 16 under the other, or the other's for ever."""
    small = _raised_in(tmp_path / "one", "tiny", monkeypatch)
    large = _raised_in(tmp_path / "two", "medium", monkeypatch)
    assert small is not None
    assert large is not None
    need = preflight.neighbour_entries(build(PRESETS["medium"].spec))
    assert now(limits) == (48 + 2 * need, 2 * (48 + 2 * need))
    first, second, rest = (small, large, 2 * need) if first_ends else (large, small, 48)
    first.release()
    assert now(limits) == (rest, 2 * rest)
    second.release()
    assert now(limits) == (16, 32)


def test_a_lab_that_fits_only_while_another_has_it_raised_holds_it_too(
    limits: Limits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _raised_in(tmp_path / "one", "medium", monkeypatch)
    assert first is not None
    fabric = build(PRESETS["tiny"].spec)
    assert preflight.entries_wanted(fabric) < now(limits)[0]
    with pytest.raises(MachineError, match=r"need 24 .* discard at 16 again once nobody has that raised"):
        preflight.check(fabric)
    second = _raised_in(tmp_path / "two", "tiny", monkeypatch)
    assert second is not None
    first.release()
    assert now(limits) == (48, 96)
    second.release()
    assert now(limits) == (16, 32)
