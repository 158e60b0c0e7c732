"""Interface of a lab's LACP: speakers in this process, or in a separate one (``testbed.lag.lacp_process``)."""

from __future__ import annotations

from typing import Protocol

from hpn.testbed.lag.machine import PortStatus
from hpn.testbed.lag.speaker import Speaker, SystemAt


class Speaking(Protocol):
    """Interface of ``testbed.lag.speaker.Speaker``, wherever its machines run."""

    @property
    def active_ports(self) -> tuple[str, ...]:
        """Ports that collect and distribute, in configured order."""

    def status(self) -> tuple[PortStatus, ...]:
        """Return the status of each port."""

    def start(self) -> None:
        """Start with BEGIN."""

    def stop(self) -> None:
        """Stop without a farewell. ``on_active`` is not called."""

    def freeze(self) -> None:
        """Stop sending and receiving but keep all state, until ``thaw``."""

    def thaw(self) -> None:
        """Resume."""

    def refuse(self, refusing: bool) -> None:
        """Take every port out of its Aggregator, or put it back."""

    def carrier(self, port: str, up: bool) -> None:
        """Handle a carrier change that the lab's link monitor reported. Ignored while stopped."""


class Speakers(Protocol):
    """The LACP of one lab."""

    @property
    def trouble(self) -> str | None:
        """Description of an unexpected death; None while all is well."""

    @property
    def pids(self) -> frozenset[int]:
        """Child processes that their owner waits for."""

    def make(self, system: SystemAt) -> Speaking:
        """Create a speaker for one System."""

    def settle(self) -> None:
        """Wait until all calls to speakers have taken effect: those stopped or frozen send nothing more."""

    def close(self) -> None:
        """End the separate process, if any."""


class LocalLacp:
    """LACP in this process: a speaker's calls take effect before they return."""

    trouble: str | None = None
    pids: frozenset[int] = frozenset()

    def make(self, system: SystemAt) -> Speaking:
        """Create a speaker on the running loop."""
        return Speaker(system)

    def settle(self) -> None:
        """Do nothing: calls take effect before they return."""

    def close(self) -> None:
        """Do nothing: there is no child process."""


HERE = LocalLacp()
