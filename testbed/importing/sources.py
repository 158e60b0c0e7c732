"""The files of an import, read within limits. Changes when another kind of file must be refused."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from hpn.testbed.errors import InputError
from hpn.testbed.files.bounded import read_bounded
from hpn.testbed.files.document import shorten
from hpn.testbed.importing.importer import SourceText

MOST_BYTES = 64 * 10**6
MOST_BYTES_TOGETHER = 256 * 10**6


def read_sources(paths: Sequence[Path]) -> tuple[SourceText, ...]:
    """Read the files. InputError for one that is too large, no text, or a symlink out of its folder."""
    found = []
    room = MOST_BYTES_TOGETHER
    for path in paths:
        source = _read(path)
        room -= len(source.text)
        if room < 0:
            raise InputError(
                f"the files together exceed {MOST_BYTES_TOGETHER // 10**6} MB; import a part of the network"
            )
        found.append(source)
    return tuple(found)


def _read(path: Path) -> SourceText:
    shown = shorten(os.fspath(path), 200, quoted=False)
    _refuse_outside(path, shown)
    try:
        raw = read_bounded(path, MOST_BYTES, "file of a network")
    except FileNotFoundError:
        raise InputError(f"{shown}: no such file; check the path") from None
    except OSError as error:
        raise InputError(f"{shown}: cannot be read ({error.strerror}); name a readable file") from None
    if b"\0" in raw:
        raise InputError(f"{shown}: a binary file (it holds NUL bytes); name a text file")
    try:
        return SourceText(shown, raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(f"{shown}:{line}: not UTF-8 text; save the file as UTF-8") from None


def _refuse_outside(path: Path, shown: str) -> None:
    """Refuse a symlink that leads out of its folder: a folder of somebody else's may hold one to any file."""
    try:
        real, folder = Path(os.path.realpath(path)), Path(os.path.realpath(path.parent))
    except ValueError:  # a NUL in the name
        raise InputError(f"{shown}: not a file name; remove the NUL character") from None
    if path.is_symlink() and not real.is_relative_to(folder):
        raise InputError(f"{shown}: a link to {shorten(str(real), 200)}, outside of its folder; name that file itself")
