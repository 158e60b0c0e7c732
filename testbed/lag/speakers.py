"""Who speaks LACP for a lab: speakers in this process, or in one of their own (``testbed.lag.apart``)."""

from __future__ import annotations

from typing import Protocol

from hpn.testbed.lag.machine import PortStatus
from hpn.testbed.lag.speaker import Speaker, SystemAt


class Speaking(Protocol):
    """What ``testbed.lag.speaker.Speaker`` offers, wherever its machines run."""

    @property
    def active_ports(self) -> tuple[str, ...]:
        """The ports that collect and distribute, in configured order."""

    def status(self) -> tuple[PortStatus, ...]:
        """How each port stands."""

    def start(self) -> None:
        """BEGIN."""

    def stop(self) -> None:
        """Fall silent without a farewell. ``on_active`` is not called."""

    def freeze(self) -> None:
        """Fall silent and deaf but forget nothing, until ``thaw``."""

    def thaw(self) -> None:
        """Run on."""

    def refuse(self, refusing: bool) -> None:
        """Take every port out of its Aggregator, or back."""

    def carrier(self, port: str, up: bool) -> None:
        """The lab's link monitor saw the carrier of ``port``. Ignored while stopped."""


class Speakers(Protocol):
    """The LACP of one lab."""

    @property
    def trouble(self) -> str | None:
        """How it died, though nobody here had asked for that."""

    @property
    def pids(self) -> frozenset[int]:
        """Processes of its own, for their parent to wait for itself."""

    def make(self, system: SystemAt) -> Speaking:
        """A speaker for one System."""

    def settle(self) -> None:
        """Return when all that speakers were told is done: those that were stopped or frozen send nothing more."""

    def close(self) -> None:
        """End what runs beside this process."""


class Here:
    """All in this process: what a speaker is told is done when its call returns."""

    trouble: str | None = None
    pids: frozenset[int] = frozenset()

    def make(self, system: SystemAt) -> Speaking:
        """One on the running loop."""
        return Speaker(system)

    def settle(self) -> None:
        """It is."""

    def close(self) -> None:
        """There is nothing."""


HERE = Here()
