"""Guests under user-mode Linux: the distribution's kernel, our own, and our own in virtual time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.vm.guest import GuestJob, GuestResult
from hpn.testbed.vm.uml import Uml
from tests.product.hpn import until

pytestmark = [pytest.mark.guest, pytest.mark.timeout(300)]

_ROOT = Path(__file__).parents[2]
_SHELL = Path("/bin/sh")
Boot = Callable[..., GuestResult]


def _engine(name: str, **more: float) -> Uml:
    engine = Uml(virtual_time=name == "virtual time", **more)  # type: ignore[arg-type]  # stall_s only
    try:
        engine.check()
    except MachineError as error:
        pytest.skip(str(error))
    return engine


@pytest.fixture(params=["real time", "virtual time"])
def uml(request: pytest.FixtureRequest) -> Uml:
    return _engine(request.param)


@pytest.fixture
def virtual() -> Uml:
    return _engine("virtual time")


def _job(script: str, folder: Path, *, timeout_s: float = 120.0, memory_mb: int = 256) -> GuestJob:
    command = (str(_SHELL), "-c", script)
    return GuestJob(command, folder, (folder,), {"ANSWER": "42"}, memory_mb, 1, timeout_s)


def test_a_command_runs_under_another_kernel_and_its_lines_and_exit_code_come_back(uml: Uml, tmp_path: Path) -> None:
    lines: list[str] = []
    script = "uname -r; pwd; echo $ANSWER >&2; test -t 1 || echo no terminal; printf 'no end'; exit 7"
    result = uml.run(_job(script, tmp_path), lines.append)
    assert result.exit_code == 7
    assert lines == [result.kernel, str(tmp_path), "42", "no terminal", "no end"]
    assert result.kernel != os.uname().release
    assert 0 < result.boot_s <= result.wall_s


def test_the_loopback_is_up(virtual: Uml, tmp_path: Path) -> None:
    """Or nobody reaches what a command serves on 127.0.0.1, such as the metrics of a lab."""
    lines: list[str] = []
    virtual.run(_job("read flags < /sys/class/net/lo/flags; echo $((flags & 1))", tmp_path), lines.append)
    assert lines == ["1"]


def test_a_guest_holds_its_cpu_for_as_long_as_it_runs(uml: Uml, tmp_path: Path) -> None:
    held: list[bool] = []
    uml.run(_job("echo here", tmp_path), lambda _line: held.append("hpn/guest on CPU" in _sockets()))
    assert held == [True]


def _sockets() -> str:
    return Path("/proc/net/unix").read_text()


def test_only_the_writable_folders_can_be_written_and_they_are_the_hosts_own(uml: Uml, tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    script = f"echo done > {inside}/file; echo forbidden > {outside}/file || exit 3"
    assert uml.run(_job(script, inside), lambda _line: None).exit_code == 3
    assert (inside / "file").read_text() == "done\n"
    assert list(outside.iterdir()) == []


def test_a_command_that_a_signal_ends_counts_as_a_shell_counts_it(uml: Uml, tmp_path: Path) -> None:
    assert uml.run(_job("kill -TERM $$", tmp_path), lambda _line: None).exit_code == 128 + signal.SIGTERM
    job = _job("", tmp_path)
    absent = GuestJob(("/no/such/program",), job.cwd, (), {}, job.memory_mb, 1, job.timeout_s)
    assert uml.run(absent, lambda _line: None).exit_code == 127


def test_much_output_arrives_whole_and_in_order(uml: Uml, tmp_path: Path) -> None:
    lines: list[str] = []
    result = uml.run(_job("i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo line $i; done", tmp_path), lines.append)
    assert result.exit_code == 0
    assert lines == [f"line {i}" for i in range(1, 3001)]


def test_a_guest_that_does_not_end_is_ended(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=r"did not end within 5 s; its last words: .*I wait"):
        _engine("real time").run(_job("echo I wait; sleep 1000", tmp_path, timeout_s=5.0), lambda _line: None)


def test_in_virtual_time_the_guests_own_clock_says_when_it_has_taken_too_long(virtual: Uml, tmp_path: Path) -> None:
    """A machine that is busy makes a guest slow, and ends none: to count takes wall time, and none of the guest's."""
    count = "i=0; while [ $i -lt 5000000 ]; do i=$((i+1)); done"
    result = virtual.run(_job(count, tmp_path, timeout_s=1.2), lambda _line: None)
    assert (result.exit_code, result.wall_s > 1.2) == (0, True)
    with pytest.raises(MachineError, match=r"did not end within 5 s of its own time; its last words: .*I wait"):
        virtual.run(_job("echo I wait; sleep 100000", tmp_path, timeout_s=5.0), lambda _line: None)


def test_a_busy_wait_in_virtual_time_is_found_by_the_clock_that_stands_still(tmp_path: Path) -> None:
    engine = _engine("virtual time", stall_s=6.0)
    with pytest.raises(MachineError, match=r"silent for \d+ s \(its clock stands at \d.*--stall-limit\)") as ended:
        engine.run(_job("sleep 2; while :; do :; done", tmp_path), lambda _line: None)
    if "starves" in str(ended.value):
        pytest.skip("the machine is overloaded: the guest could not even busy-wait")
    assert "busy-waits" in str(ended.value)


def test_what_the_command_leaves_behind_is_asked_to_end_before_power_goes(uml: Uml, tmp_path: Path) -> None:
    left = f"trap 'echo asked > {tmp_path}/word; exit' TERM; echo stands; while :; do sleep 1000 & wait; done"
    told: list[str] = []
    script = f"(exec > {tmp_path}/out; {left}) & until grep -q stands {tmp_path}/out; do sleep 0.1; done"
    result = uml.run(_job(script, tmp_path), told.append)
    assert result.exit_code == 0
    assert (tmp_path / "word").read_text() == "asked\n"


def test_a_panic_is_told_with_the_kernels_last_words(uml: Uml, tmp_path: Path) -> None:
    hog = "hog = [bytes([n % 256]) * 2**20 for n in range(512)]"  # just below 256 MB it thrashes instead
    eat = f"echo 1 > /proc/sys/vm/panic_on_oom; exec {sys.executable} -S -c '{hog}'"
    with pytest.raises(MachineError, match=r"(?i)panic"):
        uml.run(_job(eat, tmp_path, memory_mb=96), lambda _line: None)


def test_virtual_time_passes_at_once_and_starts_at_the_same_moment(virtual: Uml, tmp_path: Path) -> None:
    lines: list[str] = []
    job = _job("sleep 3000; cut -d' ' -f1 /proc/uptime; date +%s.%N", tmp_path, timeout_s=4000)
    result = virtual.run(job, lines.append)
    assert float(lines[0]) >= 3000
    assert result.wall_s < 100
    again: list[str] = []
    virtual.run(job, again.append)
    assert again == lines


def test_random_numbers_and_what_bird_draws_its_own_from_come_from_the_seed_in_virtual_time(tmp_path: Path) -> None:
    _engine("virtual time")

    def drawn(seed: int) -> list[str]:
        found: list[str] = []
        job = replace(_job("od -An -N16 -tx8 /dev/urandom; date +%s.%N", tmp_path), seed=seed)
        Uml(virtual_time=True).run(job, found.append)
        return found

    numbers, clock = drawn(1)
    assert drawn(1) == [numbers, clock]
    others = drawn(2)
    assert numbers != others[0]
    assert clock != others[1], "BIRD's jitter is drawn from the wall clock: it would be the same in every repeat"


_HOST = """
import sys
from pathlib import Path
from hpn.testbed.vm.guest import GuestJob
from hpn.testbed.vm.uml import Uml
folder = Path(sys.argv[1])
job = GuestJob(("/bin/sh", "-c", "echo up; sleep 1000"), folder, (), {}, 256, 1, 900.0)
Uml().run(job, lambda line: print(line, flush=True))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_of_a_guest_outlives_its_host_process(number: signal.Signals, tmp_path: Path) -> None:
    _engine("real time")
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", _HOST, str(tmp_path)], cwd=_ROOT, stdout=subprocess.PIPE, env=environment
    ) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == b"up\n"
        group = _processes_of(tmp_path)
        assert group
        host.send_signal(number)
        host.wait(60)
    assert _gone(group), "processes of the guest are left"
    if number != signal.SIGKILL:
        until(lambda: not any(tmp_path.iterdir()), "the process that clears up leaves nothing", 30)


def _processes_of(folder: Path) -> set[int]:
    """Processes that work in ``folder``: the guest's, whose scratch folder is in there."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if folder in Path(os.readlink(entry / "cwd")).parents:
                    found.add(int(entry.name))
            except OSError:
                continue
    return found


def _gone(pids: set[int], timeout_s: float = 30.0) -> bool:
    deadline = time.monotonic() + timeout_s
    while any(Path(f"/proc/{pid}/cwd").exists() for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
