"""The pool of this machine: as many at a time as its cores carry, each task once, whatever its process does."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest

from hpn.scenarios.batch.pool import attempt as attempts
from hpn.scenarios.batch.pool.attempt import Attempt, Ended
from hpn.scenarios.batch.pool.choose import pool_for
from hpn.scenarios.batch.pool.processes import Processes
from hpn.scenarios.batch.pool.scratch import taken
from hpn.scenarios.batch.pool.sent_files import Files
from hpn.scenarios.batch.pool.task import LOSSES, MADE, OUTPUT, Task
from hpn.scenarios.run.remote_task import RemoteTask
from hpn.testbed.errors import InputError, MachineError
from tests.product.hpn import until

WAIT_S = 20


def tasks(*names: str, cores: int | None = 1, again: bool = True) -> list[Task]:
    return [Task(name, RemoteTask("none", "host"), cores, again=again) for name in names]


@dataclass
class Scripted:
    """Attempts that are functions of a task and the folder for what it makes."""

    codes: dict[str, list[int]] = field(default_factory=dict)
    begun: list[str] = field(default_factory=list)
    busy: int = 0
    most: int = 0
    meet: threading.Barrier | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def attempt(self) -> Attempt:
        outer = self

        class One(Attempt):
            def run(self, task: Task, folder: Path) -> Ended:
                return outer.one(task, folder)

        return One()

    def one(self, task: Task, folder: Path) -> Ended:
        with self.lock:
            self.begun.append(task.name)
            self.busy += 1 if task.cores is None else task.cores or 2
            self.most = max(self.most, self.busy)
            codes = self.codes.get(task.name, [0])
            code = codes.pop(0) if len(codes) > 1 else codes[0]
        if self.meet is not None and task.cores == 1:
            self.meet.wait(WAIT_S)  # BrokenBarrierError unless two of these run side by side
        (folder / MADE).mkdir()
        (folder / MADE / "result").write_text(f"{task.name} {code}")
        with self.lock:
            self.busy -= 1 if task.cores is None else task.cores or 2
        return Ended(code)


def pool(script: Scripted, below: Path, width: int = 2, cores: int = 2) -> Processes:
    return Processes(width, below, cores, script.attempt)


def test_every_task_comes_back_once_with_what_it_made_and_nothing_is_left(tmp_path: Path) -> None:
    found = {}
    for done in pool(Scripted(), tmp_path, 3, 3).run(iter(tasks(*"abcdefg"))):
        found[done.task.name] = (done.folder / "result").read_text()
    assert found == {name: f"{name} 0" for name in "abcdefg"}
    assert list(tmp_path.iterdir()) == []


def test_while_none_ends_each_that_runs_is_told_with_what_it_printed_last(tmp_path: Path) -> None:
    """A task ends when it has been told of twice."""
    heard: list[tuple[str, str]] = []
    told_twice = threading.Event()

    class Slow(Attempt):
        def run(self, task: Task, folder: Path) -> Ended:
            (folder / MADE).mkdir()
            (folder / MADE / OUTPUT).write_text("starting\n  2.3 of 6.0 s\n\n")
            return Ended(0 if told_twice.wait(WAIT_S) else 1)

    def on_wait(task: Task, line: str) -> None:
        heard.append((task.name, line))
        if len(heard) >= 4:
            told_twice.set()

    pool = Processes(2, tmp_path, 2, Slow, on_wait, every_s=0.1)
    assert {done.code for done in pool.run(tasks("a", "b"))} == {0}
    assert set(heard[2:]) == {("a", "2.3 of 6.0 s"), ("b", "2.3 of 6.0 s")}


def test_tasks_share_the_machine_only_as_far_as_its_cores_go(tmp_path: Path) -> None:
    script = Scripted(meet=threading.Barrier(2))
    wanted = [*tasks("x", "y", cores=0), *tasks("a", "b", cores=1)]
    log: list[str] = []
    for done in pool(script, tmp_path).run(wanted, lambda task, _where: log.append(f"begin {task.name}")):
        log.append(f"end {done.task.name}")
    assert log[:6] == ["begin x", "end x", "begin y", "end y", "begin a", "begin b"]
    assert sorted(log[6:]) == ["end a", "end b"]


def test_tasks_that_share_their_cores_are_bounded_by_the_width_alone(tmp_path: Path) -> None:
    script = Scripted()
    list(pool(script, tmp_path, width=4, cores=1).run(tasks("a", "b", "c", "d", cores=None)))
    assert len(script.begun) == 4


def test_the_width_bounds_it_further(tmp_path: Path) -> None:
    begun: list[str] = []
    running = pool(Scripted(), tmp_path, width=1, cores=8).run(tasks("a", "b"), lambda task, _: begun.append(task.name))
    next(running)
    assert begun == ["a"]
    assert [done.task.name for done in running] == ["b"]


def test_a_task_may_follow_from_what_became_of_another(tmp_path: Path) -> None:
    queue = tasks("first")

    def coming() -> Iterator[Task]:
        while queue:
            yield queue.pop()

    names = []
    for done in pool(Scripted(), tmp_path, width=1).run(coming()):
        names.append(done.task.name)
        if len(names) == 1:
            queue.extend(tasks("second"))
    assert names == ["first", "second"]


def test_a_task_whose_process_was_killed_is_run_again_from_the_start(tmp_path: Path) -> None:
    script = Scripted({"a": [-9, -15, 0]})
    (done,) = pool(script, tmp_path).run(tasks("a"))
    assert (done.code, done.error, script.begun) == (0, "", ["a"] * 3)


def test_a_task_that_kills_every_process_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    script = Scripted({"poison": [-9]})
    found = {done.task.name: done for done in pool(script, tmp_path).run(tasks("poison", "b"))}
    assert script.begun.count("poison") == LOSSES
    assert found["poison"].code == 3
    assert found["poison"].error.startswith("poison: killed by a signal, 3 times, and is not tried again")
    assert (found["b"].code, found["b"].error) == (0, "")


def test_a_lab_s_crash_is_an_answer(tmp_path: Path) -> None:
    (done,) = pool(script := Scripted({"a": [-9]}), tmp_path).run(tasks("a", again=False))
    assert (done.code, script.begun) == (-9, ["a"])


def test_what_a_killed_command_left_is_cleared_away_and_nobody_else_can_make_runs_there_meanwhile(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    out = tmp_path / "out"
    (out / ".hpn-pool-old" / "x").mkdir(parents=True)
    (out / ".hpn-pool-link").symlink_to(tmp_path / "mine")
    (out / "link-down").mkdir()
    (tmp_path / "other-name").symlink_to(out)
    with pool_for(out, 1):
        assert sorted(path.name for path in out.iterdir()) == [".hpn-pool-link", "link-down"]
        (out / ".hpn-pool-living").mkdir()
        for name in ("out", "other-name"):
            with (
                pytest.raises(InputError, match=f"another hpn makes runs in .*{name}; wait for it, or choose"),
                pool_for(tmp_path / name, 1),
            ):
                pytest.fail("two at once")
        assert (out / ".hpn-pool-living").is_dir()
    with pool_for(out, 1):
        assert not (out / ".hpn-pool-living").exists()
    assert (tmp_path / "mine" / "thesis.tex").exists()


def test_a_folder_that_vanishes_ends_all_that_runs_in_it_by_name(tmp_path: Path) -> None:
    class Vandal(Scripted):
        def one(self, task: Task, folder: Path) -> Ended:
            ended = super().one(task, folder)
            shutil.rmtree(tmp_path / "out")
            return ended

    script = Vandal()

    def run() -> None:
        with taken(tmp_path / "out"):
            for done in pool(script, tmp_path / "out", 1).run(tasks("a", "b")):
                pytest.fail(f"of {done.task.name} nothing is left")

    with pytest.raises(MachineError, match="/out was deleted or moved during the run; run it again, and leave that"):
        run()
    assert script.begun == ["a"]
    assert list(tmp_path.iterdir()) == [], "nothing was left behind"


def test_where_folders_cannot_be_locked_nothing_is_cleared_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As NFS does."""

    def flock(_number: int, _how: int) -> None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr(fcntl, "flock", flock)
    (tmp_path / ".hpn-pool-perhaps-living").mkdir()
    with pool_for(tmp_path, 1) as first, pool_for(tmp_path, 1):
        assert first.width == 1
    assert (tmp_path / ".hpn-pool-perhaps-living").is_dir()


def test_a_place_where_nothing_can_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot work in .*; choose another --out"):
        list(pool(Scripted(), tmp_path / "file").run(tasks("a")))


SLEEPS = "import sys, time; print('up', flush=True); time.sleep(600)"
DEAF = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); {SLEEPS}"


def script(monkeypatch: pytest.MonkeyPatch, program: str) -> list[subprocess.Popen[bytes]]:
    """Has every job be this program; the processes."""
    started: list[subprocess.Popen[bytes]] = []

    def beside(
        _job: RemoteTask, output: IO[bytes], folder: Path, environment: Mapping[str, str], *, own_session: bool
    ) -> subprocess.Popen[bytes]:
        process: subprocess.Popen[bytes] = subprocess.Popen(
            [sys.executable, "-c", program],
            stdout=output,
            cwd=folder,
            start_new_session=own_session,
            env={**os.environ, **environment},
        )
        started.append(process)
        return process

    monkeypatch.setattr(attempts, "beside", beside)
    return started


@pytest.mark.parametrize(("program", "heal_s", "code"), [(SLEEPS, 20.0, -2), (DEAF, 0.1, -9)])
def test_an_attempt_is_ended_as_by_ctrl_c_and_killed_when_it_does_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, heal_s: float, code: int
) -> None:
    monkeypatch.setattr(attempts, "HEAL_S", heal_s)
    started = script(monkeypatch, program)
    attempt = Attempt()
    thread = threading.Thread(target=lambda: attempt.run(tasks("a")[0], _empty(tmp_path)))
    thread.start()
    until(lambda: b"up" in _said(tmp_path), "the process is up")
    attempt.end()
    attempt.end()
    thread.join(WAIT_S)
    assert [process.returncode for process in started] == [code]


LISTS = """import os, pathlib
for folder in filter(None, os.environ.get('HPN_PLUGINS', 'none').split(':')):
    print(*sorted(str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob('*.*')))"""


@pytest.mark.parametrize(
    ("plugged", "said"),
    [(None, b"\n"), ((), b""), (({"a.py": b"1", "x/y.csv": b""}, {}, {"b.py": b"2"}), b"a.py x/y.csv\n\nb.py\n")],
)
def test_an_attempt_has_the_plug_ins_that_came_along_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugged: Sequence[Files] | None, said: bytes
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.setenv("HPN_PLUGINS", str(tmp_path / "here"))
    script(monkeypatch, LISTS)
    assert Attempt(plugged).run(tasks("a")[0], _empty(tmp_path)).code == 0
    assert _said(tmp_path) == said


def _empty(folder: Path) -> Path:
    (folder / "attempt").mkdir()
    return folder / "attempt"


def _said(folder: Path) -> bytes:
    path = folder / "attempt" / MADE / OUTPUT
    return path.read_bytes() if path.exists() else b""


def test_a_task_has_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(monkeypatch, SLEEPS)
    slow = Task("slow", RemoteTask("none", "host"), timeout_s=0.2)
    (done,) = Processes(1, tmp_path).run([slow])
    assert (done.hung, done.code, done.error) == (True, 3, "slow hung for 0 s, and was ended")


def test_ctrl_c_ends_the_processes_of_a_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = script(monkeypatch, SLEEPS)

    def interrupt(_task: Task, _where: str) -> None:
        if len(started) == 1:
            raise KeyboardInterrupt

    def coming() -> Iterator[Task]:
        yield from tasks("a")
        until(
            lambda: any(path.read_bytes() for path in tmp_path.glob(f".hpn-pool-*/*/{MADE}/{OUTPUT}")),
            "the first is up",
        )
        yield from tasks("b")

    with pytest.raises(KeyboardInterrupt):
        list(Processes(2, tmp_path, 2).run(coming(), interrupt))
    assert [process.returncode for process in started] == [-signal.SIGINT]
    assert list(tmp_path.iterdir()) == []
