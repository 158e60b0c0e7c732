"""The ``hpn`` command run as its users run it, with a state directory of the test's own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.process import sandbox
from hpn.testbed.vm.uml import Uml

ROOT = Path(__file__).resolve().parent.parent.parent
DEADLINE_S = 90
_PATIENCE_S = 300
"""Of a command; a guest waits a minute of its own time for convergence, and as long again for a busy machine."""


@dataclass(frozen=True)
class Hpn:
    """Runs commands; ``prefix`` goes in front (setpriv for another user), ``environment`` beside this process's own."""

    state: Path
    prefix: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command."""
        return subprocess.Popen(
            [*self.prefix, sys.executable, str(ROOT / "cli.py"), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.state,
            env=os.environ
            | {"HPN_STATE_DIR": str(self.state / "labs"), "PYTHONDONTWRITEBYTECODE": "1"}
            | {"XDG_CONFIG_HOME": str(self.state / "config"), **self.environment},
        )

    def run(self, *arguments: str, code: int | None = 0) -> str:
        """Run a command to its end; its output. Fails when the exit code is another."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=_PATIENCE_S)
        assert code is None or process.returncode == code, f"{arguments}: exit {process.returncode}\n{out}\n{err}"
        return out + err

    def json(self, *arguments: str) -> object:
        """Run a command with --json."""
        return json.loads(self.run(*arguments, "--json"))

    def labs(self) -> list[dict[str, object]]:
        """What ``hpn ls`` knows."""
        found = self.json("ls")
        assert isinstance(found, list)
        return found


def processes_of(state: Path) -> list[str]:
    """Processes that carry this test's state directory in their environment: everything its commands started."""
    marker = f"HPN_STATE_DIR={state / 'labs'}".encode()
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if marker in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                found.append(Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def until(condition: Callable[[], bool], what: str, within_s: float = DEADLINE_S) -> None:
    """Wait for what other processes do."""
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.05)


@contextmanager
def lab_up(state: Path, topology: str) -> Iterator[Hpn]:
    """With a lab of this topology file, which is down afterwards."""
    skip_without_sandbox()
    made = Hpn(state)
    (state / "small.yaml").write_text(topology)
    made.run("up", "small.yaml")
    yield made
    made.run("down", "--all")


def skip_without_sandbox() -> None:
    """For tests of commands that make sandboxes themselves."""
    try:
        sandbox.spawn(lambda: 0).wait()
    except MachineError as error:
        pytest.skip(str(error))


def skip_without_virtual_time() -> None:
    """For tests of drills in guests whose clock stands still while anything computes."""
    try:
        Uml(virtual_time=True).check()
    except MachineError as error:
        pytest.skip(str(error))


def pids_of(state: Path, program: str) -> list[int]:
    """Process IDs of what this test's commands started and whose command line holds ``program``, oldest first."""
    marker = f"HPN_STATE_DIR={state / 'labs'}".encode()
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            ours = marker in Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
            if ours and program in Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode():
                found.append(int(name))
        except OSError:
            continue
    return sorted(found)


def end_what_is_left(hpn: Hpn) -> None:
    """End the labs of a test; those too that ``hpn down`` does not know of, which is a defect."""
    try:
        hpn.run("down", "--all")
    finally:
        for pid in pids_of(hpn.state, "up"):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
