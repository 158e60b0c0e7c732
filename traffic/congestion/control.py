"""Interfaces of a congestion control and of its parameters, as the sending engine uses them.

Time is an argument: nanoseconds of one monotonic clock. The cost of a call does not depend on the time since the last
one. The caller invokes ``on_timer`` once ``next_ns`` has come, late if it must. In the other calls a timer that is due
and not yet handled stays due.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from hpn.traffic.congestion.admission import AdmissionReceiver
from hpn.traffic.congestion.hop import Hop
from hpn.traffic.congestion.notifier import Notifier
from hpn.traffic.congestion.scale import Scale


class CongestionControl(Protocol):
    """Rate of one queue pair."""

    @property
    def rate_bps(self) -> float:
        """Rate on the wire from now on, headers and Ethernet framing included."""

    @property
    def window_bytes(self) -> float | None:
        """Bytes that may be on their way at present; None: its rate is all that limits them."""

    @property
    def probe_bytes(self) -> int | None:
        """Bytes sent for each probe of the switches' telemetry, at present; None: it asks for none."""

    def on_path(self, rtt_ns: int) -> None:
        """Note the round trip on its shortest path without queues, as the lab has it."""

    def on_sent(self, bytes_: int, now_ns: int) -> None:
        """Handle that many sent bytes, retransmissions included."""

    def on_acked(self, bytes_: int, rtt_ns: int | None, now_ns: int) -> None:
        """Handle that many acknowledged bytes; ``rtt_ns`` from the send of the newest of them, None if unknown."""

    def on_marked(self, bytes_: int, now_ns: int) -> None:
        """Handle marks on so many of the bytes that ``on_acked`` follows for, where acknowledgements name them."""

    def on_trimmed(self, bytes_: int, now_ns: int) -> None:
        """Handle that many bytes which a switch had no room for, and which are sent again."""

    def on_cnp(self, now_ns: int) -> None:
        """Handle a congestion notification packet for this queue pair."""

    def on_telemetry(self, hops: Sequence[Hop], rtt_ns: int, now_ns: int) -> None:
        """Handle the echo of a probe: what each switch port on the way reported, and the probe's round-trip time."""

    def on_timeout(self, now_ns: int) -> None:
        """Handle an expiry of the retransmission timer."""

    def next_ns(self) -> int | None:
        """Return when ``on_timer`` is due; None: no timer runs."""

    def on_timer(self, now_ns: int) -> None:
        """Handle the timer at ``next_ns``; afterwards the next one is later than ``now_ns``."""


class Inert:
    """Answers of a control that asks for nothing and acts on nothing; a control overrides what it acts on."""

    @property
    def window_bytes(self) -> float | None:
        """None: its rate is all that limits it."""
        return None

    @property
    def probe_bytes(self) -> int | None:
        """None: it asks for no telemetry."""
        return None

    def on_path(self, rtt_ns: int) -> None:
        """No-op."""

    def on_sent(self, bytes_: int, now_ns: int) -> None:
        """No-op."""

    def on_acked(self, bytes_: int, rtt_ns: int | None, now_ns: int) -> None:
        """No-op."""

    def on_marked(self, bytes_: int, now_ns: int) -> None:
        """No-op: a control that slows down for marks has CNPs."""

    def on_trimmed(self, bytes_: int, now_ns: int) -> None:
        """No-op: a trimmed packet makes the receiver send CNPs, as a marked one does."""

    def on_cnp(self, now_ns: int) -> None:
        """No-op."""

    def on_telemetry(self, hops: Sequence[Hop], rtt_ns: int, now_ns: int) -> None:
        """No-op."""

    def on_timeout(self, now_ns: int) -> None:
        """No-op: loss is left to the transport."""

    def next_ns(self) -> int | None:
        """Return None: no timer runs."""
        return None

    def on_timer(self, now_ns: int) -> None:
        """No-op."""


@dataclass(frozen=True, slots=True)
class Parameters(ABC):
    """Parameters of one kind of congestion control, as for real links: a frozen dataclass and factory."""

    @abstractmethod
    def control(self, line_rate_bps: float, scale: Scale) -> CongestionControl:
        """Return the control of one queue pair on a lab port of ``line_rate_bps``, with parameters scaled."""

    def notifier(self, scale: Scale) -> Notifier | None:
        """Return the receiving end's notifier for one queue pair; None: it sends no CNPs."""
        return None

    @property
    def acts_on_marks(self) -> bool:
        """True if switch marks change the rate."""
        return self.notifier(Scale()) is not None

    def admission(self, scale: Scale, path_mtu: int) -> AdmissionReceiver | None:
        """Return the admission logic of one receiving rank, in complete packets; None: senders need no grant."""
        return None

    def problems(self, real_rate_bps: float) -> Iterator[tuple[str, str]]:
        """Yield problems on links of that real rate: the field, and what to write instead."""
        yield from ()
