"""A port of a NIC as its sender sees it: when the wire is free, and which queue pair's turn it is. PURE.

An adapter never hands its port more than it can carry; what sends through a shaped interface has to hold back itself,
or the interface's queue drops what no adapter would have sent. Queue pairs take turns; each keeps to the rate that its
congestion control allows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from hpn.traffic.flows.framing import BTH_BYTES, ETHERNET_BYTES, ICRC_BYTES, IMMEDIATE_BYTES, IP_UDP_BYTES, RETH_BYTES
from hpn.traffic.transport.requester import Run

CATCH_UP_NS = 10_000_000
"""How much of the wire's time a late worker makes up for: half a port's default queue, so catching up loses nothing."""

_OVERHEAD = ETHERNET_BYTES + IP_UDP_BYTES + BTH_BYTES + ICRC_BYTES


def run_bytes(run: Run, path_mtu: int) -> int:
    """A run of packets as a port's rate limit counts it: from Ethernet header to ICRC, without pad."""
    left = run.request.size_bytes - run.first * path_mtu
    payload = min(left, run.count * path_mtu)
    with_address = RETH_BYTES if run.first == 0 else 0
    with_immediate = IMMEDIATE_BYTES if payload == left and run.request.immediate is not None else 0
    return run.count * _OVERHEAD + payload + with_address + with_immediate


class Waiting(Protocol):
    """A queue pair that has something to send."""

    next_ns: int
    """Its own pacing: not before."""

    @property
    def rate_bps(self) -> float:
        """What its congestion control allows, on the wire."""

    @property
    def sendable(self) -> bool:
        """Something may be sent now."""

    def take(self, most_packets: int, now_ns: int) -> list[Run]:
        """The next packets."""


S = TypeVar("S", bound=Waiting)


class Outlet(Generic[S]):
    """One port of a NIC. ``rate_bps``: what it carries, Ethernet headers included."""

    def __init__(self, rate_bps: int, path_mtu: int) -> None:
        self._ns_per_byte = 8e9 / rate_bps
        self._path_mtu = path_mtu
        self._packet_bytes = _OVERHEAD + path_mtu
        self._waiting: deque[S] = deque()
        self._members: set[int] = set()
        self._free_ns = 0.0
        self._was_idle = True

    @property
    def busy(self) -> bool:
        """A queue pair waits for its turn."""
        return bool(self._waiting)

    @property
    def idle(self) -> bool:
        """Nobody waits, and nobody did at the last ``serve``: another one would change nothing."""
        return self._was_idle and not self._waiting

    def add(self, sender: S, now_ns: int) -> None:
        """``sender`` has something to send; does nothing when it waits already."""
        if id(sender) not in self._members:
            self._members.add(id(sender))
            self._waiting.append(sender)
            sender.next_ns = max(sender.next_ns, now_ns)

    def remove(self, sender: S) -> bool:
        """It leaves by another port from now on; whether it waited here."""
        if id(sender) not in self._members:
            return False
        self._members.discard(id(sender))
        self._waiting.remove(sender)
        return True

    def charge(self, wire_bytes: int, now_ns: int) -> None:
        """Something else leaves by this port at once: acknowledgements, which do not wait behind data."""
        self._begin(now_ns)
        self._free_ns += wire_bytes * self._ns_per_byte

    def serve(self, now_ns: int, until_ns: int) -> Iterator[tuple[S, list[Run]]]:
        """What is sent now so that the wire is busy until ``until_ns``, each queue pair in its turn."""
        self._begin(now_ns)
        # Nobody saves up what others took of the wire: only what the worker was late by, and a tick, is made up for.
        since_ns = now_ns - max(until_ns - now_ns, round(now_ns - self._free_ns))
        # The same for all, or who comes first had most; what is left over is had by another each time.
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
        """What the wire has not carried until now is lost, but for what a late worker makes up for."""
        most_late_ns = 0 if self._was_idle else CATCH_UP_NS
        self._free_ns = max(self._free_ns, now_ns - most_late_ns)

    def _room(self, until_ns: int) -> float:
        """Packets that the wire has the time for before ``until_ns``; the last of them in part."""
        return -(-(until_ns - self._free_ns) // (self._packet_bytes * self._ns_per_byte))

    def _turn(self, sender: S, quantum: int, now_ns: int, until_ns: int) -> list[Run]:
        """Its share, as far as its own rate and the wire allow."""
        gap_ns = self._packet_bytes * 8e9 / max(sender.rate_bps, 1.0)
        own = -(-(until_ns - sender.next_ns) // gap_ns)
        runs = sender.take(int(min(own, quantum, self._room(until_ns))), now_ns) if own > 0 else []
        if not runs:
            return runs
        sent = sum([run_bytes(run, self._path_mtu) for run in runs])
        self._free_ns += sent * self._ns_per_byte
        sender.next_ns += round(sent * 8e9 / max(sender.rate_bps, 1.0))
        return runs
