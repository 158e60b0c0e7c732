"""Files written whole or not at all.

Changes when a file has to be written in another way. What is no regular file, as /dev/stdout or a pipe, is written
in place, and so is a file in a folder that is not ours to write.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

_OF_PROCESSES = ("/dev/", "/proc/")
_LONGEST = 50  # characters of a name that a new one begins with: a file system takes 255 bytes


def replace(path: Path, content: bytes) -> None:
    """Replace a file in one step: a reader, a crash or a full disk leaves the old or the new, never half of it.

    A link stays one, and permissions stay as they are. OSError with the file's name.
    """
    try:
        if _is_written_through(path):
            path.write_bytes(content)
        else:
            _replace(Path(os.path.realpath(path)), content)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def replace_text(path: Path, text: str) -> None:
    """The same of a text, as UTF-8; half a surrogate, as a file's name can have it, is escaped."""
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
