"""The register of labs: it touches nothing in its folder but labs; a supervisor that died is said in one line."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.service import control, preflight, registry
from hpn.testbed.lab.service.labfolder import hold_as_first
from hpn.testbed.routing.trace import Flow


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    base = tmp_path / "home"
    base.mkdir(mode=0o700)
    monkeypatch.setenv("HPN_STATE_DIR", str(base))
    return base


def test_only_folders_of_dead_labs_are_removed(home: Path) -> None:
    for name in ("projects", "empty", "dead", "locked"):
        (home / name).mkdir()
    (home / "projects" / "thesis.tex").write_text("years of work")
    (home / "locked" / "lock").touch()
    (home / "locked" / "photos").mkdir()
    (home / "dead" / "lock").touch()
    (home / "dead" / "lab.json").touch()
    assert list(registry.running()) == []
    assert sorted(path.name for path in home.iterdir()) == ["empty", "locked", "projects"]
    assert (home / "projects" / "thesis.tex").exists()


def test_a_name_under_which_something_else_lies_is_refused_and_nothing_is_deleted(home: Path) -> None:
    (home / "projects").mkdir()
    (home / "projects" / "thesis.tex").write_text("years of work")
    (home / "file").touch()
    with pytest.raises(InputError, match=r"no lab's folder .*'thesis.tex'.*choose another --name"):
        registry.folder("projects").claim()
    with pytest.raises(InputError, match=r"cannot use .*file .*choose another --name"):
        registry.folder("file").claim()
    assert (home / "projects" / "thesis.tex").exists()


def test_a_supervisor_that_dies_before_it_answers_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    listening = control.listen(path)
    listening.setblocking(True)

    def die() -> None:
        connection, _ = listening.accept()
        connection.recv(1)  # the rest is left unread: the client's connection is reset, not ended
        connection.close()

    dying = threading.Thread(target=die)
    dying.start()
    with pytest.raises(MachineError, match="broke off without an answer"):
        control.call(path, "inspect", what="x" * 100)
    dying.join()
    listening.close()
    with pytest.raises(MachineError, match="does not answer"):
        control.call(path, "inspect")


def test_what_a_supervisor_of_another_version_answers_is_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    listening = control.listen(path)
    listening.setblocking(True)

    def answer() -> None:
        connection, _ = listening.accept()
        connection.recv(4096)
        connection.sendall(b'{"ok": ["rows", "of", "old"]}\n')
        connection.close()

    answering = threading.Thread(target=answer)
    answering.start()
    with pytest.raises(MachineError, match="answers trace as no hpn of this version does; hpn down, then hpn up"):
        control.call_for_object(path, "trace", src="a", dst="b")
    answering.join()
    listening.close()


def test_a_trace_between_what_are_no_nics_names_the_nearest() -> None:
    fabric = build(PRESETS["tiny"].spec)
    lab = cast(Lab, SimpleNamespace(fabric=fabric, nics={}))
    for src, dst in (("p0.s0.h0", "p0.s1.h0.r0"), ("p0.s0.h0.r0", "x")):
        with pytest.raises(InputError, match=r"no NIC .*did you mean") as caught:
            Lab.path(lab, Flow(src, dst, 5))
        assert caught.value.exit_code == 2


async def test_garbage_on_the_control_socket_gets_an_answer(tmp_path: Path) -> None:
    async def ask(line: bytes) -> bytes:
        listening = control.listen(tmp_path / "control.sock")
        server = control.ControlServer({})
        await server.start(listening)
        reader, writer = await asyncio.open_unix_connection(tmp_path / "control.sock")
        writer.write(line + b"\n")
        answer = await reader.read()
        writer.close()
        server.close()
        (tmp_path / "control.sock").unlink(missing_ok=True)
        return answer

    for line in (b"garbage", b"\xff", b"[]", b'{"op": []}', b"[" * 100_000):
        assert b"does not know this request" in await ask(line), line[:20]


def _forked(body: Callable[[], object]) -> int:
    child = os.fork()
    if child == 0:
        try:
            body()
        finally:
            os._exit(0)
    return child


def test_a_name_whose_lab_just_died_can_be_taken(home: Path) -> None:
    """Its first process is gone, and with it who held the lock; the warden holds on for a moment."""
    (home / "tiny").mkdir()
    lock = os.open(home / "tiny" / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_EX)
    release = threading.Timer(0.3, os.close, [lock])
    release.start()
    os.close(registry.folder("tiny").claim())
    release.join()


def test_a_lab_of_another_version_counts_and_stands_in_nobodys_way(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its record and its fabric say what we do not know: its neighbours are counted all the same."""
    place = registry.folder("theirs")
    lock = place.claim()
    mine = build(PRESETS["tiny"].spec)
    need = preflight.neighbour_entries(mine)
    record = {"name": "theirs", "first_pid": 1, "topology": "tiny", "nodes": 9, "links": 9, "datapath": "nft"}
    told = {**record, "started_at": 0.0, "state": "up", "neighbours": 100, "colour": "blue"}
    (place.path / "lab.json").write_text(json.dumps(told))
    (place.path / "fabric.json").write_text('{"colour": "blue"}')
    try:
        assert [lab.neighbours for _, lab in registry.running()] == [100]
        monkeypatch.setattr(preflight, "neighbour_limit", lambda: need + 100)
        preflight.check(mine)
        monkeypatch.setattr(preflight, "neighbour_limit", lambda: need + 99)
        with pytest.raises(MachineError, match=f"would need {need + 100} neighbour entries"):
            preflight.check(mine)
        with pytest.raises(MachineError, match="another version of hpn started it; end it: hpn down theirs"):
            registry.fabric_of(place)
    finally:
        os.close(lock)


def test_a_supervisor_that_dies_in_the_middle_of_its_answer_is_one_line(tmp_path: Path) -> None:
    listening = control.listen(tmp_path / "control.sock")
    listening.setblocking(True)

    def half() -> None:
        connection, _ = listening.accept()
        connection.recv(1 << 16)
        connection.send(b'{"ok": [{"port": "p0.s0.h0:r0')
        connection.close()

    dying = threading.Thread(target=half)
    dying.start()
    with pytest.raises(control.SupervisorGone, match="broke off without an answer"):
        control.call(tmp_path / "control.sock", "inspect")
    dying.join()
    listening.close()


def test_a_supervisor_that_is_stopped_is_named_and_not_waited_for(home: Path) -> None:
    place = registry.folder("tiny")
    os.close(place.claim())
    listening = control.listen(place.socket)
    lock = os.open(place.path / "lock", os.O_RDWR | os.O_CLOEXEC)

    def stop() -> None:
        hold_as_first(lock)
        os.kill(os.getpid(), signal.SIGSTOP)

    first = _forked(stop)
    try:
        os.waitpid(first, os.WUNTRACED)
        with pytest.raises(
            MachineError, match=rf"lab tiny \(process {first}\) is stopped; .*kill -CONT.*hpn down tiny"
        ):
            control.call(place.socket, "inspect")
    finally:
        os.kill(first, signal.SIGKILL)
        os.waitpid(first, 0)
        listening.close()
        os.close(lock)


async def test_what_the_kernel_refuses_is_said_and_not_taken_for_a_death(tmp_path: Path) -> None:
    """``ip link del`` in a node, then ``hpn break``."""

    async def refuse(_request: control.Json, _emit: control.Emit) -> None:
        raise OSError(19, "p0.s0.h0: link (ifindex 17): No such device")

    server = control.ControlServer({"break": refuse})
    await server.start(control.listen(tmp_path / "control.sock"))
    try:
        with pytest.raises(MachineError, match=r"the kernel refuses: .*No such device; .*hpn down"):
            await asyncio.to_thread(control.call, tmp_path / "control.sock", "break")
    finally:
        server.close()


async def test_a_stream_ends_with_the_client_that_asked_for_it_and_other_work_is_finished(tmp_path: Path) -> None:
    """Or a lab that is watched on and off keeps a listener for everybody who ever looked."""
    begun, ended, finished, go_on = (asyncio.Event() for _ in range(4))

    async def stream(_request: control.Json, _emit: control.Emit) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def mend(_request: control.Json, _emit: control.Emit) -> None:
        begun.set()
        await go_on.wait()
        finished.set()

    server = control.ControlServer({"mend": mend}, streams={"events": stream})
    await server.start(control.listen(tmp_path / "control.sock"))
    try:
        async with asyncio.timeout(20):
            for op, then in (("events", ended), ("mend", finished)):
                begun.clear()
                _, writer = await asyncio.open_unix_connection(tmp_path / "control.sock")
                writer.write(json.dumps({"op": op}).encode() + b"\n")
                await begun.wait()
                writer.close()
                await writer.wait_closed()
                go_on.set()
                await then.wait()
    finally:
        server.close()


async def test_who_follows_is_told_that_the_lab_ends_before_it_does(tmp_path: Path) -> None:
    heard, ending = asyncio.Semaphore(0), asyncio.Event()

    async def stream(_request: control.Json, _emit: control.Emit) -> str:
        heard.release()
        await ending.wait()
        return "it is down"

    server = control.ControlServer({}, streams={"events": stream})
    await server.start(control.listen(tmp_path / "control.sock"))
    followers = [socket.socket(socket.AF_UNIX) for _ in range(3)]
    try:
        for each in followers:
            each.connect(str(tmp_path / "control.sock"))
            each.send(b'{"op": "events"}\n')
        for _ in followers:
            await heard.acquire()
        ending.set()
        await server.last_words()
        for each in followers:
            assert each.recv(100, socket.MSG_DONTWAIT) == b'{"ok": "it is down"}\n'
    finally:
        server.close()
        for each in followers:
            each.close()
