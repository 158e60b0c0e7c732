"""Arrays of records on disk, compressed: a ``.npz`` file that ``numpy.load`` reads, and repeats to the byte.

Changes when records are stored in another way. An array lies there as its bytes' planes, the first byte of every record
and then the second: that packs six times better, and ``ascontiguousarray(planes.T).reshape(-1).view(dtype)`` undoes it.
What is read was perhaps written by somebody else: names, types and sizes must be those the reader expects, nothing is
unpickled, and no more is unpacked than the reader said.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from testbed.errors import InputError, MachineError

Array = npt.NDArray[np.void]

_NO_TIME = (1980, 1, 1, 0, 0, 0)  # the first that the format knows: equal arrays give equal files
_LEVEL = 6
_MEMORY_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Wanted:
    """What must be in a file: records of that type, so many."""

    dtype: np.dtype[np.void]
    count: int

    @property
    def size(self) -> int:
        """Bytes unpacked."""
        return self.dtype.itemsize * self.count


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Replace the file in one step. OSError when it cannot be written."""
    new = path.with_name(f".{path.name}.new")
    with zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", _NO_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, _planes(array), version=(1, 0), allow_pickle=False)
    os.replace(new, path)


def read_arrays(path: Path, wanted: Mapping[str, Wanted]) -> dict[str, Array]:
    """Read the arrays, just those ``wanted``. InputError when they are not, MachineError when too large."""
    check_memory(path, sum(each.size for each in wanted.values()))
    try:
        with zipfile.ZipFile(path) as archive:
            found = sorted(archive.namelist())
            if found != sorted(f"{name}.npy" for name in wanted):
                raise _damaged(path, f"it holds {len(found)} arrays, not just {', '.join(wanted)}")
            return {name: _member(path, archive, name, each) for name, each in wanted.items()}
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; was the run made with --keep-records?") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise _damaged(path, str(error)) from error


def check_memory(path: Path, needed: int) -> None:
    """MachineError when the records at ``path`` take ``needed`` bytes, and that is more than one process should."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > memory * _MEMORY_SHARE:
        raise MachineError(
            f"{path}: {needed / 1e9:.1f} GB of records, more than {_MEMORY_SHARE:.0%} of this machine's memory"
        )


def _member(path: Path, archive: zipfile.ZipFile, name: str, wanted: Wanted) -> Array:
    with archive.open(f"{name}.npy") as member:
        shape, dtype = _header(path, member, name)
        expected = (wanted.dtype.itemsize, wanted.count)
        if shape != expected or dtype != np.uint8:
            raise _damaged(path, f"{name} is {shape} of {dtype}, not {expected} of bytes")
        content = _exactly(member, wanted.size)
        if len(content) != wanted.size or member.read(1):
            raise _damaged(path, f"{name} is not {wanted.size} bytes long")
    planes = np.frombuffer(content, np.uint8).reshape(expected)
    return np.ascontiguousarray(planes.T).reshape(-1).view(wanted.dtype)


def _planes(array: Array) -> npt.NDArray[np.uint8]:
    flat = np.frombuffer(array.tobytes(), np.uint8)
    return np.ascontiguousarray(flat.reshape(len(array), array.dtype.itemsize).T)


def _exactly(member: IO[bytes], size: int) -> bytes:
    """Read at most ``size`` bytes, of however many there are."""
    parts, left = [], size
    while left and (part := member.read(min(left, 1 << 24))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _header(path: Path, member: IO[bytes], name: str) -> tuple[tuple[int, ...], np.dtype[np.void]]:
    """Shape and type as the array's own header says. InputError when it is none of ours."""
    try:
        if np.lib.format.read_magic(member) != (1, 0):
            raise _damaged(path, f"{name} is of another format")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(member)
    except (ValueError, SyntaxError, TypeError) as error:
        raise _damaged(path, f"{name}: {error}") from error
    if fortran:
        raise _damaged(path, f"{name} is in the order of Fortran")
    return shape, dtype


def _damaged(path: Path, why: str) -> InputError:
    return InputError(f"{path} is damaged or of another version ({why}); repeat the run")
