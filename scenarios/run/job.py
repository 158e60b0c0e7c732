"""A job: what hpn is to do elsewhere, as data, and the way there: into a guest, or into a process beside this one.

Changes when a job must say something more whatever its kind. The far end, where the kinds are listed, is
``commands.job``: this module names it as the program to start, and knows no kind.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO

from pydantic import JsonValue, TypeAdapter

from hpn.testbed.errors import InputError, MachineError, NoisyError, error_for
from hpn.testbed.package import ROOT
from hpn.testbed.vm.engines import EngineSpec
from hpn.testbed.vm.guest import GuestJob, GuestResult, environment, unattended

PROGRAM = "hpn.commands.job"
JUDGED = (0, 1, NoisyError.exit_code)
"""Exit codes of a job that gave an answer."""
MEMORY_MB = 1536


@dataclass(frozen=True, slots=True)
class Job:
    """``kind`` says what ``body`` means; ``engine`` is the name of the one that it is done for, as results record it.

    With ``parent``, a process ID, it ends when that process does. ``held``: descriptors that tell others of its end.
    """

    kind: str
    engine: str
    body: JsonValue = None
    parent: int = 0
    held: tuple[int, ...] = ()

    @property
    def command(self) -> tuple[str, ...]:
        """What does it, wherever ``environment`` and this project's files are: the job lies in the command line.

        So there is no file of it to be left in a run folder, and nothing to be read once a guest's clock counts.
        """
        return (sys.executable, "-P", "-B", "-m", PROGRAM, _JOB.dump_json(self).decode())


_JOB = TypeAdapter(Job)


def job_from(text: str) -> Job:
    """The job in a command line."""
    return _JOB.validate_json(text)


def in_guest(
    job: Job,
    spec: EngineSpec,
    folder: Path,
    timeout_s: float,
    on_line: Callable[[str], None],
    *,
    seed: int = 1,
    cpus: int | None = None,
    more_mb: int = 0,
    look: Callable[[], None] = unattended,
) -> GuestResult:
    """Do a job in a guest, from inside ``folder``, the only one it may write; with all cores when ``cpus`` is None,
    and with ``more_mb`` of memory beyond what hpn itself takes. ``look`` as in ``GuestJob``.

    The folder's name is nowhere in the guest, so that runs in virtual time repeat to the last digit. MachineError when
    the guest cannot boot, hangs, panics or is killed.
    """
    wanted = GuestJob(
        command=job.command,
        cwd=folder,
        writable=(folder,),
        environment={**environment(), **_found_here({})},
        memory_mb=MEMORY_MB + more_mb,
        cpus=cpus or os.cpu_count() or 1,
        timeout_s=timeout_s,
        seed=seed,
        look=look,
    )
    return spec.engine().run(wanted, on_line)


def answered(spec: EngineSpec, result: GuestResult) -> GuestResult:
    """The result of a job that gave an answer. InputError and MachineError as the job had them, with its words."""
    if result.exit_code in JUDGED:
        return result
    words = f"{spec.name}: {last_words(result)}"
    if result.exit_code in (InputError.exit_code, MachineError.exit_code):
        raise error_for(result.exit_code, words)
    code = result.exit_code
    how = f"was killed by signal {code - 128}" if code > 128 else f"ended with code {code}"
    raise MachineError(f"{words} (the command {how} in the guest)")


def last_words(result: GuestResult) -> str:
    """A guest's errors, else what its command said last."""
    return "; ".join(errors_in(result.console_tail)) or result.last_line or "it said nothing"


def errors_in(lines: Iterable[str]) -> list[str]:
    """The product's own errors among what a job has printed."""
    return [line.removeprefix("hpn: ") for line in lines if line.startswith("hpn: ")]


def beside(
    job: Job,
    output: IO[bytes],
    folder: Path | None = None,
    environment: Mapping[str, str] = MappingProxyType({}),
    *,
    own_session: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a job in a process of this machine, which prints to ``output``, from inside ``folder`` if it is not None.

    ``environment`` beside this process's own. In a session of its own no Ctrl-C of the terminal reaches it.
    """
    return subprocess.Popen(
        job.command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        pass_fds=job.held,
        env={**os.environ, **_found_here(os.environ), **environment},
        start_new_session=own_session,
    )


def _found_here(known: Mapping[str, str]) -> Mapping[str, str]:
    """This very source tree first."""
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), known.get("PYTHONPATH"))))}
