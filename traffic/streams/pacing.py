"""Packet pacing: an absolute send schedule for many flows at once. PURE: time is an argument.

Packet k of a flow is due at origin + k x period, so a late sender catches up instead of drifting. Where transfers are
planned, a pause follows each transfer. A sender gives up what it is late by beyond ``CATCH_UP_NS``. The rest of the
schedule then moves back (a *slip*, counted in packets); no sequence number is skipped. A flow that the kernel held up
is late because of the network, any other because of the machine.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hpn.traffic.flows.flow import Transfers

I64 = npt.NDArray[np.int64]

CATCH_UP_NS = 10_000_000
"""Longest delay made up for by sending faster: 10 ms, half a port's default queue, so catching up loses nothing."""

_GOLDEN = 0.6180339887498949
_ENDLESS = 1 << 62  # packets of an even stream


class Schedule:
    """The send schedule of flows 0 .. n-1 (local indexes), rates in packets per second, polled every ``tick_ns``.

    ``transfers``: for each flow, its transfers between pauses, or None for an even stream; if left out, all are even.
    """

    def __init__(
        self, rates_pps: Sequence[float], tick_ns: int = 0, transfers: Sequence[Transfers | None] = ()
    ) -> None:
        self._period_ns = 1e9 / np.asarray(rates_pps, np.float64)
        plans = transfers or [None] * len(rates_pps)
        self._batch = np.array([_ENDLESS if plan is None else plan.packets for plan in plans], np.int64)
        every_ns = [0.0 if plan is None else plan.every_ns for plan in plans]
        self._pause_ns = np.maximum(np.array(every_ns) - self._batch * self._period_ns, 0.0)
        # A sender that polls every 20 ms is up to 20 ms late through no fault of its own.
        self._catch_up_ns = np.maximum(CATCH_UP_NS + tick_ns, self._period_ns)
        # Golden-ratio phases spread any number of flows of one rate evenly over a period.
        self._phase_ns = (np.arange(len(rates_pps)) * _GOLDEN % 1.0) * self._period_ns
        self._origin_ns = np.zeros(len(rates_pps), np.float64)  # relative to the start: exact in a float for 104 days
        self._start_ns: int | None = None
        self._running = np.zeros(len(rates_pps), bool)
        self.next_seq = np.zeros(len(rates_pps), np.int64)
        self.slips = np.zeros(len(rates_pps), np.int64)
        self._given_up = np.zeros(len(rates_pps), np.int64)  # slips since the last burst
        self._held_up = np.zeros(len(rates_pps), bool)  # the kernel had no room since the last burst

    def start(self, at_ns: int, flows: Sequence[int] | None = None) -> None:
        """Start each of ``flows`` (default: all): packet 0 is due within the first period after ``at_ns``."""
        chosen = np.arange(len(self._running)) if flows is None else np.asarray(flows, np.int64)
        if self._start_ns is None:
            self._start_ns = at_ns
        self._origin_ns[chosen] = at_ns - self._start_ns + self._phase_ns[chosen]
        self._running[chosen] = True

    def stop(self, flow: int | None = None) -> None:
        """Stop one flow, or all."""
        self._running[slice(None) if flow is None else flow] = False

    @property
    def running(self) -> bool:
        """True while anything is scheduled."""
        return bool(self._running.any())

    def due(self, now_ns: int) -> I64:
        """Return how many packets each flow is behind; give up those that are too late to catch up."""
        now = now_ns - (self._start_ns or 0)
        paused_ns = self.next_seq // self._batch * self._pause_ns
        late_ns = now - self._origin_ns - self.next_seq * self._period_ns - paused_ns
        over = np.floor((late_ns - self._catch_up_ns) / self._period_ns)
        given_up = np.where(self._running & (over >= 1), over, 0)
        if given_up.any():
            self.slips += given_up.astype(np.int64)
            self._given_up += given_up.astype(np.int64)
            self._origin_ns += given_up * self._period_ns
            late_ns -= given_up * self._period_ns
        count = np.floor(late_ns / self._period_ns).astype(np.int64) + 1
        count = np.minimum(count, self._batch - self.next_seq % self._batch)
        return np.where(self._running, np.maximum(count, 0), 0)

    def advance(self, flows: I64, counts: I64) -> None:
        """Count ``counts`` packets of ``flows`` (each flow once) as sent."""
        self.next_seq[flows] += counts
        self._given_up[flows] = 0
        self._held_up[flows] = False

    def hold_up(self, flows: I64) -> None:
        """Note that the kernel had no room for packets of ``flows``, which stay due."""
        self._held_up[flows] = True

    def given_up(self, flows: I64) -> I64:
        """Return how many packets of ``flows`` the machine alone has cost since the last burst of each."""
        return np.where(self._held_up[flows], 0, self._given_up[flows])
