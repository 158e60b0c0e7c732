"""The pool of other machines: what is lost is run again, comes home once, and who takes workers down is named."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("distributed")

import dask
import distributed

from hpn.scenarios.batch.pool import cluster as module
from hpn.scenarios.batch.pool import queue as turns
from hpn.scenarios.batch.pool import worker as far_end
from hpn.scenarios.batch.pool.attempt import Attempt, Ended
from hpn.scenarios.batch.pool.choose import address_of, pool_for
from hpn.scenarios.batch.pool.cluster import Cluster
from hpn.scenarios.batch.pool.task import MADE, OUTPUT, Done, Task
from hpn.scenarios.run.remote_task import RemoteTask
from hpn.testbed.errors import InputError, MachineError
from tests.product.hpn import until

WAIT_S = 20
Does = Callable[[Task, Path, str], int]
pytestmark = pytest.mark.timeout(120)


def tasks(*names: str) -> list[Task]:
    return [Task(name, RemoteTask("none", "host")) for name in names]


@contextmanager
def standing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, workers: int, does: Does | None = None, allowed_failures: int = 0
) -> Iterator[Cluster]:
    """A pool of workers that are threads of this process; ``does`` in the place of a job's process."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HPN_STATE_DIR", str(folder / "state"))
    monkeypatch.setattr(module, "_LOOK_S", 0.1)
    monkeypatch.setattr(far_end, "code_digest", lambda: "of this machine")
    monkeypatch.setattr(module, "code_digest", lambda: "of this machine")

    def run(_self: Attempt, task: Task, below: Path) -> Ended:
        (below / MADE).mkdir()
        return Ended(does(task, below / MADE, distributed.get_worker().address) if does else 0)

    monkeypatch.setattr(Attempt, "run", run)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": allowed_failures}),
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=False, dashboard_address=None
        ) as local,
        Cluster(local.scheduler_address, folder / "out") as pool,
    ):
        monkeypatch.setattr(pool, "lose", lambda address: _lose(local, address), raising=False)
        yield pool


def _lose(local: distributed.LocalCluster, address: str) -> None:
    """As when a machine is gone: the scheduler does not hear of that worker any more, whatever it still does."""
    assert local.scheduler is not None
    local.sync(local.scheduler.remove_worker, address, stimulus_id="lost", expected=False, close=False)


def says(task: Task, folder: Path, where: str) -> int:
    (folder / OUTPUT).write_text(f"{task.name}\n")
    (folder / task.name).mkdir()
    (folder / task.name / "manifest.json").write_text(where)
    return 4


def origin(done: Done) -> str:
    """Where it was made."""
    return (done.folder / done.task.name / "manifest.json").read_text()


def test_every_task_comes_home_with_its_folder_and_says_who_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    found = {}
    with standing(tmp_path, monkeypatch, 2, says) as pool:
        assert (pool.width, pool.far) == (2, True)
        for done in pool.run(tasks(*"abc"), lambda task, where: begun.append(f"{task.name} {where}")):
            where = origin(done)
            found[done.task.name] = where
            assert (done.code, (done.folder / OUTPUT).read_text()) == (4, f"{done.task.name}\n")
    assert sorted(found) == ["a", "b", "c"]
    assert set(begun) <= {f"{name} {where}" for name, where in found.items()}
    assert list((tmp_path / "out").iterdir()) == []


def test_an_answer_that_is_lost_with_its_worker_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task has ended, and the worker that has its answer is gone: dask makes it once more."""
    answer, late = module._Work._answer, list[str]()

    def slow(work: module._Work, task: Task, future: module.Future) -> Done | None:
        if task.name == "a" and len(late) < 2:
            late.append(task.name)
            raise TimeoutError
        return answer(work, task, future)

    monkeypatch.setattr(module._Work, "_answer", slow)
    with standing(tmp_path, monkeypatch, 1, says) as pool:
        assert sorted((done.task.name, done.code) for done in pool.run(tasks("a", "b"))) == [("a", 4), ("b", 4)]
    assert late == ["a", "a"]


def test_plug_ins_of_this_command_go_to_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "dim.py").write_text("mine")
    seen: list[object] = []
    init = Attempt.__init__

    def look(attempt: Attempt, plugged: object = None) -> None:
        seen.append(plugged)
        init(attempt)

    monkeypatch.setattr(Attempt, "__init__", look)
    for named in ("", str(tmp_path / "own")):
        monkeypatch.setenv("HPN_PLUGINS", named)
        with standing(tmp_path, monkeypatch, 1) as pool:
            list(pool.run(tasks("a")))
    assert seen == [(), ({"dim.py": b"mine"},)]


def test_one_of_three_workers_is_lost_and_its_task_comes_home_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lost worker goes on, as one behind a cut does: what it makes is nobody's."""
    attempts: list[tuple[str, str]] = []
    lost, go = threading.Event(), threading.Event()

    def does(task: Task, folder: Path, where: str) -> int:
        attempts.append((task.name, where))
        if task.name == "a" and len([name for name, _ in attempts if name == "a"]) == 1:
            lost.set()
            go.wait(WAIT_S)
        return says(task, folder, where)

    with standing(tmp_path, monkeypatch, 3, does) as pool:

        def cut() -> None:
            lost.wait(WAIT_S)
            pool.lose(next(where for name, where in attempts if name == "a"))  # type: ignore[attr-defined]  # planted

        killer = threading.Thread(target=cut)
        killer.start()
        homes = [
            (d.task.name, (d.folder / d.task.name / "manifest.json").read_text()) for d in pool.run(tasks(*"abcdef"))
        ]
        go.set()
        killer.join()
    assert sorted(name for name, _ in homes) == list("abcdef")
    first, second = [where for name, where in attempts if name == "a"]
    assert dict(homes)["a"] == second != first


@pytest.mark.parametrize(("allowed_failures", "times"), [(0, 3), (3, 3), (4, 4)])
def test_a_task_that_takes_its_workers_down_is_named_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed_failures: int, times: int
) -> None:
    """After three, whatever dask counts; after more when its scheduler is set so."""
    places: list[str] = []
    heard: list[object] = []
    looks: list[object] = []
    end = threading.Event()
    hear, look = module._Work.hear, module._Work._given_up

    def listen(work: module._Work, event: object) -> None:
        hear(work, event)
        heard.extend([event] if "poison" in str(event) else [])

    monkeypatch.setattr(module._Work, "hear", listen)

    def note(work: module._Work) -> Iterator[Done]:
        looks.append(work)
        return look(work)

    monkeypatch.setattr(module._Work, "_given_up", note)

    def does(task: Task, folder: Path, where: str) -> int:
        if task.name == "poison":
            places.append(where)
            until(lambda: len(heard) == len(places), "the pool knows who has it")
            before = len(looks)
            until(lambda: len(looks) > before + 1 or end.is_set(), "and has looked whether it is given up")
            if len(places) <= times:
                pool.lose(where)  # type: ignore[attr-defined]  # planted
            end.wait(WAIT_S)
        return says(task, folder, where)

    with standing(tmp_path, monkeypatch, 6, does, allowed_failures) as pool:
        found = {}
        for done in pool.run(tasks("poison", "b", "c")):
            found[done.task.name] = (done.code, done.error)
        end.set()
    assert found.keys() == {"poison", "b", "c"}
    code, error = found["poison"]
    assert code == 3
    assert error.startswith(f"poison: lost with the worker that ran it, {times} times (inproc://")
    assert len(places) - times in ((0, 1) if allowed_failures else (0,)), "the next may begin before it is given up"
    assert all(where in error for where in places[:times])
    assert [found[name] for name in "bc"] == [(4, "")] * 2


def test_a_process_that_is_killed_there_is_run_again_and_named_at_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with standing(tmp_path, monkeypatch, 1, lambda *_: -9) as pool:
        (done,) = pool.run(tasks("a"))
        ((crash,)) = [each.code for each in pool.run([Task("lab", RemoteTask("none", "host"), again=False)])]
    assert (done.code, done.error.partition(" (")[0]) == (3, "a: lost with the worker that ran it, 3 times")
    assert crash == -9, "a lab's crash is an answer"


def test_workers_with_another_version_are_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When it begins, and later. The worker shares our code here: so what the pool noted is changed."""
    with standing(tmp_path, monkeypatch, 1) as pool:
        (worker,) = pool.client.nthreads()
        monkeypatch.setattr(pool, "digest", "of another version")
        with pytest.raises(MachineError, match=f"the worker at {re.escape(worker)} has no hpn or another version"):
            pool.examine()
        (done,) = pool.run(tasks("a"))
    assert (done.code, f"the worker at {worker} has no hpn or another version" in done.error) == (3, True)


def test_what_is_no_run_is_told_and_nothing_of_it_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with standing(tmp_path, monkeypatch, 1) as pool:
        monkeypatch.setattr(module, "run_task", lambda *_: "fine")
        (done,) = pool.run(tasks("a"))
        assert done.error == "a worker of the scheduler answered 'fine', which is no run"
        monkeypatch.setattr(module, "run_task", lambda *_: far_end.Packed(0, False, 1.0, b"no archive"))
        (done,) = pool.run(tasks("a"))
        assert "nothing that hpn packs" in done.error
        assert done.code == 3


def test_a_scheduler_without_any_worker_left_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with standing(tmp_path, monkeypatch, 1) as pool:
        monkeypatch.setattr(module, "_PATIENCE", 1)
        pool.client.retire_workers(list(pool.client.nthreads()))
        with pytest.raises(MachineError, match="lost all workers"):
            list(pool.run(tasks("a")))


def test_a_scheduler_that_goes_while_it_is_asked_is_told_as_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> None:
        raise distributed.comm.core.CommClosedError("in TCP: Connection reset by peer")

    with standing(tmp_path, monkeypatch, 1) as pool:
        monkeypatch.setattr(pool.client, "nthreads", gone)
        with pytest.raises(MachineError, match=r"the scheduler at .* is gone; start it and its workers again"):
            list(pool.run(tasks("a")))


def test_a_pool_that_is_closed_early_ends_what_its_workers_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = threading.Event(), threading.Event()

    def end(_self: Attempt) -> None:
        ended.set()

    def does(_task: Task, _folder: Path, _where: str) -> int:
        begun.set()
        ended.wait(WAIT_S)
        return -2

    monkeypatch.setattr(Attempt, "end", end)

    def stop(_task: Task, _where: str) -> None:
        raise KeyboardInterrupt

    with standing(tmp_path, monkeypatch, 1, does) as pool:
        with pytest.raises(KeyboardInterrupt):
            list(pool.run(tasks("a"), stop))
        assert begun.is_set()
        assert ended.wait(WAIT_S)


def test_workers_on_one_machine_measure_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPN_STATE_DIR", str(tmp_path / "state"))
    whole, core = (Task("a", RemoteTask("none", "host"), cores) for cores in (0, 1))
    inside = threading.Event()

    def measure() -> None:
        with far_end._machine(whole, Attempt()):
            inside.set()

    with far_end._machine(core, Attempt()), far_end._machine(core, Attempt()):
        second = threading.Thread(target=measure)
        second.start()
        assert not inside.wait(3 * turns._LOOK_S), "it shares the machine with guests"
        given_up = Attempt()
        given_up.end()
        with far_end._machine(whole, given_up):
            assert not inside.is_set(), "one that is not wanted any more does not wait"
    assert inside.wait(WAIT_S)
    second.join()
    with far_end._machine(whole, Attempt()), far_end._machine(Task("lab", RemoteTask("none", "host")), Attempt()):
        pass


def test_nobody_listens_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ANSWER_S", 0.2)
    with pytest.raises(MachineError, match=r"no dask scheduler answers at tcp://127\.0\.0\.1:1 "):
        Cluster("tcp://127.0.0.1:1", tmp_path)
    with pytest.raises(MachineError, match=r"no dask scheduler answers at nonsense://a "):
        Cluster("nonsense://a", tmp_path)
    with pytest.raises(MachineError, match=r"tls://127\.0\.0\.1:1 .* name your certificates"):
        Cluster("tls://127.0.0.1:1", tmp_path)


def test_a_scheduler_without_dask_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "hpn.scenarios.batch.pool.cluster", raising=False)
    monkeypatch.delitem(sys.modules, "hpn.scenarios.batch.pool.worker", raising=False)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MachineError, match=r"pip install 'hpn\[cluster\]'"):
        pool_for(tmp_path, None, "tcp://127.0.0.1:1").__enter__()


def test_jobs_and_scheduler_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--jobs"):
        pool_for(tmp_path, 2, "tcp://127.0.0.1:1").__enter__()
    with pool_for(tmp_path, 5) as pool:
        assert (pool.width, pool.far) == (5, False)


def test_a_scheduler_may_be_named_by_its_file(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({"type": "Scheduler", "address": "tls://10.0.0.1:8786"}))
    assert address_of(str(file)) == "tls://10.0.0.1:8786"
    assert address_of("tcp://10.0.0.1:8786") == "tcp://10.0.0.1:8786"
    for text in ("", "[]", '{"address": 3}', "[" * 100_000, "\x00"):
        file.write_text(text)
        with pytest.raises(InputError, match="is no scheduler file"):
            address_of(str(file))
    for nothing in ("", " "):
        with pytest.raises(InputError, match="takes an address"):
            pool_for(tmp_path, None, nothing).__enter__()
    with pytest.raises(InputError, match="cannot read the scheduler file"):
        address_of(str(tmp_path / "none.json"))
