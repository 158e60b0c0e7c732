"""Labs whose folder somebody has removed: seen, in nobody's way but of their own name, and ended like any other."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.lab.service import preflight, registry, supervisor
from tests.kernel.limits import now, stand_in
from tests.product.hpn import Hpn, end_what_is_left, processes_of, skip_without_sandbox


@pytest.fixture
def hpn(tmp_path: Path) -> Iterator[Hpn]:
    skip_without_sandbox()
    made = Hpn(tmp_path)
    yield made
    end_what_is_left(made)


def _its_folder(labs: Path) -> None:
    shutil.rmtree(labs / "tiny")


def _every_folder(labs: Path) -> None:
    shutil.rmtree(labs)


def _its_lock(labs: Path) -> None:
    (labs / "tiny" / "lock").unlink()


@pytest.mark.parametrize("remove", [_its_folder, _every_folder, _its_lock])
def test_a_lab_whose_folder_was_removed_is_listed_keeps_its_name_and_is_ended(
    hpn: Hpn, remove: Callable[[Path], None]
) -> None:
    pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
    hpn.run("up", "tiny", "--metrics", "0")
    (before,) = hpn.labs()
    remove(hpn.state / "labs")
    (lab,) = hpn.labs()
    said = f"somebody removed its folder {hpn.state / 'labs' / 'tiny'}, or the lock in it; end it: hpn down tiny"
    assert lab == before | {"state": "lost", "reason": said}
    assert said in hpn.run("up", "tiny", code=2)
    assert said in hpn.run("exec", "p0.s0.h0", "--", "true", code=2)
    assert said in hpn.run("inspect", "bgp", "--lab", "tiny", code=2)
    assert "lab tiny is down" in hpn.run("down", "tiny")
    assert processes_of(hpn.state) == []
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", urlsplit(str(before["metrics"])).port or 0))
    assert hpn.labs() == []
    assert os.listdir(hpn.state / "labs") == []
    assert "lab tiny is not up" in hpn.run("down", "tiny")


def test_a_lost_lab_of_another_state_directory_is_neither_shown_nor_ended(hpn: Hpn, tmp_path: Path) -> None:
    """Nor one whose name is that of a lab here."""
    (tmp_path / "other").mkdir()
    other = Hpn(tmp_path / "other")
    hpn.run("up", "tiny")
    _every_folder(hpn.state / "labs")
    assert other.labs() == []
    assert "lab tiny is not up" in other.run("down", "tiny")
    assert "no lab is up" in other.run("down", "--all")
    other.run("up", "tiny")
    other.run("down", "tiny")
    assert [lab["state"] for lab in hpn.labs()] == ["lost"]


def test_a_lost_lab_gives_its_name_back_and_what_lies_there_by_now_is_left_alone(hpn: Hpn) -> None:
    hpn.run("up", "tiny")
    _its_folder(hpn.state / "labs")
    thesis = hpn.state / "labs" / "tiny" / "thesis.tex"
    thesis.parent.mkdir()
    thesis.write_text("years of work")
    assert "lab tiny is down" in hpn.run("down")
    assert thesis.read_text() == "years of work"
    shutil.rmtree(thesis.parent)
    hpn.run("up", "tiny")
    assert [lab["state"] for lab in hpn.labs()] == ["up"]


def test_the_neighbour_table_is_put_back_by_the_end_of_a_lost_lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_without_sandbox()
    limits = stand_in(tmp_path, (16, 32), monkeypatch).limits
    monkeypatch.setattr(preflight, "neighbour_limit", lambda: int(limits[0].read_text()))
    monkeypatch.setenv("HPN_STATE_DIR", str(tmp_path / "labs"))
    fabric = load_fabric("tiny")
    request = supervisor.Request("tiny", "tiny", fabric, raise_neighbours=True)
    watch = os.pidfd_open(supervisor.launch(request, lambda _event: None).first_pid)
    try:
        assert now(limits) == (48, 96)
        shutil.rmtree(tmp_path / "labs")
        shutil.rmtree(tmp_path / "machine")  # the record; root has both in one folder
        assert preflight.entries_wanted(fabric) == 48, "the lost one's are still in the table"
    finally:
        for place, _ in list(registry.everything()):
            supervisor.stop(place)
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(watch, signal.SIGKILL)
        os.close(watch)
    assert now(limits) == (16, 32)
