"""One attempt at a task: its process in a private folder, which another thread can end.

Changes when a job's process is started or ended in another way. Used both on this machine and by workers elsewhere.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from hpn.scenarios.batch.pool.sent_files import Files
from hpn.scenarios.batch.pool.task import GIVEN, MADE, OUTPUT, PLUGINS, Task
from hpn.scenarios.run.remote_task import beside
from hpn.testbed import plugins
from hpn.testbed.kernel.process.cleanup_process import held

HEAL_S = 10.0
"""Time in s for a process to undo its changes before it is killed; its lab ends with it in any case."""


@dataclass(frozen=True, slots=True)
class Ended:
    """End of a job's process: its exit code, negative for a signal; ``hung`` when its time ran out."""

    code: int
    hung: bool = False


class Attempt:
    """One execution of one task. ``end`` may be called at any time, from any thread."""

    def __init__(self, plugged: Sequence[Files] | None = None) -> None:
        """Use these folders of plug-ins and no others, or with None those of this process."""
        self._plugged = plugged
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._killer: threading.Timer | None = None
        self.wanted = threading.Event()
        """Event set when the attempt is to end; code that waits for something else on its behalf checks it."""

    def run(self, task: Task, folder: Path) -> Ended:
        """Run the task below ``folder``, which is empty; MADE has the results.

        The process ends with the calling thread.
        """
        made = folder / MADE
        made.mkdir()
        lay_out(task.files, folder / GIVEN)
        environment = {} if self._plugged is None else _plug_in(self._plugged, folder / PLUGINS)
        with (made / OUTPUT).open("wb") as output, self._lock:
            if self.wanted.is_set():
                return Ended(-signal.SIGINT)
            job = replace(task.job, parent=os.getpid(), held=held())
            process = self._process = beside(job, output, made, environment, own_session=True)  # no Ctrl-C
        try:
            return Ended(process.wait(task.timeout_s))
        except subprocess.TimeoutExpired:
            return Ended(-signal.SIGKILL, hung=True)
        finally:
            with self._lock:
                self._process = None
                if self._killer is not None:
                    self._killer.cancel()
            with suppress(ProcessLookupError):
                process.kill()
            process.wait()

    def end(self) -> None:
        """End it as by Ctrl-C, without waiting; a process that does not end is killed."""
        with self._lock:
            if self.wanted.is_set():
                return
            self.wanted.set()
            if self._process is not None:
                _tell(self._process, signal.SIGINT)
                self._killer = threading.Timer(HEAL_S, _tell, (self._process, signal.SIGKILL))
                self._killer.daemon = True
                self._killer.start()


def _plug_in(plugged: Sequence[Files], below: Path) -> Mapping[str, str]:
    folders = [below / str(number) for number in range(len(plugged))]
    for folder, files in zip(folders, plugged, strict=True):
        folder.mkdir(parents=True)
        lay_out(files, folder)
    return plugins.environment_of(folders)


def lay_out(files: Files, folder: Path) -> None:
    """Write the files that came with a task."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _tell(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(number)
