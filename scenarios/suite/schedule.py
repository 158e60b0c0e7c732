"""Makes the runs of a suite, some side by side, and goes on after failures.

Changes when runs are to be scheduled otherwise. What an engine is, the caller says: ``EngineSlot``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from results.ci import CiRun, Repeats, ci_junit, ci_summary
from results.junit import judged
from results.run.folder import RunFolder, load
from scenarios.run import repeats
from scenarios.run.job import JUDGED, errors_in
from scenarios.suite.suite import Run, Suite
from testbed.errors import HpnError, NoisyError, error_for, exit_code_of

JUNIT, SUMMARY, LOG = "junit.xml", "summary.md", "output.txt"


@dataclass(frozen=True, slots=True)
class EngineSlot:
    """An engine as the scheduler sees it.

    ``cores``: how many a run keeps busy, 0 for the whole machine: a measurement that shares its cores is worth little.
    ``run`` makes one run inside a folder of its own and returns the run folder; HpnError when there is none. It is
    called in a thread.
    """

    cores: int
    run: Callable[[Run, Path], RunFolder]


def run_suite(
    suite: Suite,
    engines: Mapping[str, EngineSlot],
    out: Path,
    on_start: Callable[[Run], None] = lambda _run: None,
    cores: int | None = None,
    jobs: int | None = None,
) -> Iterator[CiRun]:
    """Make every run, each in OUT/DRILL.ENGINE.N, and yield it when it has ended.

    At most ``jobs`` side by side, as the suite says when None, and never more than the cores carry. An iterator that is
    closed early starts no more runs and waits for those that run.
    """
    capacity = cores or len(os.sched_getaffinity(0))
    most = min(jobs or suite.parallel or capacity, len(suite.runs))
    waiting = list(suite.runs)
    running: dict[Future[CiRun], Run] = {}
    with ThreadPoolExecutor(max_workers=max(1, most)) as pool:
        while waiting or running:
            while len(running) < most and (at := _next(waiting, running.values(), engines, capacity)) is not None:
                run = waiting.pop(at)
                on_start(run)
                running[pool.submit(_one, run, engines[run.engine], out / run.folder)] = run
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                del running[future]
                yield future.result()


def in_order(suite: Suite, runs: Iterable[CiRun]) -> list[CiRun]:
    """The runs made so far in the order of the suite, whichever ended first: so that reports do not depend on it."""
    place = {run.title: at for at, run in enumerate(suite.runs)}
    return sorted(runs, key=lambda run: place[run.title])


def _next(
    waiting: Sequence[Run], running: Collection[Run], engines: Mapping[str, EngineSlot], capacity: int
) -> int | None:
    """Index of the first waiting run that fits beside the running ones; alone, any fits."""
    needs = {name: min(slot.cores or capacity, capacity) for name, slot in engines.items()}
    free = capacity - sum(needs[run.engine] for run in running)
    return next((at for at, run in enumerate(waiting) if not running or needs[run.engine] <= free), None)


def _one(run: Run, engine: EngineSlot, folder: Path) -> CiRun:
    started = time.monotonic()
    made = partial(CiRun, run.drill, run.engine, run.repeat, run.repeats)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = engine.run(run, folder)
        answer = judged(found, folder / LOG)
    except (HpnError, OSError) as error:
        log = str(folder / LOG) if (folder / LOG).is_file() else ""
        return made(run.folder, time.monotonic() - started, None, str(error), exit_code_of(error), log)
    where = str(found.path.relative_to(folder.parent)) if found.path.is_relative_to(folder.parent) else str(found.path)
    return made(where, time.monotonic() - started, answer, "", answer.verdict.exit_code)


def in_process(start: Callable[[Run, Path, IO[bytes]], int]) -> Callable[[Run, Path], RunFolder]:
    """What makes FOLDER/DRILL by a process that ``start`` runs to its end; it exits as ``hpn drill run``.

    What it prints is kept beside the run folder.
    """

    def run(wanted: Run, folder: Path) -> RunFolder:
        log = folder / LOG
        with log.open("wb") as output:
            code = start(wanted, folder, output)
        if code not in JUDGED:
            raise error_for(code, _last_words(log, code))
        run = load(folder / wanted.drill)
        if code == NoisyError.exit_code and not run.has_verdict:
            raise NoisyError(_last_words(log, code))
        return run

    return run


def _last_words(log: Path, code: int) -> str:
    """The process's own error lines, or the last line it printed."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    said = lines[-1].strip() if lines else "it said nothing"
    return "\n".join(errors_in(lines)) or f"the run ended with code {code}: {said}"


def write_reports(out: Path, suite: Suite, groups: Sequence[Repeats]) -> None:
    """OUT/junit.xml, OUT/summary.md and, of drills with repeats, OUT/repeats.json."""
    out.mkdir(parents=True, exist_ok=True)
    (out / JUNIT).write_text(ci_junit(suite.name, groups), encoding="utf-8")
    (out / SUMMARY).write_text(ci_summary(suite.name, groups), encoding="utf-8")
    repeats.write(out, [group.together for group in groups if group.together is not None])
