"""A dask scheduler and its workers as a user starts them, on 127.0.0.1, each worker with a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.product.hpn import ROOT, until

START_S = 300
"""Within which workers stand on a machine that has a lot to do."""


class Cluster:
    """Processes by their names, with their logs in ``folder``; see ``cluster``."""

    def __init__(self, folder: Path, allowed_failures: int | None = None) -> None:
        """``allowed_failures``: so many lost workers a task may have for dask; None: dask's own default."""
        self._folder = folder
        known = {} if allowed_failures is None else {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": allowed_failures}
        self._environment = {name: str(value) for name, value in known.items()}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.address = ""

    def begin(self, *workers: str) -> None:
        """Start the scheduler, then the workers; returns when all stand."""
        self._start("scheduler", "scheduler", "--port", "0")
        until(lambda: "Scheduler at:" in self.said("scheduler"), "the scheduler listens")
        self.address = self.said("scheduler").partition("Scheduler at:")[2].split()[0]
        self.add(*workers)

    def add(self, *workers: str) -> None:
        """Start workers; returns when the scheduler knows them."""
        for name in workers:
            own = ("--name", name, "--local-directory", name)
            self._start(name, "worker", self.address, "--nthreads", "1", "--no-nanny", *own)
        until(
            lambda: all("Registered to:" in self.said(name) for name in workers), f"{workers} are registered", START_S
        )

    def said(self, name: str) -> str:
        """What a process has logged so far."""
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def labs(self, name: str) -> list[Path]:
        """The folders of the jobs on a worker."""
        return list((self._folder / name).glob("*/*/hpn-pool-*/made"))

    def runs(self, name: str) -> bool:
        """A job's process has begun on that worker."""
        return any((lab / "report.jsonl").exists() for lab in self.labs(name))

    def lab_stands(self, name: str) -> bool:
        """A job runs on that worker, and its lab has converged."""
        return any(b'"stood"' in path.read_bytes() for lab in self.labs(name) for path in lab.glob("report.jsonl"))

    def kill(self, name: str) -> None:
        """Kill a process at once."""
        self.processes[name].kill()
        self.processes[name].wait()

    def end(self) -> None:
        """Kill everything."""
        for name in self.processes:
            self.kill(name)

    def _start(self, name: str, *arguments: str) -> None:
        local = ("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0", "--no-dashboard")
        environment = {"PYTHONPATH": str(ROOT), "HPN_STATE_DIR": str(self._folder / "labs")}
        with (self._folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments, *local],
                cwd=self._folder,
                env=os.environ | environment | self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )


@contextmanager
def cluster(folder: Path, *workers: str, allowed_failures: int | None = None) -> Iterator[Cluster]:
    """A scheduler with these workers; killed at the end."""
    standing = Cluster(folder, allowed_failures)
    try:
        standing.begin(*workers)
        yield standing
    finally:
        standing.end()
