"""Appending fixed-size records to a file in large writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

_RECORDS = 8192  # 256 KB of 32-byte records


class RecordFile:
    """A file of records of one dtype, written when the buffer is full and at ``close``. OSError on failure."""

    def __init__(self, path: Path, dtype: np.dtype[np.void]) -> None:
        self.path = path
        self._file = path.open("wb", buffering=0)
        self._buffer = np.zeros(_RECORDS, dtype)
        self._used = 0

    def append(self, records: npt.NDArray[np.void]) -> None:
        """Append ``records`` in order."""
        while len(records):
            part = records[: _RECORDS - self._used]
            self._buffer[self._used : self._used + len(part)] = part
            self._used += len(part)
            records = records[len(part) :]
            if self._used == _RECORDS:
                self.flush()

    def flush(self) -> None:
        """Write the buffered records."""
        view = self._buffer.view(np.uint8).data[: self._used * self._buffer.itemsize]
        while view:
            view = view[self._file.write(view) :]
        self._used = 0

    def close(self) -> None:
        """Write the rest and close."""
        self.flush()
        self._file.close()
