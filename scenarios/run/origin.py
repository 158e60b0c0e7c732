"""Where a run comes from: the commit of hpn and the machine, found outside of any guest and before anything is timed.

Changes when something more of a machine belongs in every result. No name of the machine or its user is taken.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from hpn.testbed.package import ROOT

_GIT_S = 5.0
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_PROC = Path("/proc")
_SYSTEM = Path("/etc/os-release")


@dataclass(frozen=True, slots=True)
class Origin:
    """``commit``: that hpn runs from, '-dirty' behind it where files of a checkout differ; '' where nobody knows."""

    commit: str = ""
    machine: Mapping[str, str | int] = field(default_factory=dict)


@cache
def origin() -> Origin:
    """Of this process."""
    return Origin(commit_of(ROOT) or installed_commit("hpn"), machine(_PROC, _SYSTEM))


def commit_of(root: Path) -> str:
    """What git calls the checkout at ``root``; '' where hpn is installed otherwise, or git cannot tell."""
    if not (root / ".git").exists():  # else git would look above, and find a repository of somebody else's
        return ""
    asked = ("git", "--no-optional-locks", "-C", str(root), "describe", "--always", "--abbrev=40", "--exclude=*")
    try:
        done = subprocess.run(
            [*asked, "--dirty"], capture_output=True, text=True, timeout=_GIT_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def installed_commit(package: str) -> str:
    """The commit that pip installed a package from (PEP 610: ``git+https://...``); '' where it came from elsewhere."""
    try:
        text = distribution(package).read_text("direct_url.json") or "{}"
        commit = json.loads(text).get("vcs_info", {}).get("commit_id", "")
    except (PackageNotFoundError, ValueError, AttributeError, OSError):
        return ""
    return commit if isinstance(commit, str) and _COMMIT.fullmatch(commit) else ""


def machine(proc: Path, system: Path) -> Mapping[str, str | int]:
    """CPUs and their model, memory, kernel and distribution; what cannot be read is left out."""
    found: dict[str, str | int] = {
        "arch": platform.machine(),
        "kernel": platform.release(),
        "cpus": len(os.sched_getaffinity(0)),
    }
    model = _value(proc / "cpuinfo", "model name", ":")
    memory_kb = _value(proc / "meminfo", "MemTotal", ":").removesuffix(" kB")
    name = _value(system, "PRETTY_NAME", "=").strip('"')
    return {
        **found,
        **({"cpu": model} if model else {}),
        **({"memory_mb": int(memory_kb) // 1024} if memory_kb.isdecimal() else {}),
        **({"system": name} if name else {}),
    }


def _value(path: Path, key: str, sign: str) -> str:
    """What the first line of that key says; '' for none."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    pairs = (line.partition(sign) for line in lines)
    return next((value.strip() for name, _, value in pairs if name.strip() == key), "")
