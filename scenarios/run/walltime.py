"""Wall time of a run, taken where people live: on this machine, outside of any guest and its clock.

Changes when a run should be dated otherwise.
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
    """Date the run that is made within: begin and end go into its manifest, whatever becomes of it.

    Its folder is empty before, so a manifest that is there afterwards is this run's.
    """
    begin = _now()
    try:
        yield
    finally:
        folder = RunFolder(claim.path)
        if claim.lost() is None:
            with suppress(InputError):  # it did not get as far as a manifest
                folder.write_manifest(replace(folder.manifest(), wall_begin=begin, wall_end=_now()))


def _now() -> str:
    return datetime.now(UTC).astimezone().isoformat(timespec="milliseconds")
