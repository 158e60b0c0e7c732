"""A drill in a guest: what the command in there says reaches the caller as the command's own answer."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hpn.results.judge.verdict import decide, holds
from hpn.results.run.claim import in_use
from hpn.results.run.folder import RunFolder
from hpn.scenarios.run.engines import run_in_guest
from hpn.scenarios.run.run_order import Order
from hpn.testbed.errors import HpnError, InputError, MachineError, NoisyError
from hpn.testbed.vm.engines import EngineSpec
from hpn.testbed.vm.guest import GuestJob, GuestResult
from tests.results.sample import MANIFEST
from tests.scenarios.measured import drill

WORDS = "hpn: cut: every queue pair died before the first fault"


@dataclass(frozen=True)
class Guest:
    """Boots nothing: the command inside leaves a manifest, perhaps a verdict, and ends with that code."""

    exit_code: int
    judged: bool
    slowness: int = 10

    def check(self) -> None:
        """It can."""

    def describe(self) -> str:
        """Nothing that is asked for."""
        return ""

    def run(self, job: GuestJob, _on_line: Callable[[str], None]) -> GuestResult:
        """The run folder is the folder that the command is called in."""
        made = RunFolder(job.cwd)
        made.write_manifest(replace(MANIFEST, engine="uml-virtual-time", started_at="2026-01-01T00:00:01+00:00"))
        if self.judged:
            made.write_verdict(decide([holds("it holds", None)]))
        return GuestResult(self.exit_code, (WORDS, "reboot: System halted"), 1.0, 2.0, "6.12")


def boots(guest: Guest) -> EngineSpec:
    return EngineSpec(name="uml", start=lambda: guest)


def order(out: Path) -> Order:
    return Order(drill("worst_outage: {below: 50 ms}"), out / "run", ())


@pytest.mark.parametrize(("code", "kind"), [(2, InputError), (3, MachineError), (4, NoisyError), (99, MachineError)])
def test_a_run_that_brought_no_verdict_is_the_error_that_the_guest_reported(
    tmp_path: Path, code: int, kind: type[HpnError]
) -> None:
    with pytest.raises(kind, match="every queue pair died"):
        run_in_guest(order(tmp_path), boots(Guest(code, judged=False)), lambda _line: None)


def test_an_inconclusive_verdict_is_a_run_like_any_other(tmp_path: Path) -> None:
    assert run_in_guest(order(tmp_path), boots(Guest(4, judged=True)), lambda _line: None).verdict().exit_code == 4


@pytest.mark.parametrize("judged", [True, False])
def test_the_machine_dates_a_run_whatever_clock_the_guest_has(tmp_path: Path, judged: bool) -> None:
    """It was listed as of 2026-01-01, where virtual time begins."""
    before = datetime.now(UTC)
    with suppress(NoisyError):
        run_in_guest(order(tmp_path), boots(Guest(4, judged=judged)), lambda _line: None)
    manifest = RunFolder(tmp_path / "run").manifest()
    begin, end = (datetime.fromisoformat(each) for each in (manifest.date, manifest.wall_end))
    assert before - timedelta(milliseconds=1) <= begin <= end <= datetime.now(UTC)
    assert manifest.started_at.startswith("2026-01-01"), "captures are on that clock"


def test_a_guest_that_left_no_manifest_is_not_dated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunFolder, "write_manifest", lambda *_: None)
    with pytest.raises(MachineError, match="every queue pair died"):
        run_in_guest(order(tmp_path), boots(Guest(3, judged=False)), lambda _line: None)


class _Vandal(Guest):
    """Has its folder deleted beneath it."""

    def run(self, job: GuestJob, on_line: Callable[[str], None]) -> GuestResult:
        """The command inside can only say that it is gone."""
        assert in_use(job.cwd), "nobody else can make a run there"
        shutil.rmtree(job.cwd)
        return GuestResult(3, ("hpn: cannot write to /here any more",), 1.0, 2.0, "6.12")


def test_a_folder_that_vanished_beneath_a_guest_is_named(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=f"^{tmp_path}/run was deleted or moved during the run; run it again"):
        run_in_guest(order(tmp_path), boots(_Vandal(3, judged=False)), lambda _line: None)
    assert not (tmp_path / "run").exists()
