"""Configuration of an LACP system, and the time constants of the standard (IEEE 802.1AX-2014, 6.4.4)."""

from __future__ import annotations

from dataclasses import dataclass

SECOND_NS = 1_000_000_000
FAST_PERIODIC_NS = 1 * SECOND_NS
SLOW_PERIODIC_NS = 30 * SECOND_NS
SHORT_TIMEOUT_NS = 3 * FAST_PERIODIC_NS
LONG_TIMEOUT_NS = 3 * SLOW_PERIODIC_NS
AGGREGATE_WAIT_NS = 2 * SECOND_NS
MAX_PDUS_PER_FAST_PERIOD = 3  # 6.4.16
TOLERANCE_NS = 250_000_000  # of every timer


@dataclass(frozen=True, slots=True)
class PortConfig:
    """One Aggregation Port: its interface name and its LACP port identifier (number, then priority)."""

    name: str
    number: int
    priority: int = 255


@dataclass(frozen=True, slots=True)
class LacpConfig:
    """One Actor System with one Key, so one candidate LAG per Partner.

    ``fast`` requests an LACPDU every second from the Partner (Short Timeout), else every 30 s. ``aggregate_wait_ns`` is
    how long ports wait for others to join them before they attach; the standard's value is 2 s. A System that is not
    ``active`` sends only to a Partner that is. With ``independent`` control a port distributes only once its Partner
    collects (6.4.15, Figure 6-21), else it begins both together. A port that has carried traffic and lost its link or
    Partner is out of Synchronization for ``wait_to_restore_ns`` after the Partner is heard again (802.1AX-2020).
    """

    system: str  # 'aa:bb:cc:dd:ee:ff'
    key: int
    system_priority: int = 65535
    fast: bool = True
    aggregate_wait_ns: int = AGGREGATE_WAIT_NS
    active: bool = True
    independent: bool = False
    wait_to_restore_ns: int = 0
