"""The constants of the failover method: merging of holes, criterion of recovery, claimed resolution.

Changes when the method does. docs/measurement.md after RFC 6412, 6413, 6414 and 6894.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Settings:
    """The constants of the method, printed with every result."""

    merge_packets: int = 5  # M: fewer received in order between two holes, one outage; = K, as it had not recovered
    recovery_packets: int = 5  # K
    validation_s: float = 5.0  # RFC 6412 asks for 5 s; the quick profile uses 1 s and says so
    forwarding_delay_threshold_ms: float = 100.0  # RFC 6412: later than this is 'late', an impaired packet
    on_its_way_ms: float = (
        100.0  # what was sent this long before an edge may be lost by it, or longer when that is in time
    )
    drain_ms: float = 200.0  # sent this close to the end of the record and missing: still in flight
    agreement_ms: float = 0.5  # PLBM and TBM may differ by period + 2 send gaps + this + 1 % of the outage
    claimed_resolution_ms: float = 20.0  # a larger send gap while it matters makes the run inconclusive
    pacing_tick_ms: float = 1.0  # senders look at their schedule this often: a packet leaves up to this late
    rate_tolerance_pct: float = 2.0  # a sender slower than this below its rate makes the run inconclusive
    goodput_window_s: float = 2.0
    clock_ms: float = 0.005  # what reading the clock may cost: 4 microseconds in virtual time, less on the host

    @property
    def longest_delay_ms(self) -> float:
        """Longest time before an edge at which a packet was sent that was in flight at the edge."""
        return max(self.on_its_way_ms, self.forwarding_delay_threshold_ms)

    def for_pacing(self, period_ms: float, tick_ms: float) -> Settings:
        """Return the settings for this packet period: two send gaps of pacing are the finest resolution claimed."""
        claimed_ms = max(self.claimed_resolution_ms, 2 * (period_ms + tick_ms))
        return replace(self, pacing_tick_ms=tick_ms, claimed_resolution_ms=claimed_ms)


QUICK = Settings(validation_s=1.0)
"""The quick profile: validation time 1 s instead of RFC 6412's 5 s."""
