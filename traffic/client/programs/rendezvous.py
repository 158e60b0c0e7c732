"""Exchange of data between ranks before they begin: small files in their common folder.

They poll every few milliseconds: the folder is memory, and preparation is not measured.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

_LOOK_S = 0.005


class Meeting:
    """The folder of HPN_RENDEZVOUS. Every wait ends after ``patience_s``."""

    def __init__(self, folder: Path, patience_s: float) -> None:
        self._folder = folder
        self._patience_s = patience_s

    def tell(self, name: str, text: str) -> None:
        """Publish a text for all ranks, atomically."""
        draft = self._folder / f".{name}.{os.getpid()}"
        draft.write_text(text)
        draft.rename(self._folder / name)

    def hear(self, name: str) -> str:
        """Wait for the text of that name and return it. TimeoutError."""
        until = time.monotonic() + self._patience_s
        while True:
            try:
                return (self._folder / name).read_text()
            except FileNotFoundError:
                if time.monotonic() >= until:
                    raise TimeoutError(f"{name} did not come in {self._patience_s:g} s") from None
            time.sleep(_LOOK_S)
