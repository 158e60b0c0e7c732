"""Send scheduler of a NIC port: it tracks when the wire is free, and serves queue pairs in turn. PURE.

An adapter never hands its port more than it can carry. A sender through a shaped interface has to pace itself, or the
interface's queue drops packets that no adapter would have sent. Queue pairs take turns; each keeps to the rate that its
congestion control allows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from hpn.traffic.flows.framing import BTH_BYTES, ETHERNET_BYTES, ICRC_BYTES, IMMEDIATE_BYTES, IP_UDP_BYTES, RETH_BYTES
from hpn.traffic.transport.requester import Run

CATCH_UP_NS = 10_000_000
"""Longest lateness of a worker that it makes up for: half a port's default queue, so that catching up loses nothing."""

_OVERHEAD = ETHERNET_BYTES + IP_UDP_BYTES + BTH_BYTES + ICRC_BYTES


def run_bytes(run: Run, path_mtu: int) -> int:
    """Return the bytes of a run as a port's rate limit counts them: from Ethernet header to ICRC, without pad."""
    left = run.request.size_bytes - run.first * path_mtu
    payload = min(left, run.count * path_mtu)
    with_address = RETH_BYTES * (run.count if run.paths else run.first == 0)
    with_immediate = IMMEDIATE_BYTES if payload == left and run.request.immediate is not None else 0
    return run.count * _OVERHEAD + payload + with_address + with_immediate


class Waiting(Protocol):
    """A queue pair that has something to send."""

    @property
    def next_ns(self) -> int:
        """Earliest time of its next packet, from its own pacing."""

    @next_ns.setter
    def next_ns(self, at_ns: int) -> None: ...

    @property
    def rate_bps(self) -> float:
        """Rate that its congestion control allows, on the wire."""

    @property
    def sendable(self) -> bool:
        """True if a packet may be sent now."""

    def take(self, most_packets: int, now_ns: int) -> tuple[list[Run], int]:
        """Return the next packets, and their bytes (``run_bytes``)."""


S = TypeVar("S", bound=Waiting)


class Outlet(Generic[S]):
    """One port of a NIC. ``rate_bps``: its rate, Ethernet headers included."""

    def __init__(self, rate_bps: int, path_mtu: int) -> None:
        self._ns_per_byte = 8e9 / rate_bps
        self._packet_bytes = _OVERHEAD + path_mtu
        self._waiting: deque[S] = deque()
        self._members: set[int] = set()
        self._free_ns = 0.0
        self._was_idle = True

    @property
    def busy(self) -> bool:
        """True while a queue pair waits for its turn."""
        return bool(self._waiting)

    @property
    def idle(self) -> bool:
        """True if no queue pair waits, and none did at the last ``serve``: another call would change nothing."""
        return self._was_idle and not self._waiting

    def add(self, sender: S, now_ns: int) -> None:
        """Queue ``sender``, which has something to send; no-op if it waits already."""
        if id(sender) not in self._members:
            self._members.add(id(sender))
            self._waiting.append(sender)
            sender.next_ns = max(sender.next_ns, now_ns)

    def remove(self, sender: S) -> bool:
        """Remove a sender that moves to another port; return True if it waited here."""
        if id(sender) not in self._members:
            return False
        self._members.discard(id(sender))
        self._waiting.remove(sender)
        return True

    def charge(self, wire_bytes: int, now_ns: int) -> None:
        """Account for packets that leave at once by this port: acknowledgements, which do not wait behind data."""
        self._begin(now_ns)
        self._free_ns += wire_bytes * self._ns_per_byte

    def serve(self, now_ns: int, until_ns: int) -> Iterator[tuple[S, list[Run]]]:
        """Yield the packets to send now to keep the wire busy until ``until_ns``, each queue pair in turn."""
        self._begin(now_ns)
        # A sender cannot save up time that others used: only the worker's lateness, and a tick, is made up for.
        since_ns = now_ns - max(until_ns - now_ns, round(now_ns - self._free_ns))
        # Equal shares, or the first would get most; the remainder goes to another sender each time.
        quantum = max(1, int(self._room(until_ns) // max(len(self._waiting), 1)))
        passed = 0
        while self._waiting and self._free_ns < until_ns and passed < len(self._waiting):
            sender = self._waiting.popleft()
            sender.next_ns = max(sender.next_ns, since_ns)
            runs = self._turn(sender, quantum, now_ns, until_ns)
            if sender.sendable:
                self._waiting.append(sender)
            else:
                self._members.discard(id(sender))
            passed = 0 if runs else passed + 1
            if runs:
                yield sender, runs
        self._was_idle = not self._waiting

    def _begin(self, now_ns: int) -> None:
        """Drop unused wire time up to now, except for what a late worker makes up for."""
        most_late_ns = 0 if self._was_idle else CATCH_UP_NS
        self._free_ns = max(self._free_ns, now_ns - most_late_ns)

    def _room(self, until_ns: int) -> float:
        """Return how many packets fit on the wire before ``until_ns``, the last of them in part."""
        return -(-(until_ns - self._free_ns) // (self._packet_bytes * self._ns_per_byte))

    def _turn(self, sender: S, quantum: int, now_ns: int, until_ns: int) -> list[Run]:
        """Take a sender's share, as far as its own rate and the wire allow."""
        gap_ns = self._packet_bytes * 8e9 / max(sender.rate_bps, 1.0)
        own = -(-(until_ns - sender.next_ns) // gap_ns)
        if own <= 0:
            return []
        runs, sent = sender.take(int(min(own, quantum, self._room(until_ns))), now_ns)
        if runs:
            self._free_ns += sent * self._ns_per_byte
            sender.next_ns += round(sent * 8e9 / max(sender.rate_bps, 1.0))
        return runs
