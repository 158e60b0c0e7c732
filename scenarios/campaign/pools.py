"""Where jobs of a campaign are run: in processes beside this one, in guests; ``machines`` has others.

Everywhere the very same command is run (``scenarios.campaign.block``), so that an engine is only a way to get a job
there and its report back.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from scenarios.campaign import block
from scenarios.campaign.result import Job, Report, Result
from scenarios.run.job import Job as Elsewhere
from scenarios.run.job import beside, in_guest
from testbed.vm.engines import HOST, EngineSpec, named

_ROOT = Path(__file__).resolve().parent.parent.parent
_START_S, _SEQUENCE_S = 90.0, 60.0
_GUEST_SLOWNESS = 20.0
SCRATCH = "work"

Done = tuple[Job, Report]


class Pool(Protocol):
    """Runs jobs, several at a time; ``width`` is how many it likes to have."""

    @property
    def width(self) -> int:
        """How many jobs run side by side."""

    def run(self, jobs: Iterable[Job]) -> Iterator[Done]:
        """Every job with its report, in the order they end. Closed early, it ends what runs."""


class Processes:
    """Jobs in processes beside this one, ``width`` at a time. They die with it, however it dies."""

    def __init__(self, width: int, scratch: Path, engine: str = HOST.name) -> None:
        """``scratch`` is a folder of its own, made when needed and removed; outside /tmp for guests."""
        self.width = width
        self._scratch = scratch.absolute()
        self._engine = engine
        self._running: set[int] = set()

    def run(self, jobs: Iterable[Job]) -> Iterator[Done]:
        """See ``Pool``."""
        shutil.rmtree(self._scratch, ignore_errors=True)  # what a killed campaign left
        self._scratch.mkdir(parents=True)
        waiting = iter(jobs)
        running: dict[Future[Report], Job] = {}
        with ThreadPoolExecutor(self.width) as threads:
            try:
                while True:
                    while len(running) < self.width and (job := next(waiting, None)) is not None:
                        run = partial(run_job, job, self._engine, self._scratch, self._running)
                        running[threads.submit(run)] = job
                    if not running:
                        return
                    ended, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in ended:
                        yield running.pop(future), future.result()
            finally:
                for future in running:
                    future.cancel()
                for pid in list(self._running):
                    kill(pid)
                wait(running)
                shutil.rmtree(self._scratch, ignore_errors=True)


def run_job(job: Job, engine: str, scratch: Path | None = None, running: set[int] | None = None) -> Report:
    """Run a job by its command, on this machine or in a guest; its report.

    Files are kept in ``scratch`` meanwhile, or where the machine keeps such; process IDs are noted in ``running``.
    """
    with tempfile.TemporaryDirectory(prefix="hpn-campaign-", dir=scratch) as made:
        folder, spec, begun = Path(made), named(engine), time.time()
        crash = _process(job, spec, folder, running) if spec.start is None else _guest(job, spec, folder)
        found = block.read_report(folder)
        if spec.start is not None:
            found = replace(found, results=_by_our_clock(found.results, begun, time.time()))
        return found if found.error else replace(found, crash=crash)


def _by_our_clock(results: Sequence[Result], begun: float, ended: float) -> tuple[Result, ...]:
    """Results of a guest, whose clock may run at another pace, as if each sequence had taken the same time here."""
    each = (ended - begun) / max(len(results), 1)
    return tuple(
        replace(result, started_at=begun + at * each, ended_at=begun + (at + 1) * each)
        for at, result in enumerate(results)
    )


def _process(job: Job, spec: EngineSpec, folder: Path, running: set[int] | None) -> str:
    """How the process died that ran the job; '' when it did not."""
    words = folder / "output.txt"
    with words.open("wb") as output:  # Ctrl-C is for the campaign, which ends what it runs
        process = beside(_asked(job, spec, os.getpid()), output, folder, own_session=True)
    noted = running if running is not None else set()
    noted.add(process.pid)
    try:
        code = process.wait(_START_S + _SEQUENCE_S * len(job.sequences))
    except subprocess.TimeoutExpired:
        kill(process.pid)
        process.wait()
        return "it hung, and was ended"
    finally:
        noted.discard(process.pid)
    return f"code {code}: {last_words(words.read_text(errors='replace').splitlines())}" if code else ""


def last_words(lines: Sequence[str]) -> str:
    """What a process said last, and the place in this product where a traceback came from; that it is one, is plain."""
    said = [line.strip() for line in lines if line.strip()]
    said = [line for line in said if not line.startswith("hpn: this is a mistake")] or said
    places = [line for line in said if line.startswith(f'File "{_ROOT}') and "/site-packages/" not in line]
    place = places[-1].removeprefix(f'File "{_ROOT}/').replace('", line ', ":") if places else ""
    last = said[-1] if said else "it said nothing"
    return f"{last} (at {place})" if place else last


def _guest(job: Job, spec: EngineSpec, folder: Path) -> str:
    timeout_s = (_START_S + _SEQUENCE_S * len(job.sequences)) * _GUEST_SLOWNESS
    ended = in_guest(_asked(job, spec), spec, folder, timeout_s, lambda _line: None, cpus=1)
    words = last_words((*ended.console_tail, ended.last_line))  # after the kernel's farewell
    return f"code {ended.exit_code}: {words}" if ended.exit_code else ""


def _asked(job: Job, spec: EngineSpec, parent: int = 0) -> Elsewhere:
    return Elsewhere("sequences", spec.name, block.body_of(job), parent)


def kill(pid: int) -> None:
    """End a process that was noted as running; its lab dies with it."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
