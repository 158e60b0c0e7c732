"""What tells whether another machine has the same hpn: a digest of its code and of the drills that come with it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from testbed import PACKAGES

_ROOT = Path(__file__).resolve().parents[2]
_KINDS = ("*.py", "*.yaml")


def code_digest() -> str:
    """Of the product's files on this machine, which is what a job's process would run now."""
    digest = hashlib.sha256()
    for path in sorted(path for room in PACKAGES for kind in _KINDS for path in (_ROOT / room).rglob(kind)):
        digest.update(f"{path.relative_to(_ROOT)}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()
