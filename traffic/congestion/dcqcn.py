"""DCQCN's reaction point: a queue pair's rate falls with each CNP and recovers by a timer and a byte counter. Pure.

Zhu et al., Congestion Control for Large-Scale RDMA Deployments (SIGCOMM 2015), section 3 and figure 7. Where the paper
is open, this follows the simulators of its authors (github.com/bobzhuyb/ns3-rdma) and of Mellanox's implementation
(github.com/alibaba-edu/High-Precision-Congestion-Control, rdma-hw.cc, which SimAI uses too):

* On a CNP the target becomes the rate, the rate falls by alpha / 2 of itself; alpha = (1 - g) alpha + g. Timer,
  byte counter and both their stages restart. Two cuts are at least ``decrease_interval_ns`` apart (Mellanox: 4 us); a
  CNP in between takes effect at the end of the interval.
* Without a CNP alpha = (1 - g) alpha every ``alpha_timer_ns``; that needs no timer, it is computed at the next CNP.
* Each expiry of the timer and each ``byte_counter_bytes`` sent is an increase. The first ``fast_recovery`` of both
  halve the distance to the target. Later ones raise the target first: by ``additive_bps``, or by ``hyper_bps`` once
  timer and counter have both had more than ``fast_recovery`` increases. Without a byte counter (Mellanox's model) the
  timer's stage alone decides.
* The rate stays between minimum and line rate; alpha is 1 at first. A queue pair begins at line rate: no slow start.

A late ``on_timer`` counts as one expiry of the timer, a call of ``on_sent`` as at most one of the counter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hpn.traffic.congestion.control import Inert, Parameters
from hpn.traffic.congestion.notifier import Notifier
from hpn.traffic.congestion.scale import Scale

_THERE = 1 - 2**-20  # share of the line rate that counts as all: halving never ends, an adapter's rate has some 20 bits


@dataclass(frozen=True, slots=True)
class DcqcnParameters(Parameters):
    """The parameters of both ends, as for real links."""

    gain: float  # g
    alpha_timer_ns: int
    decrease_interval_ns: int  # 0: each CNP cuts at once
    increase_timer_ns: int
    byte_counter_bytes: int | None  # None: the timer alone
    fast_recovery: int  # F, increases
    additive_bps: int  # R_AI
    hyper_bps: int  # R_HAI
    minimum_bps: int
    clamp_target: bool  # a cut before any increase lowers the target too
    hyper_grows: bool  # the i-th hyper increase is i x R_HAI (QCN), else each is one R_HAI
    cnp_interval_ns: int
    cnp_delay_ns: int

    def control(self, line_rate_bps: float, scale: Scale) -> Dcqcn:
        """Return the reaction point of one queue pair."""
        return Dcqcn(self, line_rate_bps, scale)

    def notifier(self, scale: Scale) -> Notifier:
        """Return the notification point of one queue pair."""
        return Notifier(scale.ns(self.cnp_interval_ns), scale.ns(self.cnp_delay_ns))

    def problems(self, real_rate_bps: float) -> Iterator[tuple[str, str]]:
        """Yield problems: times and rates of 0 or less, gains out of range, rates above the link's."""
        if not 0 < self.gain <= 1:
            yield (
                "gain",
                f"{self.gain:g} moves alpha out of 0 to 1; write more than 0, at most 1, such as 0.0039 (1/256)",
            )
        for name in ("alpha_timer_ns", "increase_timer_ns", "cnp_interval_ns"):
            if getattr(self, name) <= 0:
                yield name, f"{getattr(self, name)} ns is no interval; write more than 0, such as 55 us"
        for name in ("decrease_interval_ns", "cnp_delay_ns"):
            if getattr(self, name) < 0:
                yield name, f"{getattr(self, name)} ns is before its cause; write 0 or more"
        if self.byte_counter_bytes is not None and self.byte_counter_bytes <= 0:
            yield "byte_counter_bytes", f"{self.byte_counter_bytes} bytes are sent at once; write more, or leave it out"
        if self.fast_recovery < 1:
            yield "fast_recovery", f"{self.fast_recovery} leaves no fast recovery; write 1 or more (the paper: 5)"
        for name in ("additive_bps", "hyper_bps", "minimum_bps"):
            rate = getattr(self, name)
            if rate <= 0:
                yield name, f"{rate} bit/s never lets a queue pair recover; write more than 0"
            elif rate > real_rate_bps:
                yield name, f"{rate / 1e9:g} Gbit/s is above the link's {real_rate_bps / 1e9:g}; write less"


class Dcqcn(Inert):
    """The reaction point of one queue pair, at the lab's scale."""

    def __init__(self, parameters: DcqcnParameters, line_rate_bps: float, scale: Scale) -> None:
        self._parameters = parameters
        self._line_bps = line_rate_bps
        self._minimum_bps = min(scale.rate_bps(parameters.minimum_bps), line_rate_bps)
        self._additive_bps = scale.rate_bps(parameters.additive_bps)
        self._hyper_bps = scale.rate_bps(parameters.hyper_bps)
        self._alpha_timer_ns = scale.ns(parameters.alpha_timer_ns)
        self._decrease_interval_ns = scale.ns(parameters.decrease_interval_ns)
        self._increase_timer_ns = scale.ns(parameters.increase_timer_ns)
        counter = parameters.byte_counter_bytes
        self._byte_counter = None if counter is None else max(scale.bytes_(counter), 1)
        self.rate_bps = line_rate_bps
        self._target_bps = line_rate_bps
        self._alpha = 1.0
        self._alpha_at_ns: int | None = None  # when alpha last changed by a CNP; None: none has come
        self._cut_from_ns: int | None = None  # earliest time of the next cut; None: no cut so far
        self._cut_due_ns: int | None = None  # time of a pending CNP's cut
        self._increase_at_ns: int | None = None
        self._sent_bytes = 0
        self._timer_stage = 0
        self._byte_stage = 0

    def alpha(self, now_ns: int) -> float:
        """Return the congestion estimate, 0 to 1: the next CNP cuts the rate by half of it."""
        if self._alpha_at_ns is None:
            return self._alpha
        runs = max(now_ns - self._alpha_at_ns, 0) // self._alpha_timer_ns
        return self._alpha * (1 - self._parameters.gain) ** runs

    def on_sent(self, bytes_: int, now_ns: int) -> None:
        """Count bytes while the rate is below the line rate."""
        if self._byte_counter is None or self._increase_at_ns is None:
            return
        self._sent_bytes += bytes_
        if self._sent_bytes >= self._byte_counter:
            self._sent_bytes %= self._byte_counter
            self._increase()
            self._byte_stage += 1

    def on_cnp(self, now_ns: int) -> None:
        """Cut the rate, now or at the end of the decrease interval."""
        if self._cut_from_ns is not None and now_ns < self._cut_from_ns:
            self._cut_due_ns = self._cut_from_ns
        else:
            self._cut(now_ns)

    def next_ns(self) -> int | None:
        """Return the time of the next increase, or of a pending cut."""
        due = (self._cut_due_ns, self._increase_at_ns)
        return min((at_ns for at_ns in due if at_ns is not None), default=None)

    def on_timer(self, now_ns: int) -> None:
        """Make the pending cut, or one increase."""
        if self._cut_due_ns is not None and now_ns >= self._cut_due_ns:
            self._cut(now_ns)
        elif self._increase_at_ns is not None and now_ns >= self._increase_at_ns:
            later_ns = self._increase_at_ns + self._increase_timer_ns
            self._increase_at_ns = later_ns if later_ns > now_ns else now_ns + self._increase_timer_ns
            self._increase()
            self._timer_stage += 1

    def _cut(self, now_ns: int) -> None:
        alpha = self.alpha(now_ns)
        if self._parameters.clamp_target or self._timer_stage or self._byte_stage:
            self._target_bps = self.rate_bps
        self.rate_bps = max(self.rate_bps * (1 - alpha / 2), self._minimum_bps)
        gain = self._parameters.gain
        self._alpha = (1 - gain) * alpha + gain
        self._alpha_at_ns = now_ns
        self._cut_from_ns = now_ns + self._decrease_interval_ns
        self._cut_due_ns = None
        self._sent_bytes = self._timer_stage = self._byte_stage = 0
        self._increase_at_ns = now_ns + self._increase_timer_ns

    def _increase(self) -> None:
        byte_stage = self._timer_stage if self._byte_counter is None else self._byte_stage
        fast, slowest = self._parameters.fast_recovery, min(self._timer_stage, byte_stage)
        if slowest > fast:
            steps = slowest - fast if self._parameters.hyper_grows else 1
            self._target_bps += self._hyper_bps * steps
        elif max(self._timer_stage, byte_stage) >= fast:
            self._target_bps += self._additive_bps
        self._target_bps = min(self._target_bps, self._line_bps)
        self.rate_bps = (self.rate_bps + self._target_bps) / 2
        if self.rate_bps >= self._line_bps * _THERE:
            self.rate_bps = self._target_bps = self._line_bps
            self._increase_at_ns = None  # nothing to recover; alpha decays by itself
