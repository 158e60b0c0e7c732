"""Compressed arrays of records on disk: a ``.npz`` file that ``numpy.load`` reads and that is byte-for-byte repeatable.

Changes when records are stored in another way. An array is stored as byte planes: the first byte of every record, then
the second, and so on. That compresses six times better; ``ascontiguousarray(planes.T).reshape(-1).view(dtype)`` undoes
it. Files are untrusted input: names, types and sizes must match what the reader expects. Nothing is unpickled, and no
more is unpacked than the reader expects.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from hpn.results.run.files import check_memory, damaged, opened
from hpn.testbed.errors import InputError
from hpn.traffic.streams.columns import Column, Table

_NO_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest date of the format: equal arrays give equal files
_LEVEL = 6
_PACKED = {zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED}
_PART = 1 << 22  # bytes unpacked at a time


@dataclass(frozen=True, slots=True)
class ExpectedArray:
    """Expected content of a file: the record type and the number of records."""

    dtype: np.dtype[np.void]
    count: int

    @property
    def size(self) -> int:
        """Size in bytes after unpacking."""
        return self.dtype.itemsize * self.count


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """Records in such a file. Reading raises InputError when they do not match ``wanted``."""

    path: Path
    name: str
    wanted: ExpectedArray

    @property
    def dtype(self) -> np.dtype[np.void]:
        """Type of a record."""
        return self.wanted.dtype

    def __len__(self) -> int:
        return self.wanted.count

    def columns(self) -> Iterator[tuple[str, Column]]:
        """Yield every field with its values, in the order of the type."""
        with _opened(self.path) as archive, archive.open(f"{self.name}.npy") as member:
            self._check(member)
            for name in self.dtype.names or ():
                yield name, self._column(member, self.dtype[name])
            if member.read(1):
                raise self._too_short_or_long()

    def _check(self, member: IO[bytes]) -> None:
        shape, dtype = _header(self.path, member, self.name)
        expected = (self.dtype.itemsize, len(self))
        if shape != expected or dtype != np.uint8:
            raise damaged(self.path, f"{self.name} is {shape} of {dtype}, not {expected} of bytes")

    def _column(self, member: IO[bytes], dtype: np.dtype[np.generic]) -> Column:
        made = np.empty(len(self), dtype)
        planes = made.view(np.uint8).reshape(len(self), dtype.itemsize)
        for plane in range(dtype.itemsize):
            at = 0
            while at < len(self):
                content = member.read(min(len(self) - at, _PART))
                if not content:
                    raise self._too_short_or_long()
                planes[at : at + len(content), plane] = np.frombuffer(content, np.uint8)
                at += len(content)
        return made

    def _too_short_or_long(self) -> InputError:
        return damaged(self.path, f"{self.name} is not {self.wanted.size} bytes long")


def write_arrays(path: Path, tables: Mapping[str, Table]) -> None:
    """Write the arrays, replacing the file in one step. OSError when it cannot be written."""
    new = path.with_name(f".{path.name}.new")
    with zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
        for name, table in tables.items():
            entry = zipfile.ZipInfo(f"{name}.npy", _NO_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as member:
                _write(member, table)
    os.replace(new, path)


def stored(path: Path, wanted: Mapping[str, ExpectedArray]) -> dict[str, Stored]:
    """Return the records in a file, which must hold exactly those in ``wanted``.

    InputError when it holds others, MachineError when they are too large for memory.
    """
    check_memory(path, sum(each.size for each in wanted.values()))
    with _opened(path) as archive:
        found = sorted(archive.namelist())
        packed = {each.compress_type for each in archive.infolist()}
    if found != sorted(f"{name}.npy" for name in wanted):
        raise damaged(path, f"it holds {len(found)} arrays, not just {', '.join(wanted)}")
    if not packed <= _PACKED:
        raise damaged(path, "its arrays are packed in a way of their own")
    return {name: Stored(path, name, each) for name, each in wanted.items()}


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open the archive, wherever the run folder is; errors of its format become InputError."""
    try:
        with opened(path) as file, zipfile.ZipFile(file) as archive:
            yield archive
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
        ValueError,
        OverflowError,
    ) as error:
        raise damaged(path, str(error)) from error


def _write(member: IO[bytes], table: Table) -> None:
    """Write the planes of all columns as one array of bytes."""
    shape = (table.dtype.itemsize, len(table))
    np.lib.format.write_array_header_1_0(member, {"descr": "|u1", "fortran_order": False, "shape": shape})
    for _, column in table.columns():
        planes = np.ascontiguousarray(column).view(np.uint8).reshape(len(column), column.itemsize)
        for plane in range(column.itemsize):
            member.write(planes[:, plane].tobytes())


def _header(path: Path, member: IO[bytes], name: str) -> tuple[tuple[int, ...], np.dtype[np.void]]:
    """Return shape and type from the array's own header. InputError when hpn did not write it."""
    try:
        if np.lib.format.read_magic(member) != (1, 0):
            raise damaged(path, f"{name} is of another format")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(member)
    except (ValueError, SyntaxError, TypeError) as error:
        raise damaged(path, f"{name}: {error}") from error
    if fortran:
        raise damaged(path, f"{name} is in the order of Fortran")
    return shape, dtype
