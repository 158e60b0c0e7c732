"""Facts of a run that are needed to repeat it or to doubt it.

Changes when another fact belongs in every result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from hpn.results.run.files import parse
from hpn.testbed.errors import InputError
from hpn.testbed.vm.engines import has_virtual_time

FORMAT = 2
"""Format of run folders that this hpn writes; docs/run-folder.md describes each format."""
_KNOWN = (1, FORMAT)


@dataclass(frozen=True, slots=True)
class Manifest:
    """``manifest.json`` of a run folder. Points in time are ISO 8601 with offset, but for ``started_ns``."""

    drill: str
    fabric: str
    architecture: str
    command: tuple[str, ...]
    engine: str  # its name in testbed.vm.engines
    datapath: str  # kernel or nft
    kernel: str  # release
    started_at: str  # by the clock of its kernel, which in virtual time is no date
    started_ns: int  # CLOCK_MONOTONIC at the same moment
    marker: str = ""  # what marks at switches: 'red', 'nft' (a phantom queue: no figure about queues), '' nothing
    accelerator: str = ""  # of a QEMU guest: 'kvm' or 'tcg (why not kvm)'
    profile: str = ""  # 'quick' or 'full'
    host_profile: str = ""  # what its hosts were like: 'lab' or 'production'; '' in folders of an older hpn
    load: float = 0.0  # share of each NIC's rate that streams offered; 0 where none ran
    tick_ms: float = 0.0  # how often senders looked at their schedule
    job: Mapping[str, str | int | float | bool] = field(default_factory=dict)  # how its queue pairs were connected
    client: Mapping[str, str | int | float | bool] = field(default_factory=dict)  # a program that ran on the hosts
    duration_s: float = 0.0
    repeat: int = 0  # number of this run among the repeats, from 1; 0: it was made by itself
    phase: int = 1  # number that its faults' phase and its seeds are drawn from; 1: as in the drill's file
    phase_ms: float = 0.0  # so much later than in the drill's file its faults came
    attempt: int = 1  # more than 1: the ones before could not be trusted, and lie beside it
    versions: Mapping[str, str] = field(default_factory=dict)  # hpn, python, bird, ...
    seeds: Mapping[str, int] = field(default_factory=dict)
    summary: str = ""  # of the drill
    slow: int = 1  # the drill's traffic was divided by this: as asked, or as a slow kernel takes it
    commit: str = ""  # of hpn; '' where it did not run from a checkout
    machine: Mapping[str, str | int] = field(default_factory=dict)  # under any guest: cpus, cpu, memory_mb, kernel, ...
    files: Mapping[str, int] = field(default_factory=dict)  # bytes of each, of a run that has ended; not the verdict's
    doctor: Mapping[str, str] = field(default_factory=dict)  # capability to what is used
    digests: Mapping[str, str] = field(default_factory=dict)  # of fabric, drill and settings: which experiment it is
    wall_begin: str = ""  # by the clock of the machine under any guest; '' in folders of an older hpn
    wall_end: str = ""
    format: int = FORMAT  # of the run folder

    @property
    def date(self) -> str:
        """Date on which the run began; '' if only a virtual clock was available."""
        return self.wall_begin or ("" if has_virtual_time(self.engine) else self.started_at)


@dataclass(frozen=True, slots=True)
class _Version:
    """Format number, read before anything else."""

    format: int


_MANIFEST = TypeAdapter(Manifest)
_VERSION = TypeAdapter(_Version)


def manifest_from(path: Path, text: bytes) -> Manifest:
    """Return the manifest in the file at ``path``. InputError when it holds none, or for an unknown format."""
    found = parse(path, _VERSION, text).format
    if found not in _KNOWN:
        known = " and ".join(map(str, _KNOWN))
        raise InputError(f"{path} has format {found}, this hpn reads {known}; use the hpn that made the run")
    return parse(path, _MANIFEST, text)
