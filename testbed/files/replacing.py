"""Atomic file writes: complete or not at all.

Changes when the way of writing a file changes. Two cases are written in place: anything but a regular file, such as
/dev/stdout or a pipe, and a file in a folder without write permission.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

_OF_PROCESSES = ("/dev/", "/proc/")
_LONGEST = 50  # characters of a name that the temporary one begins with: a file system takes 255 bytes


def replace(path: Path, content: bytes) -> None:
    """Replace a file atomically: a reader, a crash or a full disk leaves the old or the new content, never a mixture.

    A symlink remains one, and permissions are preserved. OSError with the file's name.
    """
    try:
        if _is_written_through(path):
            path.write_bytes(content)
        else:
            _replace(Path(os.path.realpath(path)), content)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def replace_text(path: Path, text: str) -> None:
    """Replace a file by UTF-8 text; lone surrogates, as file names may contain them, are escaped."""
    replace(path, text.encode(errors="backslashreplace"))


def _is_written_through(path: Path) -> bool:
    if str(path.absolute()).startswith(_OF_PROCESSES):
        return True
    try:
        return not stat.S_ISREG(path.stat().st_mode) or not os.access(path.parent, os.W_OK | os.X_OK)
    except FileNotFoundError:
        return False


def _replace(path: Path, content: bytes) -> None:
    new = path.with_name(f".{path.name[:_LONGEST]}.{os.getpid()}.new")
    try:
        new.write_bytes(content)
        with suppress(FileNotFoundError):
            new.chmod(stat.S_IMODE(path.stat().st_mode))
        os.replace(new, path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
