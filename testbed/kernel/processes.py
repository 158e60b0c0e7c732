"""Processes of a sandbox, seen by its first process."""

from __future__ import annotations

import os
from collections.abc import Container
from pathlib import Path


def own_pids() -> list[int]:
    """Every process of the sandbox: its /proc shows no others."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def is_stopped(pid: int) -> bool:
    """Whether somebody has stopped the process (SIGSTOP, or a debugger); False when it is gone."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state in "Tt"


def reap_strangers(own: Container[int]) -> None:
    """Collect orphans that fell to us as first process; ``own`` children are left to those who wait for them."""
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if found is None or found.si_pid in own:
            return
        os.waitpid(found.si_pid, 0)
