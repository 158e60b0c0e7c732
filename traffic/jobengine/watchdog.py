"""A job's watchdog: which NIC gets nothing any more, by what workers report every 100 ms. Pure.

Retries end a dead queue pair after seconds or minutes. A scheduler that sees each host's RoCE traffic notices earlier
(MegaScale, NSDI 2024, section 4.1: heartbeats carry it, and traffic that ceases is suspect).
"""

from __future__ import annotations

from collections.abc import Mapping

from hpn.traffic.flows.flow import FlowSpec

_SHOWN = 4


class Watchdog:
    """Times at which each NIC last got a packet. A NIC counts from its first one on, in whichever life of the job."""

    def __init__(self, limit_ns: int) -> None:
        self._limit_ns = limit_ns
        self._last: dict[str, tuple[int, int]] = {}  # packets and time, by NIC

    def begin(self, at_ns: int) -> None:
        """Wait anew for every NIC: the job begins another life."""
        self._last = {nic: (packets, at_ns) for nic, (packets, _) in self._last.items()}

    def silent(self, at_ns: int, received: Mapping[int, int], flows: Mapping[int, FlowSpec]) -> str:
        """Return the NICs that got nothing for the limit and longer, '' if all did; ``received``: packets so far."""
        now: dict[str, int] = {}
        for flow, packets in received.items():
            nic = flows[flow].dst_nic
            now[nic] = now.get(nic, 0) + packets
        for nic, packets in now.items():
            if self._last.get(nic, (0, 0))[0] != packets:
                self._last[nic] = (packets, at_ns)
        found = [nic for nic in now if nic in self._last and at_ns - self._last[nic][1] >= self._limit_ns]
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        return ", ".join(found[:_SHOWN]) + more
