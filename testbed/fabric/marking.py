"""A port's queue: its length, its sharing, and its marking before it overflows (ECN). Pure.

Marking follows RED on the instantaneous queue, as data-centre switches are set for DCQCN (SIGCOMM 2015, figure 5).
Nothing is marked below ``kmin_bytes``, and everything from ``kmax_bytes`` on. In between the share rises to ``pmax``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hpn.testbed.fabric.spec import FabricSpec

_BURST_MS = 0.5


@dataclass(frozen=True, slots=True)
class Marker:
    """ECN marking at a port's queue. ``pmax``: the share marked just below ``kmax_bytes``, more than 0, at most 1."""

    kmin_bytes: int
    kmax_bytes: int
    pmax: float

    def share(self, queue_bytes: float) -> float:
        """Return the probability that a packet arriving at that queue length is marked."""
        if queue_bytes < self.kmin_bytes:
            return 0.0
        if queue_bytes >= self.kmax_bytes:
            return 1.0
        return self.pmax * (queue_bytes - self.kmin_bytes) / (self.kmax_bytes - self.kmin_bytes)

    def problems(self, queue_bytes: int, frame_bytes: int) -> Iterator[tuple[str, str]]:
        """Yield the problems for a given queue and frame size: the field, and a fix."""
        if self.kmin_bytes <= 0:
            yield "kmin_bytes", f"{self.kmin_bytes} bytes mark an empty queue; write at least one frame, {frame_bytes}"
        elif self.kmin_bytes < frame_bytes:
            yield "kmin_bytes", f"{self.kmin_bytes} bytes are less than one frame of {frame_bytes}; write at least that"
        if self.kmax_bytes <= self.kmin_bytes:
            yield "kmax_bytes", f"{self.kmax_bytes} bytes are not above kmin's {self.kmin_bytes}; write more"
        if self.kmax_bytes > queue_bytes:
            yield "kmax_bytes", f"{self.kmax_bytes} bytes never wait: the queue holds {queue_bytes}; raise queue_ms"
        if not 0 < self.pmax <= 1:
            yield "pmax", f"{self.pmax:g} is no probability; write more than 0, at most 1, such as 0.2"


def marker_of(spec: FabricSpec) -> Marker | None:
    """Return the ECN marking of a topology's switches; None if they do not mark."""
    ecn = spec.ecn
    return None if ecn is None else Marker(ecn.kmin_bytes, ecn.kmax_bytes, ecn.pmax)


def frame_bytes(spec: FabricSpec) -> int:
    """Return the largest frame as rates count it: from the Ethernet header on, with room for a VLAN tag."""
    return spec.mtu + 18


def burst_bytes(spec: FabricSpec, rate_bps: int) -> int:
    """Return the bytes that a port of that (emulated) rate may send at once after it was idle."""
    return max(2 * frame_bytes(spec), int(rate_bps / 8 * _BURST_MS / 1000))


def queue_bytes(spec: FabricSpec, rate_bps: int) -> int:
    """Return the queue limit at an end of a link of that (emulated) rate; more is tail-dropped."""
    return max(8 * frame_bytes(spec), int(rate_bps / 8 * spec.queue_ms / 1000))


def quanta(spec: FabricSpec, share: float) -> tuple[int, int]:
    """Return the bytes that two queues send per round, so that the second has ``share``.

    The smaller is one frame, since deficit round robin needs every queue to send in every round (Shreedhar and
    Varghese, "Efficient fair queuing using deficit round robin", SIGCOMM 1995).
    """
    frame, smaller = frame_bytes(spec), min(share, 1 - share)
    return round(frame * (1 - share) / smaller), round(frame * share / smaller)
