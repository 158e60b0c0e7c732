"""Cache for completion between key presses: importing the commands takes longer than a key press may.

Changes when something else makes cached data out of date. Files are in the cache folder, named by a checksum of the
names, sizes and times of hpn's own files. With plug-ins nothing is cached.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

from hpn.testbed import plugins
from hpn.testbed.errors import MachineError
from hpn.testbed.package import FOLDER, PACKAGES

Kept = TypeVar("Kept")

_OLD_S = 30 * 86_400


def kept(name: str, make: Callable[[], Kept]) -> Kept:
    """Return the result of ``make``, from the cache if possible; otherwise compute and cache it. It must be valid JSON.

    ``name`` consists of a-z, 0-9 and '-'; ``digest`` makes one from other data.
    """
    if plugins.folders():
        return make()
    try:
        file = _file(name)
        found: Kept = json.loads(file.read_bytes())
        return found
    except (OSError, ValueError, MachineError):
        made = make()
    with suppress(OSError, MachineError):
        _write(_file(name), json.dumps(made))
    return made


def digest(*texts: str | bytes) -> str:
    """Return a name for data that depends on these."""
    made = hashlib.sha256()
    for text in texts:
        made.update(hashlib.sha256(os.fsencode(text)).digest())
    return made.hexdigest()[:16]


def _file(name: str) -> Path:
    from hpn.testbed.vm.kernel_cache import cache_folder

    return cache_folder() / "completion" / f"{_version()}-{name}.json"


@cache
def _version() -> str:
    """Return a checksum of hpn's own files."""
    folders = (FOLDER, *(FOLDER / package for package in PACKAGES))
    return digest(sys.version, *sorted({each for folder in folders for each in _sources(folder)}))


def _sources(folder: Path) -> Iterator[str]:
    for entry in os.scandir(folder):
        if entry.name.startswith(("_", ".")) and entry.name != "__init__.py":
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _sources(Path(entry.path))
        elif entry.name.endswith((".py", ".yaml")):
            found = entry.stat()
            yield f"{entry.path} {found.st_size} {found.st_mtime_ns}"


def _write(file: Path, text: str) -> None:
    """Write the file, and delete files that were not written for a long time."""
    from hpn.testbed.files.replacing import replace_text

    file.parent.mkdir(parents=True, exist_ok=True)
    replace_text(file, text)
    for other in file.parent.glob("*.json"):
        with suppress(OSError):
            if other.stat().st_mtime < time.time() - _OLD_S:
                other.unlink()
