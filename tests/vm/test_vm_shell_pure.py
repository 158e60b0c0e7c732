"""``hpn vm shell`` without a guest: what is refused, what is told to one."""

from __future__ import annotations

import os
import pty
import sys
from pathlib import Path

import pytest

from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.vm import shell
from hpn.testbed.vm.guest import Terminal
from hpn.testbed.vm.qemu_initrd import TERMINAL, script
from hpn.testbed.vm.terminal import ESCAPE, EscapeKeys


def test_ctrl_bracket_three_times_within_a_second_leaves() -> None:
    keys = EscapeKeys()
    assert [keys.complete(ESCAPE, now) for now in (0.0, 0.9, 1.5, 1.8)] == [False, False, False, True]
    assert EscapeKeys().complete(b"ls" + 3 * ESCAPE, 5.0)
    assert not EscapeKeys().complete(ESCAPE + b"x" + 2 * ESCAPE, 5.0)


def test_a_shell_needs_a_terminal(tmp_path: Path) -> None:
    with (tmp_path / "no-terminal").open("w+") as file, pytest.raises(InputError, match="hpn vm shell -- COMMAND"):
        shell.run((), None, False, print, file.fileno(), file.fileno())


def test_nobody_types_in_virtual_time() -> None:
    master, slave = pty.openpty()
    try:
        with pytest.raises(InputError, match="nobody can type in virtual time"):
            shell.run((), None, True, print, slave, slave)
    finally:
        os.close(master)
        os.close(slave)


def test_virtual_time_is_for_uml_only() -> None:
    with pytest.raises(InputError, match="--virtual-time needs --engine uml-virtual-time"):
        shell.choose("qemu", virtual_time=True)


def test_the_first_engine_that_can_boot_is_taken_and_every_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(self: object) -> None:
        raise MachineError(f"no {type(self).__name__}")

    monkeypatch.setattr("hpn.testbed.vm.uml.Uml.check", absent)
    monkeypatch.setattr("hpn.testbed.vm.qemu.Qemu.check", lambda _self: None)
    assert shell.choose(None).name == "qemu"
    monkeypatch.setattr("hpn.testbed.vm.qemu.Qemu.check", absent)
    with pytest.raises(MachineError, match="no Uml; or no Qemu"):
        shell.choose(None)


def test_hpn_is_found_first_and_labs_are_the_guests_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/somewhere")
    job = shell.job(("true",))
    path = job.environment["PATH"].split(":")
    assert path[:2] == [str(Path(sys.executable).parent), "/somewhere"]
    assert "/usr/sbin" in path
    assert job.environment["HPN_STATE_DIR"] == "/run/hpn-state"
    assert (job.cwd, job.writable) == (tmp_path, (tmp_path,))


@pytest.mark.parametrize(
    ("folder", "shared"),
    [("/", False), ("/run", False), ("/dev/shm", False), ("/sys/kernel", False), ("/tmp", True), ("/dev/shm/x", True)],
)
def test_a_guest_keeps_its_own_folders(folder: str, shared: bool) -> None:
    assert shell.can_be_shared(Path(folder)) is shared


def test_the_qemu_guest_gives_the_command_a_terminal_of_the_users_size() -> None:
    text = script(("bash",), Path("/a b"), {"A": "it's"}, Path("/exit"), Terminal(3, 33, 111))
    assert "rows 33 columns 111" in text
    assert f"<> {TERMINAL}" in text
    assert "cd '/a b' && setsid --wait --ctty sh -c" in text
