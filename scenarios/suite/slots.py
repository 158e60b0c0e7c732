"""The engines as a suite's scheduler sees them: each run is this very command."""

from __future__ import annotations

import sys

from results.run.manifest import HOST as HOST
from scenarios.run.engines import COMMAND
from scenarios.suite.schedule import EngineSlot, command_engine


def slots() -> dict[str, EngineSlot]:
    """The engines for a suite: each run is this very command; a drill on the host or in QEMU wants all cores."""
    run = (sys.executable, str(COMMAND), "drill", "run")
    return {
        HOST: command_engine(run, 0),
        "qemu": command_engine((*run, "--engine", "qemu"), 0),
        "uml": command_engine((*run, "--engine", "uml"), 1),
        "uml-virtual-time": command_engine((*run, "--engine", "uml", "--virtual-time"), 1),
    }
