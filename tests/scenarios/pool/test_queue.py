"""Workers share a machine in the order in which they came, and who has died keeps nobody waiting."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hpn.scenarios.batch.pool import queue as module
from hpn.scenarios.batch.pool.queue import turn
from tests.product.hpn import ROOT, until

WAIT_S = 20
NEVER = threading.Event()


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_S", 0.01)


@contextmanager
def waiting(folder: Path, order: list[str], name: str, alone: bool) -> Iterator[threading.Event]:
    """One who queues up in a thread and notes when it is his turn; set the event, and he goes."""
    before = last(folder)
    go = threading.Event()

    def stand() -> None:
        with turn(folder, alone, NEVER):
            order.append(name)
            go.wait(WAIT_S)

    thread = threading.Thread(target=stand)
    thread.start()
    until(lambda: last(folder) > before, "has a ticket")
    try:
        yield go
    finally:
        go.set()
        thread.join(WAIT_S)


def tickets(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("pool.queue/*.*"))


def last(folder: Path) -> int:
    return max((int(name.partition(".")[0]) for name in tickets(folder)), default=0)


def test_guests_share_and_who_measures_alone_has_his_turn_before_those_behind_him(tmp_path: Path) -> None:
    order: list[str] = []
    with (
        waiting(tmp_path, order, "guest", False) as first,
        waiting(tmp_path, order, "alone", True) as second,
        waiting(tmp_path, order, "later guest", False),
    ):
        until(lambda: order == ["guest"], "only the guest")
        assert tickets(tmp_path) == ["1.shared", "2.alone", "3.shared"]
        first.set()
        until(lambda: order == ["guest", "alone"], "then who was there next, though a guest came meanwhile")
        second.set()
        until(lambda: order == ["guest", "alone", "later guest"], "then the others")
    assert tickets(tmp_path) == []


def test_who_is_back_at_once_stands_behind_those_who_waited(tmp_path: Path) -> None:
    order: list[str] = []
    with waiting(tmp_path, order, "waits", True) as go:
        until(lambda: order == ["waits"], "it is his turn")
        with waiting(tmp_path, order, "next", True) as following:
            go.set()
            with waiting(tmp_path, order, "again", True):
                until(lambda: "next" in order, "it is the turn of the next")
                assert order == ["waits", "next"]
                following.set()
                until(lambda: order == ["waits", "next", "again"], "at last")


HOLDS = """import sys, threading
from pathlib import Path
from hpn.scenarios.batch.pool.queue import turn
with turn(Path(sys.argv[1]), True, threading.Event()):
    print("mine", flush=True)
    sys.stdin.read()"""


def test_the_ticket_of_who_was_killed_counts_no_more(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "mine\n"
    given_up = threading.Event()
    given_up.set()
    with turn(tmp_path, True, given_up):
        assert tickets(tmp_path) == ["1.alone", "2.alone"], "one who gave up did not wait, and took nothing away"
    process.kill()
    process.communicate()
    with turn(tmp_path, True, NEVER):
        assert tickets(tmp_path) == ["2.alone"]
