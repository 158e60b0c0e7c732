"""``hpn watch`` beside a lab that is broken, mended, ended and killed."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from hpn.commands.watch import _watch
from hpn.testbed.lab.service import control
from hpn.testbed.lab.service.control import SupervisorGone
from tests.product.hpn import DEADLINE_S, ROOT, Hpn, lab_up

SMALL = "preset: tiny\nname: small\nhosts: 1\nrails: 1\naggs: 1\n"
LINK = "p0.s0.h0.r0.0"


@pytest.fixture
def hpn(tmp_path: Path) -> Iterator[Hpn]:
    with lab_up(tmp_path, SMALL) as up:
        yield up


def _until(process: subprocess.Popen[str], words: str) -> list[str]:
    """The lines that it prints, up to the one that has these words."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if words in line:
            return lines
    raise AssertionError(f"never: {words!r}\n" + "\n".join(lines))


def _first_pid(hpn: Hpn) -> int:
    (lab,) = hpn.labs()
    return int(str(lab["first_pid"]))


def test_a_pipe_is_told_what_breaks_and_what_is_well_again_and_when_the_lab_is_down(hpn: Hpn) -> None:
    watching = hpn.start("watch", "--every", "200 ms")
    assert "all is well" in _until(watching, "all is well")
    _until(watching, "1 ")
    hpn.run("break", LINK)
    lines = _until(watching, f"wrong: {LINK} has no carrier (by hand), its LAG uses")
    hpn.run("mend", LINK)
    lines += _until(watching, "all is well")
    for said in (f"fault injected {LINK} (by hand)", "link carrier-down p0.s0.t0.0:h0r0", f"fault restored {LINK}"):
        assert any(said in line for line in lines), "\n".join(lines)
    hpn.run("down")
    out, err = watching.communicate(timeout=DEADLINE_S)
    assert (watching.returncode, err) == (0, "")
    assert out.splitlines()[-1] == "lab small is down"


def test_a_look_cut_off_by_the_end_of_the_lab_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    lab, view, due = (MagicMock() for _ in range(3))
    lab.look.side_effect = [MagicMock(), SupervisorGone("cut off"), SupervisorGone("cut off")]
    due.over = False
    monkeypatch.setattr(control, "follow", lambda *_: iter(([], [])))
    assert _watch(lab, view, due)
    assert lab.look.call_count == 3


def test_events_are_shown_before_the_state_they_led_to(monkeypatch: pytest.MonkeyPatch) -> None:
    lab, view, due = (MagicMock() for _ in range(3))
    due.over = False
    due.draw.side_effect = [True, False]
    monkeypatch.setattr(control, "follow", lambda *_: iter(([], ["fault restored"])))
    assert _watch(lab, view, due)
    assert [call[0] for call in view.method_calls] == ["show", "hear", "show"]


def test_a_killed_supervisor_ends_it_with_one_line_and_a_stopped_one_is_named(hpn: Hpn) -> None:
    watching = hpn.start("watch")
    _until(watching, "all is well")
    os.kill(_first_pid(hpn), signal.SIGSTOP)
    _, err = watching.communicate(timeout=DEADLINE_S)
    assert watching.returncode == 3
    assert err.count("\n") == 1
    assert "is stopped; let it go on" in err
    os.kill(_first_pid(hpn), signal.SIGCONT)
    watching = hpn.start("watch", "--every", "60 s")
    _until(watching, "all is well")
    os.kill(_first_pid(hpn), signal.SIGKILL)
    _, err = watching.communicate(timeout=30)
    assert (watching.returncode, err.count("\n")) == (3, 1)
    assert "broke off without an answer" in err


def test_json_lines_and_mistakes(hpn: Hpn) -> None:
    told = [
        json.loads(line)
        for line in hpn.run("watch", "small", "--for", "1.5 s", "--every", "100 ms", "--json").splitlines()
    ]
    status = [line["status"] for line in told if "status" in line]
    assert len(status) > 2
    assert status[-1]["wrong"] == []
    assert {link["state"] for link in status[-1]["links"]} == {"distributing", "established"}
    assert any(link["up_bps"] > 0 for seen in status for link in seen["links"]), "LACP, if nothing else"
    assert "no lab 'other' is up" in hpn.run("watch", "other", code=2)
    assert "take at least 100 ms" in hpn.run("watch", "--every", "1 ms", code=2)


def test_ctrl_c_leaves_the_terminal_as_it_was(hpn: Hpn) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(ours, (24, 80))
    before = termios.tcgetattr(theirs)
    environment = os.environ | {"HPN_STATE_DIR": str(hpn.state / "labs"), "TERM": "xterm-256color"}
    command = [sys.executable, str(ROOT / "cli.py"), "watch"]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=hpn.state)
    shown = _read_until(ours, b"all is well")
    process.send_signal(signal.SIGINT)
    shown += _read_until(ours, b"\x1b[?25h")
    assert process.wait(DEADLINE_S) == 0
    assert (shown.count(b"\x1b[?1049h"), shown.count(b"\x1b[?1049l")) == (1, 1), "the other screen, and back"
    assert b"Traceback" not in shown
    assert termios.tcgetattr(theirs) == before
    os.close(ours)
    os.close(theirs)


def _read_until(terminal: int, words: bytes) -> bytes:
    found, end = b"", time.monotonic() + DEADLINE_S
    while words not in found:
        assert time.monotonic() < end, found
        if select.select([terminal], [], [], 1.0)[0]:
            found += os.read(terminal, 1 << 16)
    return found
