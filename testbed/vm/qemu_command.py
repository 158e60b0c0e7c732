"""QEMU's command line for a guest on the host's files: kernel, initramfs and devices as virtme-ng chooses them.

Changes when virtme-ng does. Its dry run lists every argument; its init and related arguments are replaced by ours.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.process import programs
from hpn.testbed.vm import qemu_initrd

MODULES = ("virtio_console", "overlay", "bonding", "veth", "sch_tbf", "sch_htb", "cls_u32", "sch_netem")
_WHERE_THERE = ("sch_red",)  # optional for a lab
"""Modules loaded at boot; the kernel loads the others on demand."""

MODULES_DIR = Path("/lib/modules")
_NEEDED = ("virtio_pci", "9p", "9pnet_virtio", *MODULES, "nf_tables", "nft_dup_netdev", "nft_fwd_netdev")
_PACKAGES = {"x86_64": "qemu-system-x86", "aarch64": "qemu-system-arm"}
_KERNEL_OPTIONS = "mitigations=off psi=1 audit=0 apparmor=0 quiet"  # no other users there, and emulation is slow
_PREPARE_S = 60.0


@dataclass(frozen=True, slots=True)
class Kernel:
    """An installed kernel."""

    image: Path
    release: str


def newest_kernel(boot: Path = Path("/boot"), modules: Path = MODULES_DIR) -> Kernel | None:
    """Return the newest kernel in ``boot`` that has modules; None when there is none."""
    found = [Kernel(path, path.name.partition("-")[2]) for path in boot.glob("vmlinuz-*")]
    return max(
        (kernel for kernel in found if (modules / kernel.release).is_dir()),
        key=lambda kernel: _numbers(kernel.release),
        default=None,
    )


def kernel_at(image: Path, modules: Path = MODULES_DIR) -> Kernel:
    """Return the kernel in that file, vmlinuz-RELEASE. MachineError when its modules are not installed."""
    release = image.name.partition("-")[2]
    if not image.is_file() or not release or not (modules / release).is_dir():
        raise MachineError(f"{image} is no installed kernel: name a /boot/vmlinuz-RELEASE with /lib/modules/RELEASE")
    return Kernel(image, release)


def missing_tools(kernel: Kernel | None, modules: Path = MODULES_DIR) -> Iterator[str]:
    """Yield what this machine lacks to boot ``kernel``, each with a remedy."""
    machine = platform.machine()
    if machine not in _PACKAGES:
        yield f"no QEMU engine for {machine} machines: use --engine host"
        return
    if shutil.which(f"qemu-system-{machine}") is None:
        yield f"qemu-system-{machine}: apt install {_PACKAGES[machine]}"
    if virtme_run() is None:
        yield "virtme-ng: pip install virtme-ng"
    if shutil.which("busybox") is None and shutil.which("busybox-static") is None:
        yield "a static busybox: apt install busybox-static"
    if programs.find("modprobe") is None:
        yield "modprobe: apt install kmod"
    if programs.find("file") is None:  # virtme-ng calls it on the kernel image
        yield "file: apt install file"
    if kernel is None:
        yield f"a kernel in /boot: apt install linux-image-{'arm64' if machine == 'aarch64' else 'amd64'}"
    elif not os.access(kernel.image, os.R_OK):
        yield f"{kernel.image} is not readable: sudo chmod a+r {kernel.image}"
    else:
        absent = ", ".join(missing_modules(kernel, modules))
        if absent:
            yield f"kernel {kernel.release} has no {absent}: apt install linux-image-amd64 or name another kernel"


def missing_modules(kernel: Kernel, modules: Path = MODULES_DIR) -> list[str]:
    """Return the modules that a lab needs and that kernel has neither built in nor as files."""
    have: set[str] = set()
    for index in ("modules.dep", "modules.builtin"):
        try:
            text = (modules / kernel.release / index).read_text()
        except OSError:
            continue
        have |= {Path(line.partition(":")[0]).name.partition(".")[0].replace("-", "_") for line in text.splitlines()}
    return [name for name in _NEEDED if name not in have]


def virtme_run() -> Path | None:
    """Return virtme-ng's lower-level command, of this Python environment or of the machine."""
    beside = Path(sys.executable).parent / "virtme-run"
    found = str(beside) if beside.exists() else shutil.which("virtme-run")
    return Path(found) if found else None


@dataclass(frozen=True, slots=True)
class Shape:
    """Size of the guest and its writable folders; ``kvm``: hardware virtualisation instead of emulation."""

    memory_mb: int
    cpus: int
    writable: tuple[Path, ...]
    kvm: bool
    terminal: int | None = None  # descriptor of a socket that becomes qemu_initrd.TERMINAL


def prepare(kernel: Kernel, shape: Shape, folder: Path, script: Path) -> list[str]:
    """Return QEMU's command line, and write the initramfs into ``folder``. MachineError with virtme-ng's message."""
    program, initrd = virtme_run(), folder / "initrd"
    if program is None:
        raise MachineError("virtme-run is missing: pip install virtme-ng")
    arguments = ["--kimg", str(kernel.image), "--mods", "auto", "--force-9p", "--show-boot-console"]
    arguments += ["--disable-monitor", "--cpus", str(shape.cpus), "--memory", f"{shape.memory_mb}M"]
    arguments += ["--save-initramfs", str(initrd), "--show-command", "--dry-run", "--script-sh", "true"]
    arguments += [] if shape.kvm else ["--disable-kvm"]
    for path in shape.writable:
        arguments += ["--rwdir", str(path)]
    done = subprocess.run(
        [str(program), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_PREPARE_S,
        check=False,
    )
    if done.returncode != 0 or not done.stdout:
        said = " | ".join(done.stderr.strip().splitlines()[-3:]) or f"exit code {done.returncode}"
        raise MachineError(f"virtme-ng cannot prepare a guest ({said}); is its version 1.31 or newer?")
    with initrd.open("ab") as archive:
        archive.write(bytes(-initrd.stat().st_size % 512))
        first = qemu_initrd.init(shape.writable, (*MODULES, *_WHERE_THERE), script)
        archive.write(qemu_initrd.cpio("init", first, 0o755))
    return [*adapt(shlex.split(done.stdout)), *terminal_arguments(shape)]


def adapt(command: Sequence[str]) -> list[str]:
    """Return virtme-ng's command line for our init, without the kernel options of its own."""
    adapted = list(command)
    at = adapted.index("-append") + 1
    kept = [
        word
        for word in shlex.split(adapted[at])
        if not word.startswith(("init=", "virtme", "earlyprintk=", "loglevel="))
    ]
    adapted[at] = " ".join([*kept, _KERNEL_OPTIONS])
    # It would write its init's exit code here, and the file would never be removed.
    return [re.sub(r"^(file,id=ret,path=).*", r"\1/dev/null", word) for word in adapted]


def terminal_arguments(shape: Shape) -> tuple[str, ...]:
    """Return a second serial line on the socket, if there is one. MachineError if the machine has only one.

    Not a virtio console: QEMU drops output there that the socket cannot take at once.
    """
    if shape.terminal is None:
        return ()
    if platform.machine() != "x86_64":
        raise MachineError("a shell in a QEMU guest needs an x86-64 machine; name a command: hpn vm shell -- COMMAND")
    return "-chardev", f"socket,id=terminal,fd={shape.terminal}", "-serial", "chardev:terminal"


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", release))
