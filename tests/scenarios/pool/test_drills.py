"""Drill runs by a pool: each comes to its place whole, once, and what goes wrong far away is told as here."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import pytest

from hpn.results.index.store import opened
from hpn.results.judge.verdict import Outcome
from hpn.results.run.folder import RunFolder, create
from hpn.scenarios.batch.pool.attempt import lay_out
from hpn.scenarios.batch.pool.drills import Made, RequestedRun, Root, body_from, run_all, task_for
from hpn.scenarios.batch.pool.task import GIVEN, OUTPUT, Begun, Done, Task, unheard
from hpn.scenarios.drill import catalogue
from hpn.scenarios.run.run_order import Order
from hpn.testbed.errors import HpnError, InputError, MachineError, NoisyError
from hpn.testbed.vm.engines import HOST
from tests.results.sample import MANIFEST
from tests.scenarios.pool.pretended import Makes, Pretended, asked, fails
from tests.scenarios.test_ci_run import judges

PASSES = judges(lambda *_: Outcome.PASS)


def wanted(out: Path, *names: str, tries: int = 1) -> dict[str, RequestedRun]:
    drill = catalogue.load("link-down")
    return {name: RequestedRun(Order(drill, out / name, ("drill", "run")), HOST, tries) for name in names}


def run(out: Path, makes: Makes, *names: str, tries: int = 1) -> dict[str, Made]:
    return {made.name: made for made in run_all(Pretended(makes), wanted(out, *names, tries=tries))}


def error_of(made: Made) -> HpnError:
    assert isinstance(made.run, HpnError)
    return made.run


def test_a_run_comes_to_its_place_and_into_the_index(tmp_path: Path) -> None:
    found = run(tmp_path / "out", PASSES, "a", "b")
    assert [(name, made.run, made.wall_s) for name, made in found.items()] == [
        (name, RunFolder(tmp_path / "out" / name), 1.5) for name in "ab"
    ]
    with opened(tmp_path / "index.sqlite", tmp_path / "out") as index:
        assert index.update().runs == 2


def test_a_run_that_is_not_yet_whole_is_in_no_index(tmp_path: Path) -> None:
    create(tmp_path / "out" / ".hpn-pool-x" / "made" / "a").write_manifest(MANIFEST)
    create(tmp_path / "out" / "b").write_manifest(MANIFEST)
    with opened(tmp_path / "index.sqlite", tmp_path / "out") as index:
        assert index.update().runs == 1


def test_what_an_earlier_run_left_is_gone_from_the_moment_that_the_next_begins(tmp_path: Path) -> None:
    assert run(tmp_path, PASSES, "a")["a"].run == RunFolder(tmp_path / "a")
    seen = []

    def look(task: Task, folder: Path) -> int:
        seen.append((tmp_path / "a" / "verdict.json").exists())
        return fails(3, "hpn: no bird here")(task, folder)

    assert str(error_of(run(tmp_path, look, "a")["a"])) == "no bird here"
    assert seen == [False]
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_holds_something_else_is_refused_before_the_run_and_stays(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "thesis.tex").write_text("mine")
    made = []

    def make(task: Task, folder: Path) -> int:
        made.append(task.name)
        return PASSES(task, folder)

    found = run(tmp_path, make, "a", "b")
    assert isinstance(error_of(found["a"]), InputError)
    assert isinstance(found["b"].run, RunFolder)
    assert made == ["b"]
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["thesis.tex"]


def test_what_is_put_into_the_place_meanwhile_stays_too(tmp_path: Path) -> None:
    def make(task: Task, folder: Path) -> int:
        (tmp_path / "a" / "thesis.tex").write_text("mine")
        return PASSES(task, folder)

    assert "not empty and not a run folder" in str(error_of(run(tmp_path, make, "a")["a"]))
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["thesis.tex"]


def test_a_place_that_leads_elsewhere_is_refused_before_the_run_and_stays(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").symlink_to(tmp_path / "disk")
    found = run(tmp_path / "out", PASSES, "a", "b")
    assert f"{tmp_path / 'out' / 'a'} is a link" in str(error_of(found["a"]))
    assert isinstance(found["b"].run, RunFolder)
    assert list((tmp_path / "disk").iterdir()) == []


def test_a_run_that_cannot_be_put_into_its_place_is_told_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when its place is a file system of its own."""
    rename = Path.rename

    def renamed(path: Path, target: Path) -> Path:
        if target == tmp_path / "a":
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", renamed)
    found = run(tmp_path, PASSES, "a", "b")
    error = error_of(found["a"])
    assert (type(error), str(error)) == (
        InputError,
        f"cannot put a run into {tmp_path / 'a'}: Invalid cross-device link; choose another --out",
    )
    assert isinstance(found["b"].run, RunFolder)
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_runs_that_are_given_up_leave_no_empty_folders(tmp_path: Path) -> None:
    class Lost(Pretended):
        def run(self, tasks: Iterable[Task], on_start: Begun = unheard) -> Iterator[Done]:
            first, *others = tasks
            yield from super().run([first], on_start)
            for task in others:
                on_start(task, "tcp://10.0.0.1:1")
            raise MachineError("the scheduler is gone")

    with pytest.raises(MachineError):
        list(run_all(Lost(PASSES), wanted(tmp_path, "a", "b")))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_doubtful_tries_stand_beside_the_run_and_nothing_else_of_the_attempt(tmp_path: Path) -> None:
    def make(task: Task, folder: Path) -> int:
        for name in ("a.doubtful-1", "a.doubtful-3", "other"):
            create(folder / name).write_manifest(MANIFEST)
        return PASSES(task, folder)

    run(tmp_path, make, "a", tries=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "a.doubtful-1"]


@pytest.mark.parametrize(
    ("code", "said", "kind", "text"),
    [
        (2, "hpn: drill.yaml:3: no such target", InputError, "drill.yaml:3: no such target"),
        (3, "hpn: no bird here: apt install bird2", MachineError, "no bird here: apt install bird2"),
        (-11, "Segmentation fault", MachineError, "the run ended with code -11: Segmentation fault"),
    ],
)
def test_an_error_far_away_is_told_with_its_own_words_and_kind(
    tmp_path: Path, code: int, said: str, kind: type[HpnError], text: str
) -> None:
    error = error_of(run(tmp_path, fails(code, "starting", said), "a")["a"])
    assert (type(error), str(error)) == (kind, text)


def test_a_run_that_says_nothing_from_the_start_is_noisy_and_its_folder_kept(tmp_path: Path) -> None:
    def make(task: Task, folder: Path) -> int:
        create(folder / "a").write_manifest(MANIFEST)
        return fails(4, "hpn: every queue pair died")(task, folder)

    assert isinstance(error_of(run(tmp_path, make, "a")["a"]), NoisyError)
    assert (tmp_path / "a" / "manifest.json").exists()


def test_an_output_is_kept_where_that_is_asked_for(tmp_path: Path) -> None:
    kept = {name: replace(each, keep_output=True) for name, each in wanted(tmp_path / "x", "a").items()}
    list(run_all(Pretended(fails(3, "hpn: gone")), kept))
    assert (tmp_path / "x" / OUTPUT).read_text() == "hpn: gone\n"


OWN = """drill: own
summary: one link is cut
topology: rack.yaml
timeline:
  faults: [{id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 1 s, for: 2 s}]
expect:
  - worst_outage: {below: 50 ms}
"""


def test_a_drill_goes_to_a_worker_with_what_it_names_and_is_the_same_there(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "own.yaml").write_text(OWN)
    (tmp_path / "here" / "rack.yaml").write_text("preset: tiny\nseed: 7\n")
    drill = catalogue.load(str(tmp_path / "here" / "own.yaml"))
    order = Order(drill.seeded(9).slowed(2), tmp_path / "out" / "own-3", ("x",), 3, slow=2, keep_records=True, phase=3)
    order = replace(order, raise_neighbours=True)
    near, far = (task_for("own #3", order, HOST, 2, far=far) for far in (False, True))
    assert (body_from(near.job.body).root, near.files) == (Root.HERE, {})
    assert (body_from(far.job.body).root, sorted(far.files)) == (Root.GIVEN, ["own.yaml", "rack.yaml"])
    made = tmp_path / "elsewhere" / "made"
    made.mkdir(parents=True)
    lay_out(far.files, made.parent / GIVEN)
    with chdir(made):
        there = asked(far).order()
    expected = replace(order, out=Path("own-3"), drill=replace(order.drill, source=there.drill.source))
    assert there == expected
    assert Path(there.drill.source).name == "own.yaml"


def test_a_drill_that_comes_with_hpn_goes_by_its_name(tmp_path: Path) -> None:
    order = next(iter(wanted(tmp_path, "a").values())).order
    task = task_for("a", order, HOST, 1, far=True)
    body = body_from(task.job.body)
    assert (body.root, body.file, task.files) == (Root.PACKAGE, "library/link-down.yaml", {})
    assert body.order().drill == order.drill
    assert task.cores == 0
