"""What every congestion control of a queue pair offers to the engine that sends for it, and what its parameters offer.

Time is an argument: nanoseconds of one clock that does not go back. Every call costs the same however long ago the last
one was. Whoever drives a control calls ``on_timer`` once ``next_ns`` has come, late if it must; in the other calls a
timer that is due and not yet told of stays due.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from hpn.traffic.congestion.admission import AdmissionReceiver
from hpn.traffic.congestion.notifier import Notifier
from hpn.traffic.congestion.scale import Scale


class CongestionControl(Protocol):
    """How fast one queue pair may send."""

    @property
    def rate_bps(self) -> float:
        """The rate on the wire from now on, headers and Ethernet framing included."""

    def on_sent(self, bytes_: int, now_ns: int) -> None:
        """That many bytes left, retransmissions too."""

    def on_acked(self, bytes_: int, rtt_ns: int | None, now_ns: int) -> None:
        """That many bytes were acknowledged; ``rtt_ns`` from the send of the newest of them, None where not known."""

    def on_cnp(self, now_ns: int) -> None:
        """A congestion notification packet came for this queue pair."""

    def on_timeout(self, now_ns: int) -> None:
        """The retransmission timer ran out."""

    def next_ns(self) -> int | None:
        """When ``on_timer`` is due; None: nothing runs."""

    def on_timer(self, now_ns: int) -> None:
        """``next_ns`` has come; afterwards the next one is later than ``now_ns``."""


@dataclass(frozen=True, slots=True)
class Parameters(ABC):
    """Parameters of one kind of congestion control, as for real links: a frozen dataclass that makes the machines."""

    @abstractmethod
    def control(self, line_rate_bps: float, scale: Scale) -> CongestionControl:
        """The control of one queue pair that sends by a port of ``line_rate_bps`` (the lab's), parameters scaled."""

    def notifier(self, scale: Scale) -> Notifier | None:
        """The receiving end's part for one queue pair; None: it sends no CNPs."""
        return None

    def admission(self, scale: Scale, path_mtu: int) -> AdmissionReceiver | None:
        """What admits at one receiving rank, in whole packets; None: whoever has something to send sends it."""
        return None

    def problems(self, real_rate_bps: float) -> Iterator[tuple[str, str]]:
        """What is wrong with them on links of that real rate: the field, and what to write instead."""
        yield from ()
