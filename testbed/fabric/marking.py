"""A port's queue: how long it is, who shares it, and how it marks before it overflows (ECN). Pure.

The marker of RED on the instantaneous queue, as data-centre switches are set for DCQCN (SIGCOMM 2015, figure 5):
nothing is marked below ``kmin_bytes``, everything from ``kmax_bytes`` on, in between a share that rises to ``pmax``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hpn.testbed.fabric.spec import FabricSpec


@dataclass(frozen=True, slots=True)
class Marker:
    """What marks at a port's queue. ``pmax``: the share marked just below ``kmax_bytes``, more than 0, at most 1."""

    kmin_bytes: int
    kmax_bytes: int
    pmax: float

    def share(self, queue_bytes: float) -> float:
        """The probability that a packet which finds that queue is marked."""
        if queue_bytes < self.kmin_bytes:
            return 0.0
        if queue_bytes >= self.kmax_bytes:
            return 1.0
        return self.pmax * (queue_bytes - self.kmin_bytes) / (self.kmax_bytes - self.kmin_bytes)

    def problems(self, queue_bytes: int, frame_bytes: int) -> Iterator[tuple[str, str]]:
        """What is wrong with it at a queue and frames of such sizes: the field, and what to write instead."""
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
    """How a topology's switches mark; None: they do not."""
    ecn = spec.ecn
    return None if ecn is None else Marker(ecn.kmin_bytes, ecn.kmax_bytes, ecn.pmax)


def frame_bytes(spec: FabricSpec) -> int:
    """The largest frame, as a rate counts it: from the Ethernet header on, with a VLAN tag's room."""
    return spec.mtu + 18


def queue_bytes(spec: FabricSpec, rate_bps: int) -> int:
    """What waits at an end of a link of that (emulated) rate at most, before the tail is dropped."""
    return max(8 * frame_bytes(spec), int(rate_bps / 8 * spec.queue_ms / 1000))


def quanta(spec: FabricSpec, share: float) -> tuple[int, int]:
    """Bytes that the first and the second of two queues send in a turn, so that the second has ``share``.

    The smaller is a frame, as deficit round robin wants it to send something in every turn (Shreedhar and Varghese,
    "Efficient fair queuing using deficit round robin", SIGCOMM 1995).
    """
    frame, smaller = frame_bytes(spec), min(share, 1 - share)
    return round(frame * (1 - share) / smaller), round(frame * share / smaller)
