"""Column-by-column reading of packet records, so that not all of them are in memory at once.

Changes when the storage layout of records changes. One column at a time is in memory: 48 MB of six million packets, not
192.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.generic]
"""The values of one field."""
Records = npt.NDArray[np.void]

_PART = 1 << 16  # records read at a time


class Table(Protocol):
    """Records of one type, in the order in which they were written."""

    @property
    def dtype(self) -> np.dtype[np.void]:
        """Data type of a record."""

    def __len__(self) -> int:
        """Number of records."""

    def columns(self) -> Iterator[tuple[str, Column]]:
        """Yield every field with its values, in the order of the type. OSError when they cannot be read."""


@dataclass(frozen=True, eq=False)
class InMemory:
    """An array as a table."""

    records: Records

    @property
    def dtype(self) -> np.dtype[np.void]:
        """Data type of a record."""
        return self.records.dtype

    def __len__(self) -> int:
        return len(self.records)

    def columns(self) -> Iterator[tuple[str, Column]]:
        """Yield every field with its values."""
        for name in self.dtype.names or ():
            yield name, self.records[name]


@dataclass(frozen=True, eq=False)
class InFiles:
    """The files of ``traffic.streams.recordfile``, concatenated.

    A half-written last record of a killed process is left out.
    """

    paths: Sequence[Path]
    dtype: np.dtype[np.void]

    def __len__(self) -> int:
        return sum(path.stat().st_size // self.dtype.itemsize for path in self.paths)

    def columns(self) -> Iterator[tuple[str, Column]]:
        """Yield every field with its values; the files are read once for each field."""
        for name in self.dtype.names or ():
            column = np.empty(len(self), self.dtype[name])
            at = 0
            for part in self._parts():
                column[at : at + len(part)] = part[name]
                at += len(part)
            yield name, column

    def _parts(self) -> Iterator[Records]:
        for path in self.paths:
            with path.open("rb", buffering=0) as file:
                while len(part := np.fromfile(file, self.dtype, _PART)):
                    yield part


def whole(table: Table) -> Records:
    """Return all records of a table as one array."""
    made = np.empty(len(table), table.dtype)
    for name, column in table.columns():
        made[name] = column
    return made
