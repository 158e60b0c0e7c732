"""Why a guest stands still is read from what its processes had of the machine: real ones spin, sleep and starve."""

from __future__ import annotations

import os
import signal
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
    ("ran_s", "waited_s", "words"),
    [
        (
            100.0,
            5.0,
            "it had 100 s of CPU time meanwhile: something in it busy-waits, or computes for longer than that",
        ),
        (8.0, 110.0, "waited 110 s for more: this machine starves it; run less beside it"),
        (0.4, 0.1, "it had 0 s of CPU time meanwhile and asked for no more: it hangs"),
        (61.0, 59.0, "busy-waits"),
    ],
)
def test_only_who_runs_is_said_to_busy_wait(ran_s: float, waited_s: float, words: str) -> None:
    assert words in explain(Usage(ran_s, waited_s), 120.0)


def test_what_came_on_top_is_never_less_than_nothing() -> None:
    assert Usage(1.0, 4.0).since(Usage(3.0, 1.0)) == Usage(0.0, 3.0)  # processes have ended


@contextmanager
def _group(command: tuple[str, ...], cpu: int, folder: Path) -> Iterator[ProcessGroup]:
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
    with _group(("sleep", "1000"), cpu, tmp_path) as group:
        os.killpg(group.number, signal.SIGSTOP)  # else it may still be on its way to sleep
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
