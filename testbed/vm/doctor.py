"""Which guests this machine can boot, what is used where it cannot, and the command that provides them.

Changes when there is another engine. The reasons are the engines' own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from testbed.doctor import Capability
from testbed.errors import MachineError
from testbed.vm import uml_kernel
from testbed.vm.guest import Engine, GuestJob
from testbed.vm.qemu import Qemu
from testbed.vm.uml import Uml

_KVM = Path("/dev/kvm")
_MEMORY_MB = 512
_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class _Way:
    """A guest engine, what it is good for, and what a drill can use without it."""

    name: str
    engine: Engine
    kernel: Callable[[], str]
    instead: str


def examine(*, boot: bool = False) -> list[Capability]:
    """Ask each engine whether it can; about 0.05 s. With ``boot`` it must prove it with a guest (half a minute)."""
    return [_capability(way, boot) for way in _ways()]


def _ways() -> Iterator[_Way]:
    qemu, uml, virtual = Qemu(), Uml(), Uml(virtual_time=True)
    yield _Way("engine qemu", qemu, lambda: _qemu_kernel(qemu), "engine uml: Linux bonding and netem too, one CPU")
    yield _Way("engine uml", uml, lambda: _uml_kernel(time_travel=False), "engine qemu, or the host's own kernel")
    instead = "real time: figures carry the noise of this machine"
    yield _Way("engine uml, virtual time", virtual, lambda: _uml_kernel(time_travel=True), instead)


def _capability(way: _Way, boot: bool) -> Capability:
    try:
        way.engine.check()
        detail = _booted(way.engine) if boot else way.kernel()
    except MachineError as error:
        reason = str(error).removeprefix(f"{way.name} cannot run here: ")
        return Capability(way.name, False, False, "another kernel for a drill", way.instead, reason)
    return Capability(way.name, True, False, detail)


def _qemu_kernel(engine: Qemu) -> str:
    kernel = engine.kernel()
    assert kernel is not None, "check() has passed"
    if os.access(_KVM, os.R_OK | os.W_OK):  # whether it works only a boot can tell, which may take 20 s
        accelerator = "kvm or tcg: seen when a guest boots (hpn doctor --engines)"
    else:
        accelerator = engine.accelerator()
    return f"Linux {kernel.release}, {accelerator}"


def _uml_kernel(*, time_travel: bool) -> str:
    kernel = uml_kernel.find(None, time_travel=time_travel)
    return f"Linux {kernel.release}, {kernel.path}"


def _booted(engine: Engine) -> str:
    """What a guest was like that ran a command. MachineError when it did not."""
    told: list[str] = []
    command = ("/bin/sh", "-c", "echo $HPN_ACCELERATOR")
    result = engine.run(GuestJob(command, Path("/"), (), {}, _MEMORY_MB, 1, _TIMEOUT_S), told.append)
    accelerator = "".join(f", {line}" for line in told if line)
    return f"Linux {result.kernel}, first command after {result.boot_s:.1f} s{accelerator}"
