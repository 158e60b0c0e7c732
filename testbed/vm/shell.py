"""``hpn vm shell``: a guest kernel to work in, with a terminal or for one command.

Changes when guests get other resources, or other engines are offered.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from pathlib import Path

from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.vm.engines import ENGINES, EngineSpec, asked_for, has_virtual_time
from hpn.testbed.vm.guest import GuestJob, Terminal, environment
from hpn.testbed.vm.terminal import joined

_MEMORY_MB = 1536
_SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
_GUESTS_OWN = tuple(map(Path, ("/proc", "/sys", "/dev", "/run", "/dev/shm")))
_KEPT = ("HOME", "USER", "LANG", "LANGUAGE")


def run(
    command: tuple[str, ...],
    engine: str | None,
    virtual_time: bool,
    on_line: Callable[[str], None],
    keys: int = 0,
    screen: int = 1,
) -> int:
    """Run ``command`` in a guest, or a shell on our terminal without one; return its exit code, 128 + signal if killed.

    Lines of a command reach ``on_line`` as they come. InputError for impossible combinations, MachineError when
    no engine runs here or the guest fails.
    """
    interactive = not command
    if interactive and not (os.isatty(keys) and os.isatty(screen)):
        raise InputError("no terminal to open a shell on; name a command: hpn vm shell -- COMMAND")
    if interactive and (virtual_time or has_virtual_time(engine or "")):
        raise InputError(
            "nobody can type in virtual time: its clock runs on while the guest waits for a key;"
            " name a command: hpn vm shell --engine NAME -- COMMAND"
        )
    chosen = choose(engine, virtual_time)
    if not interactive:
        return chosen.engine().run(job(command), on_line).exit_code
    return _interact(chosen, on_line, keys, screen)


def guests(virtual_time: bool) -> tuple[EngineSpec, ...]:
    """Return the interactive engines in the order of trying: the fastest boot first."""
    found = (spec for spec in ENGINES.values() if spec.boot_target_s is not None and spec.virtual_time is virtual_time)
    return tuple(sorted(found, key=lambda spec: spec.boot_target_s or 0.0))


def words() -> tuple[str, ...]:
    """Return the values of ``hpn vm shell --engine``."""
    return tuple(spec.name for virtual in (False, True) for spec in guests(virtual))


def choose(word: str | None, virtual_time: bool = False) -> EngineSpec:
    """Return the requested engine, else the first that can boot here. InputError; MachineError with every reason."""
    reasons = []
    for candidate in (asked_for(word, virtual_time),) if word else guests(virtual_time):
        try:
            candidate.engine().check()
        except MachineError as error:
            reasons.append(str(error))
        else:
            return candidate
    raise MachineError("; or ".join(reasons))


def job(command: tuple[str, ...], terminal: Terminal | None = None) -> GuestJob:
    """Return the guest's job: the command in our folder, with ``hpn`` in its PATH and labs of its own. InputError."""
    try:
        here = Path.cwd()
    except FileNotFoundError:
        raise InputError("the current folder is gone; change to one that is there") from None
    ours = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith("LC_")}
    ours |= {"PATH": _path()}
    if terminal is not None:
        ours |= {"TERM": os.environ.get("TERM", "linux"), "SHELL": command[0]}
    return GuestJob(
        command=command,
        cwd=here,
        writable=(here,) if can_be_shared(here) else (),
        environment={**environment(), **ours},
        memory_mb=_MEMORY_MB,
        cpus=os.cpu_count() or 1,
        timeout_s=math.inf,
        terminal=terminal,
    )


def can_be_shared(folder: Path) -> bool:
    """Return True if a guest can write this folder of the host: not the root, nor where it has its own files."""
    kernels = (Path("/proc"), Path("/sys"))
    return folder != Path("/") and folder not in _GUESTS_OWN and not any(home in folder.parents for home in kernels)


def _interact(chosen: EngineSpec, on_line: Callable[[str], None], keys: int, screen: int) -> int:
    shell = os.environ.get("SHELL") or "/bin/sh"
    asked = job((shell,))
    can_write = str(asked.cwd) if asked.writable else "nothing of the host"
    on_line(f"booting a guest ({chosen.name}); it may write {can_write}; leave with: exit, or Ctrl-] three times")
    with joined(keys, screen) as bridge:
        return chosen.engine().run(job((shell,), bridge.terminal()), lambda line: on_line(f"{line}\r")).exit_code


def _path() -> str:
    """Return our PATH with this Python's programs first and the system's, which some users lack, at the end."""
    ours = os.environ.get("PATH", "").split(os.pathsep)
    return os.pathsep.join(dict.fromkeys((os.path.dirname(sys.executable), *filter(None, ours), *_SYSTEM_PATH)))
