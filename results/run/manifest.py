"""What a run was: the facts needed to repeat it or to doubt it.

Changes when another fact belongs in every result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Manifest:
    """``manifest.json`` of a run folder. ``started_at`` is wall time, ISO 8601 with offset; all else is monotonic."""

    drill: str
    fabric: str
    architecture: str
    command: tuple[str, ...]
    engine: str  # its name in testbed.vm.engines
    datapath: str  # kernel or nft
    kernel: str  # release
    started_at: str
    started_ns: int  # CLOCK_MONOTONIC at the same moment
    marker: str = ""  # what marks at switches: 'red', 'nft' (a phantom queue: no figure about queues), '' nothing
    accelerator: str = ""  # of a QEMU guest: 'kvm' or 'tcg (why not kvm)'
    profile: str = ""  # 'quick' or 'full'
    load: float = 0.0  # share of each NIC's rate that streams offered; 0 where none ran
    tick_ms: float = 0.0  # how often senders looked at their schedule
    job: Mapping[str, str | int | float | bool] = field(default_factory=dict)  # how its queue pairs were connected
    client: Mapping[str, str | int | float | bool] = field(default_factory=dict)  # a program that ran on the hosts
    duration_s: float = 0.0
    repeat: int = 0  # index of this run among the repeats
    phase: int = 1  # number that its faults' phase and its seeds are drawn from; 1: as in the drill's file
    phase_ms: float = 0.0  # so much later than in the drill's file its faults came
    attempt: int = 1  # more than 1: the ones before could not be trusted, and lie beside it
    versions: Mapping[str, str] = field(default_factory=dict)  # hpn, python, bird, ...
    seeds: Mapping[str, int] = field(default_factory=dict)
    doctor: Mapping[str, str] = field(default_factory=dict)  # capability to what is used
    format: int = 1  # of the run folder
