"""Wall time of a run on this machine's clock, outside of any guest.

Changes when a run should be dated differently.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime

from hpn.results.run.claim import Claim
from hpn.results.run.folder import RunFolder
from hpn.testbed.errors import InputError


@contextmanager
def dated(claim: Claim) -> Iterator[None]:
    """Date the run made in this context: its start and end go into its manifest, also after an error.

    Its folder is empty before, so any manifest found afterwards is this run's.
    """
    begin = _now()
    try:
        yield
    finally:
        folder = RunFolder(claim.path)
        if claim.lost() is None:
            with suppress(InputError):  # it ended before it had a manifest
                folder.write_manifest(replace(folder.manifest(), wall_begin=begin, wall_end=_now()))


def _now() -> str:
    return datetime.now(UTC).astimezone().isoformat(timespec="milliseconds")
