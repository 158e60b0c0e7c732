"""Engine: this kernel, by a process that makes way for all others on the machine."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import time
from collections import deque
from collections.abc import Callable

from hpn.testbed.errors import MachineError
from hpn.testbed.vm.engines import ENGINES, EngineSpec
from hpn.testbed.vm.guest import GuestJob, GuestResult

_TAIL = 50


class Nice:
    """Runs commands under nice(1)."""

    slowness = 1

    def check(self) -> None:
        """See ``testbed.vm.guest.Engine``."""
        for tool in ("nice", "timeout"):
            if shutil.which(tool) is None:
                raise MachineError(f"engine nice cannot run here: {tool}: apt install coreutils")

    def describe(self) -> str:
        """See ``testbed.vm.guest.Engine``."""
        return f"Linux {platform.release()}, this machine's own, after everybody else"

    def run(self, job: GuestJob, on_line: Callable[[str], None]) -> GuestResult:
        """See ``testbed.vm.guest.Engine``; exit code 137 when the time is over."""
        begun, tail = time.monotonic(), deque[str](maxlen=_TAIL)
        with subprocess.Popen(
            ["timeout", "--foreground", "--signal=KILL", f"{job.timeout_s:.0f}", "nice", "-n", "19", *job.command],
            cwd=job.cwd,
            env={**os.environ, **job.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            for line in process.stdout or ():
                tail.append(line.rstrip("\n"))
                on_line(tail[-1])
        code = process.returncode if process.returncode >= 0 else 128 - process.returncode
        wall_s, last = time.monotonic() - begun, tail[-1] if tail else ""
        return GuestResult(code, tuple(tail), 0.0, wall_s, platform.release(), last)


ENGINES.add(
    EngineSpec(name="nice", start=Nice, cores=0, own_kernel=False, instead="engine host, with its usual priority")
)
