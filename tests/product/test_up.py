"""``hpn up`` that fails, is killed, or is run by a caller with locks of its own; labs whose files are gone."""

from __future__ import annotations

import asyncio
import os
import pty
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.events import EventSink
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.kernel.process import sandbox
from hpn.testbed.kernel.process.processes import own_pids
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.service import registry, serving, supervisor
from tests.product.chaos import Strike
from tests.product.hpn import ROOT, Hpn, pids_of, processes_of, skip_without_sandbox, until


@pytest.fixture(scope="module", autouse=True)
def _needs_sandbox() -> None:
    skip_without_sandbox()


def test_a_lab_holds_no_lock_of_the_command_that_started_it(tmp_path: Path) -> None:
    hpn, held = Hpn(tmp_path), tmp_path / "held"
    up = f"{sys.executable} {ROOT / 'cli.py'} up tiny"
    environment = os.environ | {"HPN_STATE_DIR": str(tmp_path / "labs")}
    try:
        subprocess.run(["flock", held, "-c", up], env=environment, capture_output=True, check=True, timeout=120)
        assert [lab["state"] for lab in hpn.labs()] == ["up"]
        assert subprocess.run(["flock", "-n", held, "true"], check=False).returncode == 0, "the lab holds the lock"
    finally:
        hpn.run("down", "--all")


def test_up_says_on_a_terminal_what_is_still_to_come_and_nothing_in_a_log(tmp_path: Path) -> None:
    hpn = Hpn(tmp_path)
    terminal, stderr = pty.openpty()
    environment = os.environ | {"HPN_STATE_DIR": str(tmp_path / "labs"), "TERM": "xterm"}
    command, said = [sys.executable, str(ROOT / "cli.py"), "up", "tiny"], b""
    try:
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=stderr) as process:
            os.close(stderr)
            with suppress(OSError):  # EIO: the command has ended, and the lab holds no terminal
                while True:
                    said += os.read(terminal, 1 << 16)
        assert process.returncode == 0, said
        assert b"tiny: starting 16 nodes" in said
        assert re.search(rb"tiny: [1-9]\d* of 32 ends of BGP sessions up", said), said
        hpn.run("down", "tiny")
        assert "sessions" not in hpn.run("up", "tiny")
    finally:
        os.close(terminal)
        hpn.run("down", "--all")


@pytest.mark.kernel
@pytest.mark.parametrize("options", ["size=4k", "size=8k", "nr_inodes=3", "nr_inodes=5"])
def test_a_full_state_directory_refuses_a_lab_and_leaves_none(tmp_path: Path, options: str) -> None:
    hpn = Hpn(tmp_path)
    (tmp_path / "labs").mkdir(mode=0o700)
    sandbox.mount("full", str(tmp_path / "labs"), "tmpfs", 0, f"mode=700,{options}")
    said = hpn.run("up", "tiny", code=3)
    assert "cannot keep a lab's state" in said
    assert "Traceback" not in said
    assert len(own_pids()) == 1, "processes of a lab that nobody can end"
    assert hpn.labs() == []
    assert os.listdir(tmp_path / "labs") == []


def test_a_lab_with_lossless_switches_says_in_which_guest_it_can_be(tmp_path: Path) -> None:
    (tmp_path / "lossless.yaml").write_text("preset: tiny\nswitch: {buffer: 2 MB}\n")
    said = Hpn(tmp_path).run("up", "lossless.yaml", code=3)
    assert "this kernel cannot have switch: (PFC, classes)" in said
    assert "hpn vm shell --engine uml-virtual-time -- sh -c 'hpn up FILE && hpn inspect queues'" in said


def test_a_lab_with_more_than_1024_descriptors_comes_up_and_breaks(tmp_path: Path) -> None:
    """More than select() can look at, in libnftables for one: 204 hosts, each with a context of its own."""
    hpn = Hpn(tmp_path)
    (tmp_path / "big.yaml").write_text("preset: medium\narchitecture: single-tor\nsegments: 12\nhosts: 17\naggs: 2\n")
    try:
        hpn.run("up", "big.yaml", "--name", "big")
        first = int(str(hpn.labs()[0]["first_pid"]))
        assert len(os.listdir(f"/proc/{first}/fd")) > 1024
        hpn.run("break", "p0.s11.h16.r0.0")
        hpn.run("mend", "p0.s11.h16.r0.0")
        assert [lab["state"] for lab in hpn.labs()] == ["up"]
    finally:
        hpn.run("down", "--all")


def test_a_lab_whose_files_are_gone_is_seen_and_ended(tmp_path: Path) -> None:
    hpn = Hpn(tmp_path)
    hpn.run("up", "tiny")
    for name in ("lab.json", "fabric.json"):
        (tmp_path / "labs" / "tiny" / name).unlink()
    (lab,) = hpn.labs()
    assert "record is missing" in str(lab["reason"])
    hpn.run("down", "tiny")
    assert processes_of(tmp_path) == []
    assert hpn.labs() == []


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_at_any_moment_of_up_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    draw = random.Random(number)
    for _ in range(3):
        assert Strike("up", number, draw.uniform(0, 1), begun=True).carry_out(Hpn(tmp_path)) == []


def test_what_nohup_ignores_does_not_end_a_lab_that_starts(tmp_path: Path) -> None:
    hpn = Hpn(tmp_path, ("sh", "-c", 'trap "" HUP; exec "$@"', "sh"))
    up = hpn.start("up", "tiny")
    until((tmp_path / "labs" / "tiny" / "lab.json").exists, "the lab starts")
    up.send_signal(signal.SIGHUP)
    _, said = up.communicate(timeout=120)
    try:
        assert (up.returncode, [lab["state"] for lab in hpn.labs()]) == (0, ["up"]), said
    finally:
        hpn.run("down", "--all")


def test_a_lab_says_which_daemon_it_lost_and_how_to_start_it(tmp_path: Path) -> None:
    hpn = Hpn(tmp_path)
    hpn.run("up", "tiny")
    try:
        bird = next(pid for pid in pids_of(tmp_path, "bird") if "p0.s0.t0.0" in _command_line(pid))
        os.kill(bird, signal.SIGKILL)
        until(lambda: "p0.s0.t0.0: BIRD" in str(hpn.labs()[0]["reason"]), "ls names the daemon")
        assert "killed by signal 9" in (said := hpn.run("ls"))
        assert "hpn break p0.s0.t0.0, hpn mend p0.s0.t0.0" in said
        hpn.run("break", "p0.s0.t0.0")
        hpn.run("mend", "p0.s0.t0.0")
        until(lambda: hpn.labs()[0]["reason"] == "every daemon runs again", "ls says that it runs again")
    finally:
        hpn.run("down", "--all")


def _command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()


class _Aborting(Lab):
    """A lab whose supervisor aborts as libnftables can make it do: while it starts, or once it is up."""

    when = "start"

    @classmethod
    def start(cls, fabric: Fabric, sink: EventSink, *, in_order: bool = False) -> Lab:
        if cls.when == "start":
            os.abort()
        lab = super().start(fabric, sink, in_order=in_order)
        asyncio.get_running_loop().call_later(0.5, os.abort)
        return lab

    async def converged(self, timeout_s: float | None = None) -> None:
        pass


@pytest.mark.parametrize("when", ["start", "later"])
def test_the_last_words_of_a_supervisor_outlive_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    monkeypatch.setenv("HPN_STATE_DIR", str(tmp_path / "labs"))
    monkeypatch.setattr(_Aborting, "when", when)
    monkeypatch.setattr(serving, "Lab", _Aborting)
    hpn, request = Hpn(tmp_path), supervisor.Request("tiny", "tiny", load_fabric("tiny"))
    if when == "start":
        with pytest.raises(
            MachineError, match="supervisor of lab tiny died while it started: Fatal Python error: Aborted"
        ):
            supervisor.launch(request, lambda _event: None)
    else:
        supervisor.launch(request, lambda _event: None)
        until(lambda: [lab["state"] for lab in hpn.labs()] == ["died"], "the lab is seen to have died", 20)
        assert "Fatal Python error: Aborted" in hpn.run("ls")
        assert "has died: Fatal Python error: Aborted" in hpn.run("inspect", "--lab", "tiny", code=2)
        hpn.run("down", "tiny")
    assert hpn.labs() == []
    assert os.listdir(tmp_path / "labs") == []


class _Stuck(Lab):
    """A lab whose event loop comes to nothing any more once it is up."""

    sign = Path()

    async def converged(self, timeout_s: float | None = None) -> None:
        def stick() -> None:
            self.sign.touch()
            time.sleep(60)

        asyncio.get_running_loop().call_later(0.1, stick)


def test_a_supervisor_whose_loop_is_stuck_ends_when_it_is_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only when it is killed: then the kernel takes 15 ms for each packet socket."""
    monkeypatch.setenv("HPN_STATE_DIR", str(tmp_path / "labs"))
    monkeypatch.setattr(serving, "Lab", _Stuck)
    monkeypatch.setattr(_Stuck, "sign", tmp_path / "stuck")
    sent: list[int] = []
    send = signal.pidfd_send_signal

    def overheard(pidfd: int, number: int) -> None:
        sent.append(number)
        send(pidfd, number)

    supervisor.launch(supervisor.Request("tiny", "tiny", load_fabric("tiny")), lambda _event: None)
    until(_Stuck.sign.exists, "the loop is stuck")
    monkeypatch.setattr(signal, "pidfd_send_signal", overheard)
    supervisor.stop(registry.folder("tiny"))
    assert sent == [signal.SIGTERM]
    assert Hpn(tmp_path).labs() == []


class _Talkative(Lab):
    """A lab whose event loop has the same trouble over and over."""

    async def converged(self, timeout_s: float | None = None) -> None:
        for number in range(4000):
            sys.stderr.write(f"trouble {number} {'x' * 1000}\nValueError: {number}\n")


def test_the_log_of_a_lab_that_has_the_same_trouble_over_and_over_stays_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPN_STATE_DIR", str(tmp_path / "labs"))
    monkeypatch.setattr(serving, "Lab", _Talkative)
    supervisor.launch(supervisor.Request("tiny", "tiny", load_fabric("tiny")), lambda _event: None)
    try:
        log = (tmp_path / "labs" / "tiny" / "lab.log").read_text()
        assert len(log) <= 1 << 20
        assert log.startswith("trouble 0 xxx")
        assert [lab["reason"] for lab in Hpn(tmp_path).labs()] == ["ValueError: 3999"]
    finally:
        supervisor.stop(registry.folder("tiny"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_after_a_lab_is_up_does_not_make_the_command_say_otherwise(
    tmp_path: Path, number: signal.Signals
) -> None:
    hpn = Hpn(tmp_path)
    process = hpn.start("up", "tiny")
    assert process.stdout is not None
    said = process.stdout.readline()
    process.send_signal(number)
    process.communicate(timeout=60)
    assert (process.returncode, "converged after" in said) == (0, True)
    assert [lab["state"] for lab in hpn.labs()] == ["up"]
    hpn.run("down")
