"""Delay-based congestion control, after Swift: the round-trip time is held at a target; no marks, no CNPs. Pure.

Kumar et al., Swift: Delay is Simple and Effective for Congestion Control in the Datacenter (SIGCOMM 2020), section 3. A
window of packets (fractions included) grows by ``increase_packets`` per round trip while the delay is below the target.
Above the target it shrinks by ``decrease`` x (delay - target) / delay, by at most ``most_decrease`` and at most once
per round trip. The target grows as windows get small (flow scaling). So many flows have room for their packets, and a
smaller window gains on a larger one.

Differences from Swift: the window is sent as a rate, window / smoothed round-trip time, since this engine paces every
queue pair. There is one delay (from the send to the ACK), not separate ones of network and host. The target does not
depend on the hops of a path.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from hpn.traffic.congestion.control import Inert, Parameters
from hpn.traffic.congestion.scale import Scale

_SMOOTHING = 1 / 8  # RFC 6298


@dataclass(frozen=True, slots=True)
class SwiftParameters(Parameters):
    """The parameters, as for real links.

    The flow scaling is 0 for windows of ``scaling_most`` packets or more, and ``scaling_ns`` for windows of
    ``scaling_least``.
    """

    target_ns: int
    increase_packets: float  # ai
    decrease: float  # beta
    most_decrease: float  # max_mdf
    scaling_ns: int  # fs_range
    scaling_least: float
    scaling_most: float
    packet_bytes: int
    minimum_bps: int
    timeouts: int  # number in a row after which the rate is the minimum

    def control(self, line_rate_bps: float, scale: Scale) -> Swift:
        """Return the sender's control of one queue pair; the receiver has none."""
        return Swift(self, line_rate_bps, scale)

    def problems(self, real_rate_bps: float) -> Iterator[tuple[str, str]]:
        """Yield problems: targets shorter than a packet, steps of 0, shares out of range, rates above the link's."""
        packet_ns = self.packet_bytes * 8e9 / real_rate_bps
        if self.target_ns <= packet_ns:
            yield "target_ns", f"{self.target_ns} ns are over before a packet is sent ({packet_ns:.0f}); write more"
        if self.increase_packets <= 0:
            yield (
                "increase_packets",
                f"{self.increase_packets:g} packets let no window grow; write more, such as 1",
            )
        for name in ("decrease", "most_decrease"):
            if not 0 < getattr(self, name) < 1:
                yield name, f"{getattr(self, name):g} is no part of a window; write more than 0 and less than 1"
        if self.scaling_ns < 0:
            yield "scaling_ns", f"{self.scaling_ns} ns shorten the target; write 0 (no flow scaling) or more"
        if not 0 < self.scaling_least < self.scaling_most:
            yield "scaling_least", f"{self.scaling_least:g} to {self.scaling_most:g} packets are no range; write such"
        if self.packet_bytes <= 0:
            yield "packet_bytes", f"{self.packet_bytes} bytes are no packet; write the size on the wire, such as 4200"
        if not 0 < self.minimum_bps <= real_rate_bps:
            limits = f"more than 0, at most the link's {real_rate_bps / 1e9:g} Gbit/s"
            yield "minimum_bps", f"{self.minimum_bps} bit/s is no rate of this link; write {limits}"
        if self.timeouts < 1:
            yield "timeouts", f"{self.timeouts} in a row never happen; write 1 or more"


class Swift(Inert):
    """Control of one queue pair. It begins at line rate; the first round trip sets the window."""

    def __init__(self, parameters: SwiftParameters, line_rate_bps: float, scale: Scale) -> None:
        self._parameters = parameters
        self._line_bps = line_rate_bps
        self._minimum_bps = min(scale.rate_bps(parameters.minimum_bps), line_rate_bps)
        self._target_ns = scale.ns(parameters.target_ns)
        self._packet_bits = max(scale.bytes_(parameters.packet_bytes), 1) * 8
        least, most = 1 / math.sqrt(parameters.scaling_least), 1 / math.sqrt(parameters.scaling_most)
        self._scaling_range_ns = scale.ns(parameters.scaling_ns)
        self._scaling_ns = self._scaling_range_ns / (least - most)  # for 1 / sqrt(window) above that of the most
        self._scaling_from = most
        self._most_packets = line_rate_bps * (self._target_ns + self._scaling_range_ns) / 1e9 / self._packet_bits
        self._window = 0.0  # packets; counts once a round trip is known
        self._rtt_ns = 0.0
        self._cut_ns: int | None = None
        self._timeouts = 0
        self.rate_bps = line_rate_bps

    def target_ns(self) -> float:
        """Return the target delay for the present window."""
        if not self._window:
            return self._target_ns
        scaled = (1 / math.sqrt(self._window) - self._scaling_from) * self._scaling_ns
        return self._target_ns + min(max(scaled, 0.0), self._scaling_range_ns)

    def on_acked(self, bytes_: int, rtt_ns: int | None, now_ns: int) -> None:
        """Grow or shrink the window by the round-trip time; without one it does not change."""
        self._timeouts = 0
        if rtt_ns is None or rtt_ns <= 0:
            return
        if not self._rtt_ns:
            self._rtt_ns = float(rtt_ns)
            self._window = self._line_bps * rtt_ns / 1e9 / self._packet_bits
        self._rtt_ns += (rtt_ns - self._rtt_ns) * _SMOOTHING
        target_ns = self.target_ns()
        if rtt_ns < target_ns:
            packets = bytes_ * 8 / self._packet_bits
            self._window += self._parameters.increase_packets * packets / max(self._window, 1.0)
        elif self._may_cut(now_ns):
            share = min(self._parameters.decrease * (rtt_ns - target_ns) / rtt_ns, self._parameters.most_decrease)
            self._window *= 1 - share
            self._cut_ns = now_ns
        self._apply()

    def on_timeout(self, now_ns: int) -> None:
        """Shrink by the most allowed; after several timeouts in a row restart at the minimum."""
        self._timeouts += 1
        if not self._rtt_ns:
            return
        if self._timeouts >= self._parameters.timeouts:
            self._window = 0.0
        elif self._may_cut(now_ns):
            self._window *= 1 - self._parameters.most_decrease
            self._cut_ns = now_ns
        self._apply()

    def _may_cut(self, now_ns: int) -> bool:
        return self._cut_ns is None or now_ns - self._cut_ns >= self._rtt_ns

    def _apply(self) -> None:
        least = self._minimum_bps * self._rtt_ns / 1e9 / self._packet_bits
        self._window = min(max(self._window, least), max(self._most_packets, least))
        rate_bps = self._window * self._packet_bits * 1e9 / self._rtt_ns
        self.rate_bps = min(max(rate_bps, self._minimum_bps), self._line_bps)
