"""Version check between machines: a digest of hpn's code and of the drills that come with it."""

from __future__ import annotations

import hashlib

from hpn.testbed.package import ROOT, own_files

_KINDS = ("*.py", "*.yaml")


def code_digest() -> str:
    """Return the digest of hpn's files on this machine, which a job's process would run now."""
    digest = hashlib.sha256()
    for path in sorted(path for kind in _KINDS for path in own_files(kind)):
        digest.update(f"{path.relative_to(ROOT)}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()
