"""Window-based congestion control of Ultra Ethernet, NSCC: marks say whether, delay says how far. Pure.

UEC specification 1.0 (2025), section 3.6.13, as its authors' simulator has it (github.com/Broadcom/csg-htsim, uec.cpp):

                 below the target delay            above it
    not marked   grow with what is left to it      grow slowly, fairly
    marked       leave it to the choice of paths   shrink by how far the average is above, once a round trip

What grows is summed up, and divided by the window when it is applied: smaller windows gain on larger ones. A trimmed
packet takes its own bytes. When trims or long delays come with less than an eighth of the line rate, the window becomes
what arrived in the last round trip (quick adaptation), and nothing counts until the packets of the old one are over.

Differences: the window is paced over the smoothed round-trip time, and each port has an equal part of it. What is in
flight at a quick adaptation is taken for the old window. Packets that are lost change no window: the transport denies
their paths. The base round trip is of the lab's wires, and not the least that was measured: a lab's token buckets let
a lone packet pass at once, and a sender that comes late has never seen an empty queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hpn.traffic.congestion.control import Inert, Parameters
from hpn.traffic.congestion.scale import Scale

_SMOOTHING = 1 / 8  # of the round trip, RFC 6298
_IDLE = 0.25  # of a round trip: what an unmarked packet with a long delay counts as


@dataclass(frozen=True, slots=True)
class NsccParameters(Parameters):
    """The parameters, as for real links; ``base_rtt_ns`` is of the longest path without queues."""

    base_rtt_ns: int
    target_ns: int  # of queueing delay
    reference_bps: int  # that the steps are for
    reference_rtt_ns: int  # likewise
    proportional: float  # alpha, packets
    fair: float  # beta, packets
    steady: float  # eta, packets in each round trip
    fast: float  # share of what arrives without any delay
    fast_below_ns: int  # delay that counts as none
    decrease: float  # gamma
    most_decrease: float
    smoothing: float  # of the average delay
    quick_delays: float  # targets above which the window may adapt quickly
    quick_share: float  # of the line rate below which it does
    adjust_packets: int  # that arrive between two changes of the window
    most_window: float  # bandwidth-delay products
    packet_bytes: int

    def control(self, line_rate_bps: float, scale: Scale) -> Nscc:
        """Return the sender's control of one queue pair; receivers name marked and trimmed packets."""
        return Nscc(self, line_rate_bps, scale)

    @property
    def acts_on_marks(self) -> bool:
        """True: acknowledgements name marked packets."""
        return True

    def problems(self, real_rate_bps: float) -> Iterator[tuple[str, str]]:
        """Yield problems: times, sizes and steps of 0, shares out of range, targets shorter than a packet."""
        packet_ns = self.packet_bytes * 8e9 / real_rate_bps
        if self.base_rtt_ns <= packet_ns:
            yield "base_rtt_ns", f"{self.base_rtt_ns} ns are over before a packet is sent ({packet_ns:.0f}); write more"
        if self.target_ns <= packet_ns:
            yield "target_ns", f"{self.target_ns} ns are over before a packet is sent ({packet_ns:.0f}); write more"
        for name in ("reference_bps", "reference_rtt_ns", "packet_bytes", "adjust_packets"):
            if getattr(self, name) <= 0:
                yield name, f"{getattr(self, name)} lets no window grow; write more than 0"
        for name in ("proportional", "fair", "steady", "fast", "quick_delays"):
            if getattr(self, name) <= 0:
                yield name, f"{getattr(self, name):g} is no step; write more than 0"
        for name in ("decrease", "most_decrease", "smoothing", "quick_share"):
            if not 0 < getattr(self, name) < 1:
                yield name, f"{getattr(self, name):g} is no share; write more than 0 and less than 1"
        if self.most_window < 1:
            yield "most_window", f"{self.most_window:g} leaves the link idle; write 1 or more"


class Nscc(Inert):
    """Control of one queue pair. It begins with the largest window."""

    def __init__(self, parameters: NsccParameters, line_rate_bps: float, scale: Scale) -> None:
        self._parameters = parameters
        self._line_bps = line_rate_bps
        self._network_ns = scale.ns(parameters.base_rtt_ns)
        self._target_ns = scale.ns(parameters.target_ns)
        self._fast_below_ns = scale.ns(parameters.fast_below_ns)
        self._packet_bytes = max(scale.bytes_(parameters.packet_bytes), 1)
        reference_ns = scale.ns(parameters.reference_rtt_ns)
        factor = line_rate_bps * self._network_ns / (scale.rate_bps(parameters.reference_bps) * reference_ns)
        step = self._packet_bytes * factor
        self._proportional = parameters.proportional * step / reference_ns
        self._fair, self._steady = parameters.fair * step, parameters.steady * step
        self._fast = parameters.fast * factor
        self._base_ns = self._rtt_ns = float(self._network_ns)
        self._window = self._most_window
        self._delay_ns = 0.0  # average
        self._increase = 0.0  # to be divided by the window
        self._arrived = 0  # bytes since the window last changed
        self._adjusted_ns = self._decreased_ns = 0
        self._marked_bytes = 0  # of the acknowledgement that follows
        self._undelayed = 0.0  # bytes in a row
        self._fast_now = False
        self._quick_ns: int | None = None  # when the present measurement is over
        self._quick_bytes = 0.0  # that arrived in it
        self._trimmed = False  # since the last quick adaptation
        self._ignored, self._to_ignore = 0.0, 0.0  # bytes
        self.rate_bps = line_rate_bps

    def on_path(self, rtt_ns: int) -> None:
        """Take that as base, unless real links' is shorter."""
        self._base_ns = self._rtt_ns = float(min(self._network_ns, rtt_ns))
        self._window = self._most_window

    @property
    def window_bytes(self) -> float:
        """Bytes that may be on their way."""
        return self._window

    def on_marked(self, bytes_: int, now_ns: int) -> None:
        """Note that many of the bytes of the acknowledgement that follows as marked."""
        self._marked_bytes = bytes_

    def on_acked(self, bytes_: int, rtt_ns: int | None, now_ns: int) -> None:
        """Grow or shrink by marks and delay; without a round-trip time the average delay counts."""
        marked, self._marked_bytes = self._marked_bytes, 0
        delay_ns = self._delay_ns if rtt_ns is None or rtt_ns <= 0 else self._delay_of(rtt_ns, marked > 0)
        self._quick_bytes += bytes_
        self._arrived += bytes_
        if not self._adapts(marked > 0, delay_ns, bytes_, now_ns):
            self._judge(bytes_ - marked, marked, delay_ns, now_ns)
            self._adjust(now_ns)
        self._apply()

    def on_trimmed(self, bytes_: int, now_ns: int) -> None:
        """Take the bytes from the window, unless it adapts quickly."""
        self._average(self._network_ns)
        self._trimmed = True
        if not self._adapts(True, 0.0, bytes_, now_ns):
            self._window -= bytes_
        self._apply()

    def _delay_of(self, rtt_ns: int, marked: bool) -> float:
        """Return the queueing delay of a packet, which counts for the average."""
        self._rtt_ns += (rtt_ns - self._rtt_ns) * _SMOOTHING
        delay_ns = max(rtt_ns - self._base_ns, 0.0)
        self._average(_IDLE * self._base_ns if not marked and delay_ns > self._target_ns else delay_ns)
        return delay_ns

    def _average(self, delay_ns: float) -> None:
        self._delay_ns += (delay_ns - self._delay_ns) * self._parameters.smoothing

    def _judge(self, clear: int, marked: int, delay_ns: float, now_ns: int) -> None:
        """Sum up what the window grows by, or shrink it."""
        if delay_ns >= self._target_ns:
            self._increase += self._fair * clear
            if marked:
                self._decrease(now_ns)
        elif clear and not self._grows_fast(clear, delay_ns):
            self._increase += self._proportional * clear * (self._target_ns - delay_ns)

    def _grows_fast(self, clear: int, delay_ns: float) -> bool:
        """Grow at once after a window of packets without delay."""
        self._undelayed = self._undelayed + clear if delay_ns < self._fast_below_ns else 0.0
        self._fast_now = self._undelayed > 0 and (self._fast_now or self._undelayed > self._window)
        if self._fast_now:
            self._window += clear * self._fast
        return self._fast_now

    def _decrease(self, now_ns: int) -> None:
        """Shrink by how far the average delay is above its target, once in a round trip."""
        self._undelayed, self._fast_now = 0.0, False
        values, average_ns = self._parameters, self._delay_ns
        if average_ns > self._target_ns and now_ns - self._decreased_ns > self._base_ns:
            share = values.decrease * (average_ns - self._target_ns) / average_ns
            self._window *= 1 - min(share, values.most_decrease)
            self._decreased_ns = now_ns

    def _adjust(self, now_ns: int) -> None:
        """Apply what was summed up, once enough packets or a round trip have passed."""
        over = now_ns - self._adjusted_ns >= self._network_ns
        if over or self._arrived > self._parameters.adjust_packets * self._packet_bytes:
            self._bound()
            self._window += self._increase / self._window + (self._steady if over else 0.0)
            self._increase, self._arrived = 0.0, 0
            if over:
                self._adjusted_ns = now_ns

    def _adapts(self, marked: bool, delay_ns: float, bytes_: int, now_ns: int) -> bool:
        """Return True if the window adapts quickly now, or what arrives is still of the old one."""
        values = self._parameters
        self._ignored += bytes_
        adapts = self._ignored < self._to_ignore and marked
        if not adapts and (self._quick_ns is None or now_ns >= self._quick_ns):
            hard = self._trimmed or delay_ns > values.quick_delays * self._target_ns
            least = self._bytes_in(self._base_ns) * values.quick_share
            if self._quick_ns is not None and hard and self._quick_bytes < least:
                self._to_ignore, self._ignored = self._window, 0.0
                self._window = self._quick_bytes
                self._trimmed, adapts = False, True
            self._quick_bytes = 0.0
            self._quick_ns = now_ns + round(self._base_ns + self._target_ns)
        if adapts:
            self._increase, self._arrived = 0.0, 0
        return adapts

    @property
    def _most_window(self) -> float:
        return self._parameters.most_window * self._bytes_in(self._base_ns)

    def _bytes_in(self, ns: float) -> float:
        """Return the bytes that the line sends in that time."""
        return self._line_bps * ns / 8e9

    def _bound(self) -> None:
        self._window = min(max(self._window, self._packet_bytes), max(self._most_window, self._packet_bytes))

    def _apply(self) -> None:
        self._bound()
        self.rate_bps = min(self._window * 8e9 / self._rtt_ns, self._line_bps)
