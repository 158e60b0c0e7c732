"""Recipe of our kernels: configuration, our own source, and patches, each with a test for the sources that need it.

Changes when our kernels need another feature. The source's content decides on patches, not its version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent
FRAGMENT = _HERE / "uml-kernel.config"


OWN_SOURCE = _HERE / "sch_mmu.c"
"""A queue discipline of ours, compiled into net/sched."""


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch and a test whether an unpacked source needs it; a source that needs it must accept it."""

    path: Path
    needed: Callable[[Path], bool] = lambda _tree: True


def _has(file: str, text: str, found: bool = True) -> Callable[[Path], bool]:
    """Return a test whether a file of a source exists and contains a text, or does not if not ``found``."""
    return lambda tree: (tree / file).is_file() and (text in (tree / file).read_text(errors="replace")) == found


PATCHES = (
    Patch(_HERE / "uml-kernel.patch"),
    Patch(_HERE / "uml-kernel-polling.patch"),
    Patch(_HERE / "uml-kernel-faults.patch", _has("arch/um/kernel/trap.c", "flush_tlb_page", False)),
    Patch(_HERE / "uml-kernel-xstate.patch", _has("arch/x86/um/os-Linux/registers.c", "have_xstate_support")),
    Patch(_HERE / "uml-kernel-rxe.patch", _has("drivers/infiniband/sw/rxe/rxe_net.c", "_output_key(&init_net")),
)
"""Every patch, in the order of application."""


def needed(tree: Path) -> Iterator[Path]:
    """Yield the patches that this source needs."""
    return (patch.path for patch in PATCHES if patch.needed(tree))


def add_own_source(tree: Path) -> None:
    """Add our source to an unpacked one."""
    folder = tree / "net" / "sched"
    (folder / OWN_SOURCE.name).write_bytes(OWN_SOURCE.read_bytes())
    with (folder / "Makefile").open("a") as makefile:
        makefile.write(f"obj-y += {OWN_SOURCE.stem}.o\n")


def checksum() -> str:
    """Return the checksum of the configuration, our source and the patches in this checkout."""
    files = (FRAGMENT, OWN_SOURCE, *(patch.path for patch in PATCHES))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
