"""``hpn vm shell``: what a command finds in the guest, and a shell typed at through a terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.vm import shell
from hpn.testbed.vm.terminal import ESCAPE
from hpn.testbed.vm.uml import Uml

_CLI = Path(__file__).parents[2] / "cli.py"
_GUEST = [pytest.mark.guest, pytest.mark.timeout(600)]
_DEADLINE_S = 240.0  # emulated, on a busy machine
Answer = subprocess.CompletedProcess[str]


@pytest.fixture(params=["uml", pytest.param("qemu", marks=pytest.mark.slow)])
def engine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    try:
        shell.choose(name)
    except MachineError as error:
        pytest.skip(str(error))
    return name


def _hpn(folder: Path, engine: str, *command: str) -> Answer:
    arguments = [sys.executable, str(_CLI), "vm", "shell", "--engine", engine, "--", *command]
    return subprocess.run(arguments, cwd=folder, capture_output=True, text=True, timeout=_DEADLINE_S, check=False)


class TestCommand:
    pytestmark = _GUEST

    def test_a_command_works_where_we_are_and_its_exit_code_comes_back(self, engine: str, tmp_path: Path) -> None:
        answer = _hpn(tmp_path, engine, "sh", "-c", "command -v hpn; pwd; uname -r; touch made; exit 9")
        assert answer.returncode == 9, answer.stderr
        hpn, here, kernel = answer.stdout.splitlines()
        assert (Path(hpn).name, here) == ("hpn", str(tmp_path))
        assert kernel != os.uname().release
        assert (tmp_path / "made").exists()

    def test_a_lab_is_used_with_the_usual_commands(self, tmp_path: Path) -> None:
        try:
            shell.choose("uml")
        except MachineError as error:
            pytest.skip(str(error))
        near, far = load_fabric("tiny").nics[:2]
        ping = f"hpn exec {near.host} -- ping -c 1 -W 5 {far.ip}"
        answer = _hpn(tmp_path, "uml", "sh", "-c", f"hpn up tiny && {ping}; code=$?; hpn down; exit $code")
        assert answer.returncode == 0, answer.stdout + answer.stderr
        assert "1 received" in answer.stdout
        assert "lab tiny is down" in answer.stdout

    def test_a_guest_that_ends_under_its_command_is_an_error_with_its_last_words(
        self, engine: str, tmp_path: Path
    ) -> None:
        """UML: the first process is interrupted. QEMU: a panic; its first process cannot be killed from within."""
        end = {"uml": "kill -INT 1", "qemu": "echo c > /proc/sysrq-trigger"}[engine]
        answer = _hpn(tmp_path, engine, "sh", "-c", f"kill -KILL 1; echo alive; {end}; sleep 1000")
        assert answer.returncode == MachineError.exit_code
        words = {
            "uml": "ended by itself .* while the command ran; its last words: ",
            "qemu": "Kernel panic.*console ended: ",
        }
        assert re.search(f"^hpn: the .* guest .*{words[engine]}", answer.stderr)

    def test_a_guest_whose_first_process_hangs_is_ended(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """It is put into a frozen control group; signals cannot stop it."""
        _uml()
        monkeypatch.chdir(tmp_path)
        freeze = (
            "mkdir /run/groups && mount -t cgroup2 none /run/groups && cd /run/groups && mkdir ice",
            "echo 1 > ice/cgroup.procs && echo 1 > ice/cgroup.freeze || exit 9",
            "sleep 1000",
        )
        job = shell.job(("/bin/sh", "-c", "; ".join(freeze)))
        with pytest.raises(MachineError, match=r"the UML guest has been silent for 6 s \(its clock stands at"):
            Uml(stall_s=6.0).run(job, lambda _line: None)


class _Typist:
    """Somebody at a terminal with ``hpn vm shell`` on it."""

    def __init__(self, folder: Path, engine: str) -> None:
        self._master, self._slave = pty.openpty()
        termios.tcsetwinsize(self._slave, (33, 111))
        self._before = termios.tcgetattr(self._slave)
        self._seen = b""
        self.process = subprocess.Popen(
            [sys.executable, _CLI, "vm", "shell", "--engine", engine],
            cwd=folder,
            env={**os.environ, "SHELL": "/bin/sh", "TMPDIR": str(folder)},
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            start_new_session=True,
        )

    def types(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def sees(self, pattern: bytes) -> bytes:
        """Wait for it; everything up to it."""
        deadline = time.monotonic() + _DEADLINE_S
        while (found := re.search(pattern, self._seen, re.DOTALL)) is None:
            ready, _, _ = select.select([self._master], [], [], max(deadline - time.monotonic(), 0.0))
            assert ready, f"no {pattern!r} in {self._seen[-2000:]!r}"
            self._seen += os.read(self._master, 1 << 16)
        before, self._seen = self._seen[: found.end()], self._seen[found.end() :]
        return before

    def code(self) -> int:
        """Read on until the command has ended; its exit code. The terminal must be as it was."""
        pidfd = os.pidfd_open(self.process.pid)
        deadline = time.monotonic() + _DEADLINE_S
        while True:
            ready, _, _ = select.select([self._master, pidfd], [], [], max(deadline - time.monotonic(), 0.0))
            assert ready, "it does not end"
            if self._master in ready:
                self._seen += os.read(self._master, 1 << 16)
            else:
                break
        os.close(pidfd)
        assert termios.tcgetattr(self._slave) == self._before
        return self.process.wait()

    def hangs_up(self) -> None:
        if self._master >= 0:
            os.close(self._slave)
            os.close(self._master)
            self._master = -1


@contextmanager
def _typing(folder: Path, engine: str) -> Iterator[_Typist]:
    typist = _Typist(folder, engine)
    try:
        yield typist
    finally:
        typist.hangs_up()
        typist.process.kill()
        typist.process.wait()


class TestTyping:
    pytestmark = _GUEST

    def test_a_shell_with_job_control_of_the_terminals_size_whose_exit_code_comes_back(
        self, engine: str, tmp_path: Path
    ) -> None:
        with _typing(tmp_path, engine) as user:
            user.sees(rb"# $")
            user.types(b"echo $((6*7)); stty size\n")
            user.sees(rb"\n42\r\n33 111\r\n")
            # It says so itself once it is in the foreground: between two commands Ctrl-C would meet the shell.
            user.types(b"sh -c 'echo wai\"\"ting; exec sleep 1000'\n")
            user.sees(rb"waiting")
            user.types(b"\x03")
            user.sees(rb"# $")
            user.types(b"echo code $?\n")
            user.sees(rb"\ncode 130\r\n# $")  # a prompt that comes after the echo would stand before the first number
            user.types(b"seq 1 3000; echo whole; exit 5\n")
            shown = user.sees(rb"\nwhole\r\n")
            assert [int(line) for line in re.findall(rb"(?m)^(\d+)\r$", shown)] == list(range(1, 3001))
            assert user.code() == 5
        assert list(tmp_path.iterdir()) == []

    def test_ctrl_d_leaves(self, tmp_path: Path) -> None:
        with _typing(tmp_path, _uml()) as user:
            user.sees(rb"# $")
            user.types(b"\x04")
            assert user.code() == 0

    def test_the_escape_keys_end_a_guest_that_does_not_listen(self, engine: str, tmp_path: Path) -> None:
        with _typing(tmp_path, engine) as user:
            user.sees(rb"# $")
            user.types(b"trap '' INT TERM; stty raw; echo de''af; while :; do sleep 1000; done\n")
            user.sees(rb"deaf")
            user.types(b"\x03" + 3 * ESCAPE)
            assert user.code() == 130
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
    def test_a_signal_ends_the_guest_and_restores_the_terminal(self, number: signal.Signals, tmp_path: Path) -> None:
        with _typing(tmp_path, _uml()) as user:
            user.sees(rb"# $")
            user.process.send_signal(number)
            assert user.code() == 130
        assert list(tmp_path.iterdir()) == []

    def test_a_closed_terminal_ends_the_guest(self, tmp_path: Path) -> None:
        with _typing(tmp_path, _uml()) as user:
            user.sees(rb"# $")
            user.hangs_up()
            user.process.wait(_DEADLINE_S)
        assert list(tmp_path.iterdir()) == []


def _uml() -> str:
    try:
        shell.choose("uml")
    except MachineError as error:
        pytest.skip(str(error))
    return "uml"
