"""Guests that this machine can boot, the fallback for each that it cannot, and the command that provides it.

Changes when engines have more to report. The reasons are the engines' own.
"""

from __future__ import annotations

from pathlib import Path

from hpn.testbed.doctor import Capability
from hpn.testbed.errors import MachineError
from hpn.testbed.vm.engines import ENGINES, EngineSpec
from hpn.testbed.vm.guest import Engine, GuestJob

_MEMORY_MB = 512
_TIMEOUT_S = 60.0


def examine(*, boot: bool = False) -> list[Capability]:
    """Check each engine; about 0.05 s. With ``boot`` it must also boot a guest (half a minute)."""
    return [_capability(spec, boot) for spec in ENGINES.values() if spec.start is not None]


def _capability(spec: EngineSpec, boot: bool) -> Capability:
    engine = spec.engine()
    try:
        engine.check()
        detail = _booted(engine) if boot else engine.describe()
    except MachineError as error:
        reason = str(error).removeprefix(f"{spec.title} cannot run here: ")
        return Capability(spec.title, False, False, "another kernel for a drill", spec.instead, reason)
    return Capability(spec.title, True, False, detail)


def _booted(engine: Engine) -> str:
    """Boot a guest, run a command and describe it. MachineError when that fails."""
    told: list[str] = []
    command = ("/bin/sh", "-c", "echo $HPN_ACCELERATOR")
    result = engine.run(GuestJob(command, Path("/"), (), {}, _MEMORY_MB, 1, _TIMEOUT_S), told.append)
    accelerator = "".join(f", {line}" for line in told if line)
    return f"Linux {result.kernel}, first command after {result.boot_s:.1f} s{accelerator}"
