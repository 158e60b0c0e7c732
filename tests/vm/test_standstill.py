"""Why a guest stands still is read from what its processes had of the machine: real ones spin, sleep and starve."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

import pytest

from hpn.testbed.vm import standstill
from hpn.testbed.vm.group import ProcessGroup
from hpn.testbed.vm.standstill import Silence, Usage, _members, explain, usage

_SPIN = ("/bin/sh", "-c", "while :; do :; done")
_FOR_S = 1.5
_T = TypeVar("_T")


@pytest.mark.parametrize(
    ("ran_s", "wants_more", "words"),
    [
        (100.0, True, "100 s of CPU time in the last 120 s: something in it busy-waits, or computes for longer"),
        (8.0, True, "8 s of CPU time in the last 120 s and wants more: this machine starves it; run less beside it"),
        (0.4, False, "0 s of CPU time in the last 120 s and asks for none: it hangs"),
        (61.0, False, "busy-waits"),
    ],
)
def test_only_who_runs_is_said_to_busy_wait(ran_s: float, wants_more: bool, words: str) -> None:
    assert words in explain(Usage(ran_s, wants_more), 120.0)


def test_what_came_on_top_is_never_less_than_nothing() -> None:
    assert Usage(1.0, True).since(Usage(3.0, False)) == Usage(0.0, True)  # processes have ended


def test_the_time_of_processes_that_have_ended_still_counts(tmp_path: Path) -> None:
    """A worker of a guest ends when its work is done: what all have had since must not fall by what it had."""
    burns = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; kill -STOP $$"
    with _group(("/bin/sh", "-c", f"/bin/sh -c '{burns}'; exec sleep 1000"), None, tmp_path) as group:
        (child,) = _within(20, lambda: [each.pid for each in _members(group.number) if each.state == "T"])
        before = usage(group.number)
        assert before.ran_s > 0.05, "it has burnt some"
        os.kill(child, signal.SIGCONT)
        _within(20, lambda: not Path(f"/proc/{child}").exists())
        assert usage(group.number).ran_s >= before.ran_s


def test_how_long_others_waited_for_a_cpu_is_told_of_who_starves() -> None:
    said = explain(Usage(8.0, True, waiting_s=110.0), 120.0)
    assert "starves it; somebody here waited for a CPU in 92 % of that time" in said
    assert "somebody" not in explain(Usage(0.0, False, waiting_s=110.0), 120.0)


def _within(seconds: float, found: Callable[[], _T]) -> _T:
    """What is found at last."""
    deadline = time.monotonic() + seconds
    while not (result := found()):
        if time.monotonic() > deadline:
            pytest.skip(f"the machine is overloaded: nothing came of it in {seconds:g} s")
        time.sleep(0.01)
    return result


@contextmanager
def _group(command: tuple[str, ...], cpu: int | None, folder: Path) -> Iterator[ProcessGroup]:
    with (folder / "output").open("wb") as output:
        group = ProcessGroup(command, cwd=folder, environment={}, output=output.fileno(), cpu=cpu)
        try:
            yield group
        finally:
            group.kill()


def _give_way(group: ProcessGroup) -> None:
    """Let other sessions go first: where sessions share a CPU alike (sched_autogroup), nice counts within one only."""
    share = Path(f"/proc/{group.number}/autogroup")
    if share.exists():
        share.write_text("19")


def _told(group: ProcessGroup) -> str:
    before, begun = usage(group.number), time.monotonic()
    group.ended(_FOR_S)
    return explain(usage(group.number).since(before), time.monotonic() - begun)


@pytest.mark.parametrize(
    ("cpu_a_s", "wants_more", "ended_after_s"),
    [(0.9, True, 100), (0.1, True, 500), (0.001, True, 1000), (0.0, False, 100)],
    ids=["busy-waits", "starves", "gets nothing", "hangs"],
)
def test_a_guest_that_starves_is_waited_for_until_it_had_half_the_limit_of_cpu_time(
    monkeypatch: pytest.MonkeyPatch, cpu_a_s: float, wants_more: bool, ended_after_s: float
) -> None:
    at = [0.0]
    monkeypatch.setattr(standstill, "time", SimpleNamespace(monotonic=lambda: at[0]))
    monkeypatch.setattr(standstill, "usage", lambda _group: Usage(cpu_a_s * at[0], wants_more))
    silence = Silence(100.0)
    while at[0] < silence.due:
        at[0] += 1.0
        silence.note(1)
    assert at[0] == pytest.approx(ended_after_s, rel=0.15)
    silence.heard(5.0)
    assert silence.due == at[0] + 100.0


def test_who_sleeps_hangs_and_who_is_not_let_run_starves(tmp_path: Path) -> None:
    cpu = max(os.sched_getaffinity(0))
    with _group(("sleep", "1000"), None, tmp_path) as group:
        deadline = time.monotonic() + 20
        while usage(group.number).wants_more:  # on its way to sleep
            if time.monotonic() > deadline:
                pytest.skip("the machine is overloaded: a sleep does not get to sleep in 20 s")
            group.ended(0.05)
        assert "hangs" in _told(group)
    with _group(("nice", "-n", "19", *_SPIN), cpu, tmp_path) as starved:
        _give_way(starved)
        rivals = [subprocess.Popen(("taskset", "-c", str(cpu), *_SPIN)) for _ in range(2)]
        try:
            assert "starves it" in _told(starved)
        finally:
            for rival in rivals:
                rival.kill()
                rival.wait()


def test_who_spins_with_a_cpu_to_itself_busy_waits(tmp_path: Path) -> None:
    with _group(_SPIN, min(os.sched_getaffinity(0)), tmp_path) as group:
        said = _told(group)
    if "starves" in said:
        pytest.skip("the CPU is not ours: the machine is overloaded")
    assert "busy-waits" in said
