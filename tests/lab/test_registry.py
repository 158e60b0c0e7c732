"""The register of labs: it touches nothing in its folder but labs; a supervisor that died is said in one line."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from testbed.errors import InputError, MachineError
from testbed.fabric.build import build
from testbed.fabric.presets import PRESETS
from testbed.lab import control, registry
from testbed.lab.lab import Lab
from testbed.routing.trace import Flow


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
    with pytest.raises(MachineError, match="supervisor went away"):
        control.call(path, "inspect", what="x" * 100)
    dying.join()
    listening.close()
    with pytest.raises(MachineError, match="does not answer"):
        control.call(path, "inspect")


def test_a_trace_between_what_are_no_nics_names_the_nearest() -> None:
    fabric = build(PRESETS["tiny"].spec)
    lab = cast(Lab, SimpleNamespace(fabric=fabric, nics={}))
    for src, dst in (("p0.s0.h0", "p0.s1.h0.r0"), ("p0.s0.h0.r0", "x")):
        with pytest.raises(InputError, match=r"no NIC .*did you mean") as caught:
            Lab.path(lab, Flow(src, dst, 5))
        assert caught.value.exit_code == 2


def test_garbage_on_the_control_socket_gets_an_answer(tmp_path: Path) -> None:
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
        assert b"does not know this request" in asyncio.run(ask(line)), line[:20]
