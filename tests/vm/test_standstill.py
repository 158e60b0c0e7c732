"""Why a guest stands still is read from what its processes had of the machine: real ones spin, sleep and starve."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testbed.vm.group import ProcessGroup
from testbed.vm.standstill import Usage, explain, usage

_SPIN = ("/bin/sh", "-c", "while :; do :; done")
_FOR_S = 1.5


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


@contextmanager
def _group(command: tuple[str, ...], cpu: int | None, folder: Path) -> Iterator[ProcessGroup]:
    with (folder / "output").open("wb") as output:
        group = ProcessGroup(command, cwd=folder, environment={}, output=output.fileno(), cpu=cpu)
        try:
            yield group
        finally:
            group.kill()


def _told(group: ProcessGroup) -> str:
    before, begun = usage(group.number), time.monotonic()
    group.ended(_FOR_S)
    return explain(usage(group.number).since(before), time.monotonic() - begun)


def test_who_sleeps_hangs_and_who_is_not_let_run_starves(tmp_path: Path) -> None:
    if not Path("/proc/self/schedstat").exists():
        pytest.skip("this kernel keeps no schedstat")
    cpu = max(os.sched_getaffinity(0))
    with _group(("sleep", "1000"), None, tmp_path) as group:
        deadline = time.monotonic() + 20
        while usage(group.number).wants_more:  # on its way to sleep
            if time.monotonic() > deadline:
                pytest.skip("the machine is overloaded: a sleep does not get to sleep in 20 s")
            group.ended(0.05)
        assert "hangs" in _told(group)
    with _group(("nice", "-n", "19", *_SPIN), cpu, tmp_path) as starved:
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
