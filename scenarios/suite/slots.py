"""The engines as a suite's scheduler sees them: each run is a job in a process beside this one.

Changes when a suite tells its runs something more.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pydantic import JsonValue, TypeAdapter

from scenarios.drill import catalogue
from scenarios.run.job import Job, beside
from scenarios.run.order import Batch
from scenarios.suite.schedule import EngineSlot, in_process
from scenarios.suite.suite import Run
from testbed.vm.engines import ENGINES, EngineSpec


@dataclass(frozen=True, slots=True)
class SuiteBody:
    """One run of a suite: the drill's file, and the folder in which it makes its own."""

    file: str
    out: str
    tries: int
    phase: int
    command: tuple[str, ...]


_BODY = TypeAdapter(SuiteBody)


def slots() -> dict[str, EngineSlot]:
    """The engines for a suite."""
    return {spec.name: EngineSlot(spec.cores, in_process(_Start(spec))) for spec in ENGINES.values()}


def batch_from(body: JsonValue) -> Batch:
    """What a job is to run. InputError for a file that is gone or has mistakes."""
    found = _BODY.validate_python(body)
    drills = (catalogue.load(found.file),)
    return Batch(drills, 1, Path(found.out), found.command, tries=found.tries, first=found.phase)


def job_for(spec: EngineSpec, wanted: Run, folder: Path) -> Job:
    """The job that makes FOLDER/DRILL."""
    body = SuiteBody(
        str(wanted.file), str(folder), wanted.tries, wanted.repeat, (*_words(spec), *_options(wanted, folder))
    )
    return Job("run of a suite", spec.name, _BODY.dump_python(body, mode="json"))


@dataclass(frozen=True, slots=True)
class _Start:
    """Runs a job of one engine to its end."""

    spec: EngineSpec

    def __call__(self, wanted: Run, folder: Path, output: IO[bytes]) -> int:
        """The exit code."""
        with beside(job_for(self.spec, wanted, folder), output) as process:
            return process.wait()


def _words(spec: EngineSpec) -> tuple[str, ...]:
    return ("drill", "run", "--engine", spec.asked, *(("--virtual-time",) if spec.virtual_time else ()))


def _options(wanted: Run, folder: Path) -> tuple[str, ...]:
    """So a user makes this run again."""
    options = ("--tries", str(wanted.tries), "--phase", str(wanted.repeat))
    return (str(wanted.file), "--out", str(folder), *options)
