"""Files that a command writes to a place that the user names.

Changes when a place that cannot be written has to be reported in another way.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from hpn.testbed.errors import HpnError, InputError, MachineError
from hpn.testbed.files.replacing import replace, replace_text

_NO_PLACE = {
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.EEXIST,
}


def write(path: Path, content: str | bytes, option: str = "--out") -> None:
    """Replace the file that ``option`` names in one step.

    InputError if the place is unusable, MachineError if writing fails, as on a full disk; then no file was written.
    """
    try:
        if isinstance(content, bytes):
            replace(path, content)
        else:
            replace_text(path, content)
    except OSError as error:
        raise _told(path, error, option) from error


def check_free(path: Path, force: bool, option: str = "--out") -> None:
    """Raise InputError if something exists at the place of a new file, unless ``force`` allows overwriting."""
    if not force and os.path.lexists(path):
        raise InputError(f"{path} is there already; choose another {option}, or say --force")


def make_folder(path: Path, option: str) -> None:
    """Create the folder that ``option`` names, if missing. Errors as for ``write``."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _told(path, error, option) from error


def _told(path: Path, error: OSError, option: str) -> HpnError:
    why = f"cannot write {path}: {error.strerror}"
    if error.errno in _NO_PLACE:
        return InputError(f"{why}; choose another {option}")
    return MachineError(f"{why}; make room, or choose another {option}")
