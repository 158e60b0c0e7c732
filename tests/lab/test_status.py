"""What a running lab says is wrong with it; and whoever follows it, of its end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from hpn.testbed.condition import Condition
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.lab.service import control, status
from hpn.testbed.lab.service.manual_faults import break_part, mend_part
from tests.lab.running import Recorder, running, tiny

LINK, TOR = "p0.s0.h0.r0.0", "p0.s1.t0.0"
SMALL = tiny(rails=1, aggs=1, hosts=1)


def _is_well(found: Condition) -> bool:
    return found == Condition(found.at_ns, events=found.events, busy_ns=found.busy_ns)


@pytest.mark.kernel
async def test_the_condition_of_a_lab_names_what_is_broken_and_nothing_else() -> None:
    async with running(SMALL) as lab:
        counts = status.EventCounts(lab.fabric)
        lab.subscribe(counts.count)
        found = await status.condition(lab, counts)
        assert _is_well(found)
        assert status.from_json(status.as_json(found)) == found
        break_part(lab, LINK)
        ends = (lab.fabric.link(LINK).lower, lab.fabric.link(LINK).upper)
        await lab.wait_for(lambda: not any(lab.watcher.carrier(end.node, end.ifindex) for end in ends), 10)
        await lab.wait_for(lambda: len(lab.nics["p0.s0.h0.r0"].active) == 1, 10)
        await lab.wait_for(lambda: not lab.tors["p0.s0.t0.0"].collecting("h0r0"), 10)
        found = await status.condition(lab, counts)
        assert (found.broken, found.dead, found.active) == ((LINK,), (), {"p0.s0.h0.r0": 1})
        assert set(found.dark) == {"p0.s0.h0:r0p0", "p0.s0.t0.0:h0r0"} == set(found.idle)
        assert found.events["fault"] == {"injected": {"0": 1}}
        assert found.events["link"]["carrier-down"] == {"": 1, "0": 1}
        await mend_part(lab, LINK)
        await lab.converged(30)
        assert _is_well(await status.condition(lab, counts))


@pytest.mark.kernel
async def test_a_daemon_that_dies_by_itself_is_dead_and_not_broken() -> None:
    events = Recorder()
    async with running(SMALL, events) as lab:
        os.kill(next(iter(lab.bgp[TOR].pids)), signal.SIGKILL)
        async with asyncio.timeout(20):
            while lab.bgp[TOR].running or len(lab.bgp["p0.a0.0"].established) > 1:
                await asyncio.sleep(0.01)
        found = await status.condition(lab, status.EventCounts(lab.fabric))
        assert (found.broken, found.dead) == ((), (TOR,))
        assert {"p0.s1.t0.0:up0", "p0.a0.0:s1r0t0"} <= set(found.sessions_down)
        assert found.dark == ()


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[socket.socket]:
    """A control socket on which somebody listens who will say what a test has him say."""
    listening = control.listen(tmp_path / "control.sock")
    listening.setblocking(True)
    yield listening
    listening.close()


def _saying(listening: socket.socket, words: bytes) -> threading.Thread:
    def serve() -> None:
        connection, _ = listening.accept()
        connection.recv(1000)
        connection.sendall(words)
        connection.close()

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        (b'{"event": {"kind": "link"}}\n', control.SupervisorGone, "broke off"),
        (b'{"event": {"kind": "link"}}\n{"event": {"ki', control.SupervisorGone, "broke off"),
        (b'{"event": {"kind": "link"}}\n{"error": "no", "exit_code": 2}\n', InputError, "no"),
        (b'{"event": {"kind": "link"}}\n{"ok": null}\n', None, ""),
    ],
    ids=["died", "died in a word", "refused", "ended"],
)
def test_who_follows_a_lab_learns_at_once_how_it_ended(
    supervisor: socket.socket, tmp_path: Path, words: bytes, error: type[Exception] | None, said: str
) -> None:
    thread = _saying(supervisor, words)
    heard: list[object] = []
    with nullcontext() if error is None else pytest.raises(error, match=said):
        for events in control.follow(tmp_path / "control.sock", "events", lambda: 20.0):
            heard += events
    thread.join()
    assert heard == [{"kind": "link"}]


def test_a_lab_that_says_nothing_is_followed_on(supervisor: socket.socket, tmp_path: Path) -> None:
    followed = control.follow(tmp_path / "control.sock", "events", lambda: 0.0)
    assert [next(followed), next(followed)] == [[], []]


@pytest.mark.parametrize("told", [None, [], {"at_ns": "x"}, {"at_ns": 1, "idle": {"p": 3}}])
def test_another_version_s_supervisor_is_named(told: control.JsonValue) -> None:
    with pytest.raises(MachineError, match="no hpn of this version"):
        status.from_json(told)
