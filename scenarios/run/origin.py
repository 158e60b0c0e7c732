"""Origin of a run: commit of hpn and machine, read outside of any guest and before any timing.

Changes when another property of a machine belongs in every result. Names of the machine and its user are not recorded.
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
    """Origin of a run.

    ``commit``: commit of hpn, with '-dirty' appended if the checkout has changes; '' if unknown.
    """

    commit: str = ""
    machine: Mapping[str, str | int] = field(default_factory=dict)


@cache
def origin() -> Origin:
    """Return the origin of this process."""
    return Origin(commit_of(ROOT) or installed_commit("hpn"), machine(_PROC, _SYSTEM))


def commit_of(root: Path) -> str:
    """Return the git commit of the checkout at ``root``; '' if hpn is not run from a checkout, or git fails."""
    if not (root / ".git").exists():  # else git would search parent folders and might find another repository
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
    """Return the commit that pip installed a package from (PEP 610: ``git+https://...``), or ''."""
    try:
        text = distribution(package).read_text("direct_url.json") or "{}"
        commit = json.loads(text).get("vcs_info", {}).get("commit_id", "")
    except (PackageNotFoundError, ValueError, AttributeError, OSError):
        return ""
    return commit if isinstance(commit, str) and _COMMIT.fullmatch(commit) else ""


def machine(proc: Path, system: Path) -> Mapping[str, str | int]:
    """Return CPU count and model, memory, kernel and distribution; unreadable values are left out."""
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
    """Return the value of the first line with that key, or ''."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    pairs = (line.partition(sign) for line in lines)
    return next((value.strip() for name, _, value in pairs if name.strip() == key), "")
