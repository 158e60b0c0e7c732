"""Detection of usable KVM: by booting a guest, cached until the machine reboots.

/dev/kvm alone is not enough: if this machine is a guest itself, it may exist and never run one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from hpn.testbed.errors import MachineError
from hpn.testbed.vm.kernel_cache import cache_folder

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def problem(kernel: str, boot: Callable[[], object], device: Path = Path("/dev/kvm")) -> str | None:
    """Return why guests of that kernel release cannot use KVM here; None when they can.

    ``boot`` boots one with KVM and raises MachineError when it does not come up.
    """
    if not device.exists():
        return "no /dev/kvm"
    if not os.access(device, os.R_OK | os.W_OK):
        return "/dev/kvm is not ours to use"
    now = {"boot": _BOOT_ID.read_text().strip(), "kernel": kernel}
    known = _remembered()
    if known is None or any(known.get(key) != value for key, value in now.items()):
        known = {**now, "problem": _tried(boot)}
        _remember(known)
    return known["problem"] or None


def _tried(boot: Callable[[], object]) -> str:
    try:
        boot()
    except MachineError:
        return "a guest was not up in time with this /dev/kvm"
    return ""


def _remembered() -> dict[str, str] | None:
    try:
        found = json.loads((cache_folder() / "kvm.json").read_text())
    except (OSError, ValueError, MachineError):
        return None
    whole = isinstance(found, dict) and all(isinstance(found.get(key), str) for key in ("boot", "kernel", "problem"))
    return found if whole else None


def _remember(known: dict[str, str]) -> None:
    """Store the result; if that fails, the next process has to detect it again."""
    try:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"kvm.{os.getpid()}").write_text(json.dumps(known))
        os.replace(folder / f"kvm.{os.getpid()}", folder / "kvm.json")
    except (OSError, MachineError):
        return
