"""Congestion control by in-band telemetry, HPCC: what links report sets the window, with no probing of the limit. Pure.

Li et al., HPCC: High Precision Congestion Control (SIGCOMM 2019), section 3 and algorithm 1. Each switch port reports
its time, bytes sent, queue and rate. For each link u = queue / (rate x T) + sent rate / rate, with the smaller of two
queues. U is the moving average of the largest u, over at most T. If U is eta or more, or after ``max_stage`` additive
steps, the window becomes reference / (U / eta) + W_AI; otherwise it grows by W_AI. Every report changes the window, and
one report per round trip changes the reference. So no report counts twice.

T is the base round-trip time, a little above the longest without queues. W_AI is given as a rate, W_AI / T, as in the
authors' simulator. With n flows on a link U settles at eta + n W_AI / (rate x T). Above 1 that is a standing queue. A
small W_AI makes flows equal slowly, and not at all once it is less than what packets in the queue add to U.

Differences from HPCC: the window is sent as a rate, window / the longer of T and the last round trip, since this engine
paces every queue pair. That is what a window in flight would send. Reports come on probes, one for each ``probe`` bytes
or each window, not on every packet. Another path is found by its ports' counters, since records have no path ID. The
paper leaves loss to the transport; here a timeout halves the window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hpn.traffic.congestion.control import Inert, Parameters
from hpn.traffic.congestion.hop import Hop
from hpn.traffic.congestion.scale import Scale

_SILENT_RTTS = 8  # base round trips without telemetry, after which acknowledgements tell the round trip
_BURST_BYTES = 65_536  # that a port may have sent above its rate


@dataclass(frozen=True, slots=True)
class HpccParameters(Parameters):
    """The parameters, as for real links."""

    target: float  # eta, utilisation of the busiest link
    max_stage: int  # additive steps in a row
    base_rtt_ns: int  # T
    additive_bps: int  # W_AI / T
    minimum_bps: int
    probe_bytes: int  # sent for each probe

    def control(self, line_rate_bps: float, scale: Scale) -> Hpcc:
        """Return the sender's control of one queue pair; the receiver echoes its probes."""
        return Hpcc(self, line_rate_bps, scale)

    def problems(self, real_rate_bps: float) -> Iterator[tuple[str, str]]:
        """Yield problems: times and sizes of 0 or less, a target out of range, rates above the link's."""
        if not 0 < self.target < 1:
            yield "target", f"{self.target:g} leaves no queue empty; write more than 0 and less than 1, such as 0.95"
        if self.max_stage < 0:
            yield "max_stage", f"{self.max_stage} steps never come; write 0 or more (the paper: 5)"
        if self.base_rtt_ns <= 0:
            yield "base_rtt_ns", f"{self.base_rtt_ns} ns are no round trip; write more, such as 13 us"
        if self.probe_bytes <= 0:
            yield "probe_bytes", f"{self.probe_bytes} bytes are sent at once; write more, such as 64 KB"
        for name in ("additive_bps", "minimum_bps"):
            if not 0 < getattr(self, name) <= real_rate_bps:
                limits = f"more than 0, at most the link's {real_rate_bps / 1e9:g} Gbit/s"
                yield name, f"{getattr(self, name)} bit/s is no rate of this link; write {limits}"


class Hpcc(Inert):
    """Control of one queue pair. It begins with a window of line rate x T."""

    def __init__(self, parameters: HpccParameters, line_rate_bps: float, scale: Scale) -> None:
        self._parameters = parameters
        self._line_bps = line_rate_bps
        self._minimum_bps = min(scale.rate_bps(parameters.minimum_bps), line_rate_bps)
        self._base_rtt_ns = scale.ns(parameters.base_rtt_ns)
        self._additive_bytes = self._window_of(scale.rate_bps(parameters.additive_bps))
        self._probe_bytes = max(scale.bytes_(parameters.probe_bytes), 1)
        self._window = self._reference = self._window_of(line_rate_bps)
        self._utilisation = 1.0  # it begins at line rate
        self._stage = 0
        self._hops: tuple[Hop, ...] = ()
        self._updated_ns = 0  # last change of the reference: packets sent before do not know of it
        self._heard_ns: int | None = None
        self._rtt_ns = 0
        self.rate_bps = line_rate_bps

    @property
    def probe_bytes(self) -> int:
        """Bytes to send for each probe."""
        return min(self._probe_bytes, int(self._window) + 1)

    @property
    def utilisation(self) -> float:
        """Smoothed load of the busiest link with its queue, U; 1 is a full link without a queue."""
        return self._utilisation

    def on_acked(self, bytes_: int, rtt_ns: int | None, now_ns: int) -> None:
        """Take the round-trip time if no telemetry has come for long: the window is sent no faster than it allows."""
        silent = self._heard_ns is None or now_ns - self._heard_ns > _SILENT_RTTS * self._base_rtt_ns
        if silent and rtt_ns is not None and rtt_ns > 0:
            self._rtt_ns = rtt_ns
            self._apply()

    def on_telemetry(self, hops: Sequence[Hop], rtt_ns: int, now_ns: int) -> None:
        """Set the window by the reports of all links; the first reports of a path only begin the measurement."""
        if not hops or rtt_ns <= 0:
            return
        before, self._hops = self._hops, tuple(hops)
        self._rtt_ns, self._heard_ns = rtt_ns, now_ns
        if _same_path(before, self._hops):
            self._measure(before)
            self._update(now_ns - rtt_ns >= self._updated_ns, now_ns)
        else:
            self._updated_ns = now_ns
        self._apply()

    def on_timeout(self, now_ns: int) -> None:
        """Halve the window, and measure anew: the path may be another."""
        self._hops = ()
        self._reference = self._window = self._window / 2
        self._apply()

    def _measure(self, before: Sequence[Hop]) -> None:
        """MeasureInflight of algorithm 1."""
        largest, over_ns = 0.0, 0
        for was, hop in zip(before, self._hops, strict=True):
            passed_ns = hop.time_ns - was.time_ns
            sent_bps = (hop.sent_bytes - was.sent_bytes) * 8e9 / passed_ns
            waiting_bps = min(hop.queue_bytes, was.queue_bytes) * 8e9 / self._base_rtt_ns
            used = (waiting_bps + sent_bps) / hop.rate_bps
            if used > largest:
                largest, over_ns = used, passed_ns
        share = min(over_ns / self._base_rtt_ns, 1.0)
        self._utilisation += (largest - self._utilisation) * share

    def _update(self, whole: bool, now_ns: int) -> None:
        """ComputeWind of algorithm 1; ``whole``: the report knows of the last change of the reference."""
        load = self._utilisation / self._parameters.target
        multiplies = load >= 1 or self._stage >= self._parameters.max_stage
        base = self._reference / max(load, 1e-9) if multiplies else self._reference
        self._window = min(base + self._additive_bytes, self._window_of(self._line_bps))
        if whole:
            self._stage = 0 if multiplies else self._stage + 1
            self._reference, self._updated_ns = self._window, now_ns

    def _apply(self) -> None:
        least = self._window_of(self._minimum_bps)
        self._window, self._reference = max(self._window, least), max(self._reference, least)
        rate_bps = self._window * 8e9 / max(self._base_rtt_ns, self._rtt_ns)
        self.rate_bps = min(max(rate_bps, self._minimum_bps), self._line_bps)

    def _window_of(self, rate_bps: float) -> float:
        """Return the bytes that are in flight at that rate without queues."""
        return rate_bps * self._base_rtt_ns / 8e9


def _same_path(before: Sequence[Hop], hops: Sequence[Hop]) -> bool:
    """Return True if reports may be a later state of the same ports; no port sends twice its rate."""
    return len(before) == len(hops) and all(map(_may_follow, before, hops))


def _may_follow(was: Hop, hop: Hop) -> bool:
    passed_ns, sent = hop.time_ns - was.time_ns, hop.sent_bytes - was.sent_bytes
    if passed_ns <= 0 or hop.rate_bps <= 0 or hop.rate_bps != was.rate_bps:
        return False
    return 0 <= sent <= _BURST_BYTES + 2 * hop.rate_bps * passed_ns / 8e9
