"""The machine's neighbour table raised for several labs, each of which may end first, or die."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel import neighbour_table
from hpn.testbed.kernel.neighbour_table import Machine, Raised, raise_to
from hpn.testbed.kernel.process import sandbox
from tests.kernel.limits import Limits, now, stand_in

LABS = Path("/labs")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Limits as a kernel has them by default, and nobody who has them raised."""
    return stand_in(tmp_path, (512, 1024), monkeypatch)


@pytest.fixture
def limits(machine: Machine) -> Limits:
    """gc_thresh2, gc_thresh3."""
    return machine.limits


@pytest.fixture
def record(machine: Machine) -> Path:
    """Where who has the limits raised is written."""
    return machine.record


def test_the_last_who_ends_puts_the_limits_back(limits: Limits) -> None:
    first = raise_to(3000, LABS)
    assert now(limits) == (6000, 12_000)
    second = raise_to(5000, LABS)
    assert now(limits) == (10_000, 20_000)
    first.release()
    assert now(limits) == (10_000, 20_000)
    first.release()
    second.release()
    assert now(limits) == (512, 1024)


def test_who_stays_keeps_what_it_needs(limits: Limits, tmp_path: Path) -> None:
    small, large = raise_to(600, LABS), raise_to(5000, LABS)
    large.release()
    assert now(limits) == (1200, 2400)
    small.release()
    assert now(limits) == (512, 1024)


def test_a_limit_that_is_high_enough_is_not_lowered(limits: Limits, tmp_path: Path) -> None:
    limits[1].write_text("100000")
    raised = raise_to(1000, LABS)
    assert now(limits) == (2000, 100_000)
    raised.release()
    assert now(limits) == (512, 100_000)


def test_one_that_died_without_a_word_holds_nothing(limits: Limits, tmp_path: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    lost = raise_to(9000, LABS)
    lost.belongs_to(dead.pid)
    living = raise_to(1000, LABS)
    living.release()
    assert now(limits) == (512, 1024), "what it was before the one that died"


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"before": "x", "holders": [1e999]}',
        '{"before": [0, 0], "holders": {}}',
        '{"before": [512, 1e999], "holders": {"a": [1, 1, 1, "/labs"]}}',
        '{"before": [512, 1024], "holders": {"a": [-1, 1, 1, "/labs"]}}',
        "[" * 60_000,
        "\xff" * 100,
    ],
    ids=lambda text: text[:20],
)
def test_a_damaged_record_is_begun_anew(limits: Limits, record: Path, text: str) -> None:
    record.parent.mkdir(mode=0o700)
    record.write_text(text)
    record.chmod(0o600)
    assert neighbour_table.unraised() is None
    raised = raise_to(1000, LABS)
    assert now(limits) == (2000, 4000)
    raised.release()
    assert now(limits) == (512, 1024)


def test_a_record_cut_short_over_a_longer_one_is_read(limits: Limits, record: Path) -> None:
    """Whoever wrote it was killed before it could cut off what was behind."""
    first, second = raise_to(1000, LABS), raise_to(2000, LABS)
    second.release()
    with record.open("a") as file:
        file.write('4]}}"')
    first.release()
    assert now(limits) == (512, 1024)


def _link(place: Path, elsewhere: Path) -> None:
    elsewhere.write_text("")
    place.symlink_to(elsewhere)


def _open_to_all(place: Path, _elsewhere: Path) -> None:
    place.touch()
    place.chmod(0o666)


def _linked_folder(place: Path, elsewhere: Path) -> None:
    place.parent.rmdir()
    elsewhere.mkdir(mode=0o700)
    place.parent.symlink_to(elsewhere)


@pytest.mark.parametrize(
    "plant",
    [
        _link,
        _open_to_all,
        _linked_folder,
        lambda place, _elsewhere: place.mkdir(),
        lambda place, _elsewhere: os.mkfifo(place, 0o600),
        lambda place, _elsewhere: place.parent.chmod(0o777),
    ],
    ids=["link", "open to all", "linked folder", "folder", "pipe", "folder open to all"],
)
def test_a_record_that_others_could_have_planted_is_refused(
    limits: Limits, record: Path, tmp_path: Path, plant: Callable[[Path, Path], None]
) -> None:
    record.parent.mkdir(mode=0o700)
    plant(record, tmp_path / "elsewhere")
    with pytest.raises(MachineError, match=r"not a file that only you may write.*remove it"):
        raise_to(1000, LABS)
    assert neighbour_table.unraised() is None
    assert now(limits) == (512, 1024)


def test_the_record_is_its_owners_alone(limits: Limits, record: Path) -> None:
    raised = raise_to(1000, LABS)
    assert (record.stat().st_mode & 0o777, record.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    raised.release()


def test_who_may_not_write_them_is_told(limits: Limits) -> None:
    limits[0].unlink()
    assert not neighbour_table.may_raise()
    with pytest.raises(MachineError, match="run as root"):
        raise_to(1000, LABS)


def test_labs_of_other_folders_count_besides(limits: Limits) -> None:
    """Those of one folder know of one another, and ask for as many as they need together."""
    ours, both = raise_to(1000, LABS), raise_to(3000, LABS)
    theirs = raise_to(2000, Path("/others"))
    assert now(limits) == (10_000, 20_000)
    both.release()
    assert now(limits) == (6000, 12_000)
    ours.release()
    assert now(limits) == (4000, 8000)
    theirs.release()
    assert now(limits) == (512, 1024)


def test_what_it_will_be_again_is_known_while_it_is_raised(limits: Limits) -> None:
    assert neighbour_table.unraised() is None
    raised = raise_to(1000, LABS)
    assert neighbour_table.unraised() == 512
    raised.release()
    assert neighbour_table.unraised() is None


def test_what_died_together_with_its_warden_is_put_back_and_the_rest_stays(limits: Limits) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    raise_to(9000, LABS).belongs_to(dead.pid)
    living = raise_to(1000, Path("/others"))
    raise_to(5000, LABS).belongs_to(dead.pid)
    neighbour_table.put_back()
    assert now(limits) == (2000, 4000)
    living.belongs_to(dead.pid)
    neighbour_table.put_back()
    assert now(limits) == (512, 1024)


def test_another_users_record_stops_nobody(limits: Limits, record: Path) -> None:
    held = raise_to(1000, LABS)
    record.parent.chmod(0)
    try:
        assert _as_another_user(neighbour_table.put_back) == 0
    finally:
        record.parent.chmod(0o700)
    held.release()
    assert now(limits) == (512, 1024)


def _as_another_user(action: Callable[[], None]) -> int:
    """The exit code of a process that does it; of root's own, one that is not root."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            action()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_what_nobody_raised_is_not_written(limits: Limits, record: Path) -> None:
    neighbour_table.put_back()
    assert not record.parent.exists()
    raise_to(1000, LABS).release()
    limits[0].write_text("700")  # by hand
    neighbour_table.put_back()
    assert now(limits) == (700, 1024)


def test_a_process_id_that_is_anothers_by_now_holds_nothing(limits: Limits, record: Path) -> None:
    lost = raise_to(9000, LABS)
    found = json.loads(record.read_text())
    found["holders"][lost.token][1] += 1  # started a tick later
    record.write_text(json.dumps(found))
    living = raise_to(1000, LABS)
    assert list(json.loads(record.read_text())["holders"]) == [living.token]
    living.release()
    assert now(limits) == (512, 1024)


def test_one_that_nobody_has_waited_for_holds_nothing(limits: Limits) -> None:
    """It is dead, but has its process ID still."""
    dead = subprocess.Popen(["true"])
    os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
    raise_to(9000, LABS).belongs_to(dead.pid)
    living = raise_to(1000, LABS)
    living.release()
    dead.wait()
    assert now(limits) == (512, 1024)


def test_limits_that_the_kernel_refuses_hold_nothing(
    limits: Limits, record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(_fd: int, _value: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(neighbour_table, "_write", refuses)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(MachineError, match=r"cannot raise the neighbour table's limit \(Invalid argument\)"):
        raise_to(1000, LABS)
    assert json.loads(record.read_text())["holders"] == {}
    assert len(os.listdir("/proc/self/fd")) == before, "no file is left open"


def test_after_sigkill_the_warden_leaves_the_others_what_they_need(limits: Limits) -> None:
    """It sees the sandbox's /proc, which shows no process of the machine, and has our descriptors."""
    staying = raise_to(600, Path("/others"))
    killed = raise_to(5000, LABS)
    reader, writer = os.pipe()

    def body() -> int:
        os.write(writer, b"x")
        signal.pause()
        return 0

    box = sandbox.spawn(body, detach=True, keep=[writer, *killed.files], afterwards=killed.release)
    killed.belongs_to(box.warden_pid)
    assert os.read(reader, 1) == b"x"
    assert now(limits) == (11_200, 22_400)
    os.kill(box.first_pid, signal.SIGKILL)
    box.wait()
    assert now(limits) == (1200, 2400)
    staying.release()
    assert now(limits) == (512, 1024)
    for fd in (reader, writer):
        os.close(fd)


def test_a_warden_waits_for_the_one_whose_files_it_has(limits: Limits) -> None:
    """A lock of the open file would be both processes'."""
    raised = raise_to(1000, LABS)
    with neighbour_table._recorded(raised.files):
        child = os.fork()
        if child == 0:
            os._exit(_is_locked(raised))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    raised.release()


def _is_locked(raised: Raised) -> bool:
    try:
        fcntl.lockf(raised.files.record, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
