"""The register of labs: it touches nothing in its folder but labs; a supervisor that died is said in one line."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from testbed.errors import InputError, MachineError
from testbed.lab import control, registry


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
