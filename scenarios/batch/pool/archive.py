"""Folder as bytes, for a worker without a shared file system: packed there, checked and unpacked here.

Received archives are untrusted input. A path must stay in the folder. The format has regular files only, so no link can
lead out. Sizes are checked before anything is written. The format is zlib-compressed: the length of a JSON list of
paths and sizes, that list, then the contents.
"""

from __future__ import annotations

import json
import os
import stat
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from hpn.testbed.errors import MachineError

MOST_BYTES = 1 << 30
"""Maximum size of all files, unpacked.

A run folder has about 1 MB, with --keep-records about 100 MB for each minute.
"""
MOST_PACKED = 256 << 20
"""Maximum size for transport, as it is held in memory by the worker, the scheduler and this process."""
MOST_FILES = 20_000
_LONGEST_LIST = 16 << 20
_LONGEST_NAME, _DEEPEST = 255, 16
_CHUNK = 1 << 20
_WAY_OUT = "leave --keep-records out, or run it without --scheduler"


def pack(folder: Path) -> bytes:
    """Pack all regular files below a folder. MachineError when there is something else, or too much for transport."""
    found = sorted(_files(folder, folder))
    sizes = [(name, size) for name, size, _ in found]
    total = sum(size for _, size in sizes)
    if total > MOST_BYTES or len(sizes) > MOST_FILES:
        raise MachineError(
            f"a run left {len(sizes)} files of {total >> 20} MB, at most {MOST_FILES} of {MOST_BYTES >> 20} MB can be"
            f" brought home; {_WAY_OUT}"
        )
    head = json.dumps(sizes).encode()
    squeeze = zlib.compressobj(level=3)
    packed = bytearray(squeeze.compress(struct.pack(">I", len(head)) + head))
    for name, size, path in found:
        with path.open("rb") as file:
            for chunk in _exactly(file, size, name):
                packed += squeeze.compress(chunk)
                _check(packed)
    packed += squeeze.flush()
    _check(packed)
    return bytes(packed)


def _check(packed: bytearray) -> None:
    if len(packed) > MOST_PACKED:
        raise MachineError(f"a run left more than {MOST_PACKED >> 20} MB, packed; {_WAY_OUT}")


def unpack(packed: bytes, folder: Path) -> None:
    """Unpack ``packed`` into an empty folder. MachineError when it does not come from ``pack``."""
    if len(packed) > MOST_PACKED:
        raise _damaged(f"{len(packed) >> 20} MB")
    inflated = _Inflated(packed)
    (length,) = struct.unpack(">I", b"".join(inflated.read(4)))
    if length > _LONGEST_LIST:
        raise _damaged("its list of files is too long")
    listed = _list(b"".join(inflated.read(length)))
    for name, size in listed:
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            with os.fdopen(number, "wb") as file:
                for chunk in inflated.read(size):
                    file.write(chunk)
        except OSError as error:
            if error.errno in (28, 122):  # no space left, or the user's quota is exceeded
                raise
            raise _damaged(f"cannot write {name!r}: {error.strerror}") from error
    inflated.is_all()


def _files(folder: Path, root: Path) -> Iterator[tuple[str, int, Path]]:
    for entry in os.scandir(folder):
        told = entry.stat(follow_symlinks=False)
        path = Path(entry.path)
        if stat.S_ISDIR(told.st_mode):
            yield from _files(path, root)
        elif stat.S_ISREG(told.st_mode):
            yield str(path.relative_to(root)), told.st_size, path
        else:
            raise MachineError(f"a run left {path.relative_to(root)}, which is no file: it cannot be brought home")


def _exactly(file: BinaryIO, size: int, name: str) -> Iterator[bytes]:
    while size:
        chunk = file.read(min(size, _CHUNK))
        if not chunk:
            raise MachineError(f"{name} became shorter while it was brought home; run it again")
        size -= len(chunk)
        yield chunk


def _list(text: bytes) -> list[tuple[str, int]]:
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError):
        raise _damaged("it has no list of files") from None
    if not isinstance(listed, list) or len(listed) > MOST_FILES:
        raise _damaged("its list of files is none, or too long")
    found = [_entry(each) for each in listed]
    if len({name for name, _ in found}) < len(found):
        raise _damaged("a file comes twice")
    if sum(size for _, size in found) > MOST_BYTES:
        raise _damaged(f"more than {MOST_BYTES >> 20} MB")
    return found


def _entry(each: object) -> tuple[str, int]:
    match each:
        case [str() as name, int() as size] if size >= 0 and not isinstance(size, bool):
            parts = name.split("/")
            if len(parts) <= _DEEPEST and all(map(_is_name, parts)):
                return name, size
    raise _damaged(f"it names {str(each)[:80]!r}")


def _is_name(part: str) -> bool:
    return part not in ("", ".", "..") and part.isprintable() and len(part.encode(errors="replace")) <= _LONGEST_NAME


class _Inflated:
    """Decompressed zlib stream, with no more in memory than requested."""

    def __init__(self, packed: bytes) -> None:
        self._inflate = zlib.decompressobj()
        self._left = packed

    def read(self, size: int) -> Iterator[bytes]:
        """Yield exactly ``size`` bytes, in pieces."""
        while size:
            chunk = self._some(min(size, _CHUNK))
            if not chunk:
                raise _damaged("it ends too early")
            size -= len(chunk)
            yield chunk

    def is_all(self) -> None:
        """Raise MachineError when there is more."""
        if self._some(1) or not self._inflate.eof or self._inflate.unused_data:
            raise _damaged("there is more than its list says, or less")

    def _some(self, most: int) -> bytes:
        try:
            found = self._inflate.decompress(self._left, most)
        except zlib.error:
            raise _damaged("it is not compressed by zlib") from None
        self._left = self._inflate.unconsumed_tail
        return found


def _damaged(why: str) -> MachineError:
    return MachineError(f"what a worker sent home is nothing that hpn packs ({why}); look at that worker")
