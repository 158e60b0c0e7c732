"""Guests in QEMU: what a command sees there, what comes back, and that every bad end is an error and leaves nothing.

A boot takes 5 to 10 s emulated, so there are few of them.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.softroce.soft_roce import MODULES
from hpn.testbed.vm.guest import GuestJob
from hpn.testbed.vm.qemu import Qemu

pytestmark = [pytest.mark.guest, pytest.mark.long, pytest.mark.timeout(600)]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def qemu() -> Qemu:
    engine = Qemu()
    try:
        engine.check()
    except MachineError as error:
        pytest.skip(str(error))
    return engine


def _job(*command: str, writable: tuple[Path, ...] = (), timeout_s: float = 120, **environment: str) -> GuestJob:
    return GuestJob(command, ROOT, writable, environment, memory_mb=1024, cpus=2, timeout_s=timeout_s)


def _qemu_children() -> int:
    """How many QEMU processes of ours there are."""
    return _output("ps", "-o", "args=", "--ppid", str(os.getpid())).count("qemu-system")


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_command_runs_on_the_host_s_files_under_another_kernel(qemu: Qemu, tmp_path: Path) -> None:
    lines: list[tuple[float, str]] = []
    script = (
        "uname -r; echo $GREETING; pwd; echo $HPN_ACCELERATOR; touch /hpn-was-here; touch /tmp/forgotten;"
        f"cat /proc/modules > {tmp_path}/modules; cat /sys/class/net/lo/flags > {tmp_path}/lo;"
        "sleep 2; echo late >&2; exit 7"
    )
    result = qemu.run(
        _job("sh", "-c", script, writable=(tmp_path,), GREETING="it's me"),
        lambda line: lines.append((time.monotonic(), line)),
    )
    told = [line for _, line in lines]
    assert result.exit_code == 7
    assert told[0] == result.kernel != os.uname().release
    assert told[1:3] == ["it's me", str(ROOT)]
    assert told[3] == qemu.accelerator()
    assert any("Read-only" in line for line in told)
    assert not Path("/hpn-was-here").exists()
    assert not Path("/tmp/forgotten").exists()
    assert "bonding" in (tmp_path / "modules").read_text()
    assert int((tmp_path / "lo").read_text(), 16) & 1, "the loopback is up"
    assert told[-1] == "late"
    assert lines[-1][0] - lines[0][0] > 1, "lines come while the command runs"
    assert 0 < result.boot_s < result.wall_s
    assert _qemu_children() == 0


def test_a_panic_is_an_error_that_quotes_the_console(qemu: Qemu) -> None:
    with pytest.raises(MachineError, match="Kernel panic - not syncing: sysrq triggered crash"):
        qemu.run(_job("sh", "-c", "echo c > /proc/sysrq-trigger"), lambda _line: None)
    assert _qemu_children() == 0


@pytest.mark.slow
def test_a_guest_that_hangs_or_dies_is_an_error_with_its_last_words(qemu: Qemu) -> None:
    with pytest.raises(MachineError, match=r"did not end within 25 s.* thinking$"):
        qemu.run(_job("sh", "-c", "echo thinking; sleep 1000", timeout_s=25), lambda _line: None)
    with pytest.raises(MachineError, match=r"was killed by signal 9 \(.*\) while the command ran"):
        qemu.run(_job("sh", "-c", "echo ready; sleep 1000"), lambda _line: _signal(signal.SIGKILL))
    assert _qemu_children() == 0


def _signal(number: signal.Signals) -> None:
    os.kill(int(_output("pgrep", "-P", str(os.getpid()), "qemu")), number)


def test_a_qemu_that_aborts_while_booting_is_started_once_more(
    qemu: Qemu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As 7.2 does now and then, by an assertion of its own; one that does so twice is an error."""
    qemu.accelerator()  # which may boot a guest of its own
    fake = tmp_path / f"qemu-system-{os.uname().machine}"
    real = shutil.which(fake.name)
    about = f'case "$*" in *--version|*help*) exec {real} "$@";; esac'
    fake.write_text(f"#!/bin/sh\n{about}\necho x >> {tmp_path}/starts\nkill -ABRT $$\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    told: list[str] = []
    with pytest.raises(MachineError, match="killed by signal 6 while booting"):
        qemu.run(_job("true"), told.append)
    assert (tmp_path / "starts").read_text().split() == ["x", "x"]
    assert told[0].startswith("booting once more: the qemu guest was killed by signal 6")


@pytest.mark.slow
def test_a_guest_lives_as_long_as_it_tells_so_and_is_ended_when_it_does_not(tmp_path: Path) -> None:
    """The command is silent for longer than the limit; then the whole guest is stopped."""
    lines: list[str] = []

    def stop(line: str) -> None:
        lines.append(line)
        if line == "second":
            _signal(signal.SIGSTOP)

    engine = Qemu(stall_s=15.0)
    try:
        engine.check()
    except MachineError as error:
        pytest.skip(str(error))
    with pytest.raises(
        MachineError, match=r"silent for 15 s \(its clock stands at \d+\.\d s; it had 0 s of CPU"
    ) as ended:
        engine.run(_job("sh", "-c", "echo first; sleep 20; echo second; sleep 1000", timeout_s=400), stop)
    if "starves" in str(ended.value):
        pytest.skip(f"the machine is overloaded: {ended.value}")
    assert lines == ["first", "second"]
    assert "it hangs" in str(ended.value)
    assert _qemu_children() == 0


def test_what_the_command_leaves_behind_is_asked_to_end_before_power_goes(qemu: Qemu, tmp_path: Path) -> None:
    left = f"trap 'echo asked > {tmp_path}/word; exit' TERM; echo stands; while :; do sleep 1000 & wait; done"
    script = f"(exec > {tmp_path}/out; {left}) & until grep -q stands {tmp_path}/out; do sleep 0.1; done"
    assert qemu.run(_job("sh", "-c", script, writable=(tmp_path,)), lambda _line: None).exit_code == 0
    assert (tmp_path / "word").read_text() == "asked\n"


_HOST = """
from pathlib import Path
from hpn.testbed.vm.guest import GuestJob
from hpn.testbed.vm.qemu import Qemu
job = GuestJob(("sh", "-c", "echo up; sleep 1000"), Path.cwd(), (), {}, 1024, 1, 300.0)
Qemu().run(job, lambda line: print(line, flush=True))
"""


def test_ctrl_c_ends_the_guest(qemu: Qemu, tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", _HOST]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as host:
        assert host.stdout is not None
        assert b"up\n" in iter(host.stdout.readline, b"")
        guests = _output("ps", "-o", "pid=", "--ppid", str(host.pid)).split()
        assert guests
        host.send_signal(signal.SIGINT)
        host.communicate(timeout=60)
    assert host.returncode == -signal.SIGINT
    assert not [pid for pid in guests if Path(f"/proc/{pid}").exists()]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_linux_bonding_aggregates_with_our_tors(qemu: Qemu) -> None:
    """A distribution's bonding driver; and what that kernel's Soft-RoCE is worth. Whole labs: ``test_uml_lacp.py``."""
    lines: list[str] = []
    tests = [f"tests/{name}.py" for name in ("lag/test_bond", "lab/test_soft_roce")]
    # The guest's root is our user towards the host's files: its /tmp/pytest-of-root may be another's.
    options = ("-p", "no:cacheprovider", "--basetemp", "/run/pytest", "-rs", "--timeout", "120")
    command = (sys.executable, "-m", "pytest", *options, *tests)
    loaded = f"modprobe -q -a {' '.join(MODULES)}; exec {shlex.join(command)}"
    result = qemu.run(_job("sh", "-c", loaded, timeout_s=500), lines.append)
    assert result.exit_code == 0, "\n".join(lines)
    assert not [line for line in lines if "no bonding driver" in line]
