"""Gradient-based congestion control, TIMELY: the rate follows the change of the round-trip time. No marks. Pure.

Mittal et al., TIMELY: RTT-based Congestion Control for the Datacenter (SIGCOMM 2015), section 4, algorithm 1:

* Below ``low_ns`` the rate grows by one step. Above ``high_ns`` it shrinks by beta x (1 - high / RTT).
* In between the gradient decides: the smoothed change of the round-trip time over ``minimum_rtt_ns``. A gradient of 0
  or less adds one step, or ``hyper_steps`` from the fifth such update in a row on (HAI). A gradient above 0 takes beta
  times that share of the rate.

One update takes at least ``segment_bytes`` and ``minimum_rtt_ns``, as in the model of Zhu et al. (ECN or Delay, CoNEXT
2016, section 4). That paper also shows the known failure: the rates have no unique fixed point. So flows that begin
with different rates stay unfair.

Differences from TIMELY: the round-trip time includes the sending of the segment. A queue pair begins at line rate (in
the paper at its share of the NIC's). No update takes more than half of the rate: where all begin at line rate, a
gradient of 1.25 or more would take all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hpn.traffic.congestion.control import Inert, Parameters
from hpn.traffic.congestion.scale import Scale

_MOST_DECREASE = 0.5  # ours


@dataclass(frozen=True, slots=True)
class TimelyParameters(Parameters):
    """The parameters, as for real links."""

    low_ns: int  # T_low
    high_ns: int  # T_high
    minimum_rtt_ns: int
    step_bps: int  # delta
    hyper_after: int  # updates in a row
    hyper_steps: int  # N
    decrease: float  # beta
    smoothing: float  # alpha, weight of the newest change
    segment_bytes: int
    minimum_bps: int

    def control(self, line_rate_bps: float, scale: Scale) -> Timely:
        """Return the sender's control of one queue pair; the receiver has none."""
        return Timely(self, line_rate_bps, scale)

    def problems(self, real_rate_bps: float) -> Iterator[tuple[str, str]]:
        """Yield problems: thresholds in the wrong order, steps of 0, shares out of range, rates above the link's."""
        if self.minimum_rtt_ns <= 0:
            yield "minimum_rtt_ns", f"{self.minimum_rtt_ns} ns are no round trip; write more, such as 20 us"
        if self.low_ns <= 0:
            yield "low_ns", f"{self.low_ns} ns are above no delay; write more, such as 50 us"
        if self.high_ns <= self.low_ns:
            yield "high_ns", f"{self.high_ns} ns are not above low's {self.low_ns}; write more"
        for name in ("hyper_after", "hyper_steps"):
            if getattr(self, name) < 1:
                yield name, f"{getattr(self, name)} lets no rate grow; write 1 or more (the paper: 5)"
        for name in ("decrease", "smoothing"):
            if not 0 < getattr(self, name) <= 1:
                yield name, f"{getattr(self, name):g} is no share; write more than 0, at most 1"
        if self.segment_bytes <= 0:
            yield "segment_bytes", f"{self.segment_bytes} bytes are no segment; write more, such as 64 KB"
        for name in ("step_bps", "minimum_bps"):
            if not 0 < getattr(self, name) <= real_rate_bps:
                limits = f"more than 0, at most the link's {real_rate_bps / 1e9:g} Gbit/s"
                yield name, f"{getattr(self, name)} bit/s is no rate of this link; write {limits}"


class Timely(Inert):
    """Control of one queue pair."""

    def __init__(self, parameters: TimelyParameters, line_rate_bps: float, scale: Scale) -> None:
        self._parameters = parameters
        self._line_bps = line_rate_bps
        self._minimum_bps = min(scale.rate_bps(parameters.minimum_bps), line_rate_bps)
        self._step_bps = scale.rate_bps(parameters.step_bps)
        self._low_ns, self._high_ns = scale.ns(parameters.low_ns), scale.ns(parameters.high_ns)
        self._minimum_rtt_ns = scale.ns(parameters.minimum_rtt_ns)
        self._segment_bytes = scale.bytes_(parameters.segment_bytes)
        self._acked_bytes = 0  # since the last update
        self._updated_ns: int | None = None
        self._rtt_ns: int | None = None  # of the last update
        self._change_ns = 0.0  # smoothed
        self._falling = 0  # updates in a row without a rise
        self.rate_bps = line_rate_bps

    def on_acked(self, bytes_: int, rtt_ns: int | None, now_ns: int) -> None:
        """Update the rate by the round-trip time, once a segment and a minimum round trip are over."""
        self._acked_bytes += bytes_
        if rtt_ns is None or rtt_ns <= 0 or self._acked_bytes < self._segment_bytes:
            return
        if self._updated_ns is not None and now_ns - self._updated_ns < self._minimum_rtt_ns:
            return
        self._acked_bytes, self._updated_ns = 0, now_ns
        if self._rtt_ns is not None:
            self._update(rtt_ns, rtt_ns - self._rtt_ns)
        self._rtt_ns = rtt_ns

    def on_timeout(self, now_ns: int) -> None:
        """Shrink by the most allowed."""
        self._falling = 0
        self._cut(_MOST_DECREASE)

    def _update(self, rtt_ns: int, change_ns: int) -> None:
        values = self._parameters
        self._change_ns += (change_ns - self._change_ns) * values.smoothing
        gradient = self._change_ns / self._minimum_rtt_ns
        self._falling = 0 if gradient > 0 else self._falling + 1
        if rtt_ns < self._low_ns:
            self._set(self.rate_bps + self._step_bps)
        elif rtt_ns > self._high_ns:
            self._cut(values.decrease * (1 - self._high_ns / rtt_ns))
        elif gradient <= 0:
            steps = values.hyper_steps if self._falling >= values.hyper_after else 1
            self._set(self.rate_bps + steps * self._step_bps)
        else:
            self._cut(values.decrease * gradient)

    def _cut(self, share: float) -> None:
        self._set(self.rate_bps * (1 - min(share, _MOST_DECREASE)))

    def _set(self, rate_bps: float) -> None:
        self.rate_bps = min(max(rate_bps, self._minimum_bps), self._line_bps)
