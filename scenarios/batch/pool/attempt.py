"""One attempt at a task: its process, in a folder that nobody else has, and how that is ended from another thread.

Changes when a job's process is to be started or ended otherwise. Used alike on this machine and by workers elsewhere.
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

from hpn.scenarios.batch.pool.given import Files
from hpn.scenarios.batch.pool.task import GIVEN, MADE, OUTPUT, PLUGINS, Task
from hpn.scenarios.run.job import beside
from hpn.testbed import plugins
from hpn.testbed.kernel.process.survivor import held

HEAL_S = 10.0
"""What a process has to undo what it did before it is killed; its lab dies with it in any case."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a job's process ended: its exit code, negative for a signal; ``hung`` when its time ran out."""

    code: int
    hung: bool = False


class Attempt:
    """Does one task once. ``end`` may be called at any time, from any thread."""

    def __init__(self, plugged: Sequence[Files] | None = None) -> None:
        """With these folders of plug-ins and no others, or with those of this process."""
        self._plugged = plugged
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._killer: threading.Timer | None = None
        self.wanted = threading.Event()
        """Set when it is to end: whoever waits for something else on its behalf looks at it."""

    def run(self, task: Task, folder: Path) -> Ended:
        """Do it below ``folder``, which is empty; MADE holds what came of it. It dies with the calling thread."""
        made = folder / MADE
        made.mkdir()
        lay_out(task.files, folder / GIVEN)
        environment = {} if self._plugged is None else _plug_in(self._plugged, folder / PLUGINS)
        with (made / OUTPUT).open("wb") as output, self._lock:
            if self.wanted.is_set():
                return Ended(-signal.SIGINT)
            job = replace(task.job, parent=os.getpid(), held=held())
            process = self._process = beside(job, output, made, environment, own_session=True)  # Ctrl-C is for others
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
        """Have it end as by Ctrl-C; what does not is killed. Does not wait for it."""
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
