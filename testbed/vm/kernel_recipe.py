"""What a kernel of ours is made with: its configuration, and patches, each with the sources that need it.

Changes when a kernel is to have something more. A source is asked what it lacks; its version is not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent
FRAGMENT = _HERE / "uml-kernel.config"


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch and whether an unpacked source needs it; one that needs it and does not take it cannot be used."""

    path: Path
    needed: Callable[[Path], bool] = lambda _tree: True


def _has(file: str, text: str) -> Callable[[Path], bool]:
    """Whether that file of a source is there and holds that text."""
    return lambda tree: (tree / file).is_file() and text in (tree / file).read_text(errors="replace")


PATCHES = (
    Patch(_HERE / "uml-kernel.patch"),
    Patch(_HERE / "uml-kernel-polling.patch"),
    Patch(_HERE / "uml-kernel-xstate.patch", _has("arch/x86/um/os-Linux/registers.c", "have_xstate_support")),
    Patch(_HERE / "uml-kernel-rxe.patch", _has("drivers/infiniband/sw/rxe/rxe_net.c", "_output_key(&init_net")),
)
"""Every patch, in the order in which they are applied."""


def needed(tree: Path) -> Iterator[Path]:
    """The patches that this source needs."""
    return (patch.path for patch in PATCHES if patch.needed(tree))


def checksum() -> str:
    """Of the configuration and the patches in this checkout."""
    files = (FRAGMENT, *(patch.path for patch in PATCHES))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
