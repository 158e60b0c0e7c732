"""Kernels built here, in a cache folder: each with its inputs, and found by them.

``CACHE/uml/KEY/`` contains the program ``linux``, its ``config`` and ``kernel.json``. The key is a checksum of source,
recipe and compiler; a kernel of an older recipe is not used any more.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from hpn.testbed.errors import MachineError
from hpn.testbed.vm import kernel_recipe


@dataclass(frozen=True, slots=True)
class Built:
    """A kernel in the cache. ``source`` names package and version or file, with checksum; ``recipe`` is ours."""

    key: str
    release: str
    source: str
    recipe: str
    compiler: str
    build_s: float

    @property
    def program(self) -> Path:
        """Path of the program to boot."""
        return folder() / self.key / "linux"

    @property
    def usable(self) -> bool:
        """True if it is of the current recipe; older ones are not booted any more."""
        return self.recipe == kernel_recipe.checksum()


def cache_folder() -> Path:
    """Return the folder for expensive results: $HPN_CACHE_DIR, else $XDG_CACHE_HOME/hpn, else ~/.cache/hpn.

    MachineError for a user without a home folder.
    """
    if own := os.environ.get("HPN_CACHE_DIR"):
        return Path(own).absolute()
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base).absolute() / "hpn"
    try:
        return Path.home() / ".cache" / "hpn"
    except RuntimeError:  # no HOME, and an uid without a password entry
        raise MachineError("there is no home folder to keep kernels in; set HPN_CACHE_DIR") from None


def folder() -> Path:
    """Return the folder of the kernels."""
    return cache_folder() / "uml"


def key_of(source: str, compiler: str) -> str:
    """Return the cache key of a kernel of the current recipe."""
    return hashlib.sha256("\n".join((source, kernel_recipe.checksum(), compiler)).encode()).hexdigest()[:16]


def all_built() -> Iterator[Built]:
    """Yield every complete kernel in the cache; damaged entries are skipped."""
    for path in sorted(folder().glob("*/kernel.json")):
        try:
            built = Built(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):
            continue
        if built.key == path.parent.name and built.program.is_file():
            yield built


def newest() -> Built | None:
    """Return the newest kernel of the current recipe, None when there is none."""
    return next(reversed(usable()), None)


def usable() -> list[Built]:
    """Return every kernel of the current recipe, the newest last: that one is booted."""
    return sorted((built for built in all_built() if built.usable), key=lambda built: numbers(built.release))


def store(built: Built, program: Path, config: Path) -> None:
    """Store a kernel in the cache atomically. OSError."""
    new = folder() / f".{built.key}.new"
    new.mkdir(parents=True, exist_ok=True)
    for file, name in ((program, "linux"), (config, "config")):
        (new / name).write_bytes(file.read_bytes())
    (new / "linux").chmod(0o755)
    (new / "kernel.json").write_text(json.dumps(asdict(built), indent=2))
    os.replace(new, folder() / built.key)


def numbers(version: str) -> tuple[int, ...]:
    """Parse '6.12.117-1' as (6, 12, 117, 1), for comparison."""
    return tuple(int(digits) for digits in re.findall(r"\d+", version))
