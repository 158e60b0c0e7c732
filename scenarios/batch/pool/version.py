"""Version check between machines: a digest of hpn's code and of the drills that come with it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from hpn.testbed.package import FOLDER, ROOT, own_files

_KINDS = ("*.py", "*.yaml")


def code_digest(without: Sequence[str] = ()) -> str:
    """Return the digest of hpn's files on this machine, which a job's process would run now.

    ``without``: folders below ``hpn`` to leave out, such as 'scenarios/library'.
    """
    digest = hashlib.sha256()
    out = tuple(FOLDER / each for each in without)
    for path in sorted(path for kind in _KINDS for path in own_files(kind)):
        if any(path.is_relative_to(each) for each in out):
            continue
        digest.update(f"{path.relative_to(ROOT)}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()
