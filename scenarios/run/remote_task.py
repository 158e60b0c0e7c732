"""Remote task: work for hpn as data, and how to run it in a guest or in a separate process on this machine.

Changes when all kinds of jobs need another setting. The far end, ``commands.job``, lists the kinds. This module only
names it as the program to start.
"""

from __future__ import annotations

import os
import re
import signal
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
class RemoteTask:
    """Remote task.

    ``kind`` defines the meaning of ``body``. ``engine``: name of the engine that it runs for, as results record it.
    ``parent``: process ID; the job ends when that process does. ``held``: descriptors whose closing signals its end to
    other processes.
    """

    kind: str
    engine: str
    body: JsonValue = None
    parent: int = 0
    held: tuple[int, ...] = ()

    @property
    def command(self) -> tuple[str, ...]:
        """Command that does the job where ``environment`` and this project's files exist; it contains the job itself.

        So no job file is left in a run folder, and the guest reads no file once its clock counts.
        """
        return (sys.executable, "-P", "-B", "-m", PROGRAM, _JOB.dump_json(self).decode())


_JOB = TypeAdapter(RemoteTask)


def job_from(text: str) -> RemoteTask:
    """Return the job from a command line."""
    return _JOB.validate_json(text)


def in_guest(
    job: RemoteTask,
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
    """Run a job in a guest, in ``folder``, the only folder that it may write.

    ``cpus``: None for all cores. ``more_mb``: memory in MB beyond what hpn itself takes. ``look`` as in ``GuestJob``.

    The folder's name appears nowhere in the guest, so that runs in virtual time repeat exactly. MachineError when the
    guest cannot boot, hangs, panics or is killed.
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


_SEGFAULT = re.compile(rf"killed by signal {signal.SIGSEGV}\b")


def answered(spec: EngineSpec, result: GuestResult) -> GuestResult:
    """Return the result if the job gave an answer. Else raise its InputError or MachineError with its message."""
    if result.exit_code in JUDGED:
        return result
    words = f"{spec.name}: {last_words(result)}"
    if spec.maps_pages and _SEGFAULT.search(words):
        words += (
            "; a guest's process with more mappings than vm.max_map_count ends so, as many packets or links need: as"
            " root, sysctl -w vm.max_map_count=1048576, or send less"
        )
    if result.exit_code in (InputError.exit_code, MachineError.exit_code):
        raise error_for(result.exit_code, words)
    code = result.exit_code
    how = f"was killed by signal {code - 128}" if code > 128 else f"ended with code {code}"
    raise MachineError(f"{words} (the command {how} in the guest)")


def last_words(result: GuestResult) -> str:
    """Return the errors of a guest, or else the last line of its command's output."""
    return "; ".join(errors_in(result.console_tail)) or result.last_line or "it said nothing"


def errors_in(lines: Iterable[str]) -> list[str]:
    """Return hpn's own errors in the output of a job."""
    return [line.removeprefix("hpn: ") for line in lines if line.startswith("hpn: ")]


def beside(
    job: RemoteTask,
    output: IO[bytes],
    folder: Path | None = None,
    environment: Mapping[str, str] = MappingProxyType({}),
    *,
    own_session: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a job in a separate process of this machine, in ``folder`` unless None; it prints to ``output``.

    ``environment`` is added to this process's own. With ``own_session`` a Ctrl-C in the terminal does not reach it.
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
    """Return the environment that puts this source tree first."""
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), known.get("PYTHONPATH"))))}
