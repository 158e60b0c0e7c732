"""Locations of a job's ranks, as far as collectives need them. PURE."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Place:
    """The GPU of a rank: its host, and the rail of its NIC in that host."""

    host: str
    rail: int
    nic: str  # name of the NIC
    ip: str  # of the NIC
    segment: int  # of the host; counted through all pods
    coordinates: tuple[int, ...] = ()  # of its switches: along each dimension, or pod and segment


class CrossRail(StrEnum):
    """Path of a message to a GPU of another host on another rail."""

    NVLINK = "nvlink"
    """Through the NVLink domain to the GPU of the destination's rail, whose NIC sends it (NCCL's PXN). It is HPN's only
    path where no switch connects rails."""
    FABRIC = "fabric"
    """From the sender's own NIC: the fabric carries it from rail to rail."""


@dataclass(frozen=True, slots=True)
class Inside:
    """Inside of a host: a GPU's rate into the NVLink domain, scaled as the fabric is, and the crossing of rails.

    The time of a message there is modelled: size / rate, messages of one GPU one after the other. Arrivals at a GPU are
    not limited.
    """

    nvlink_bps: float
    cross_rail: CrossRail = CrossRail.NVLINK

    def transfer_ns(self, size_bytes: int) -> int:
        """Return the time (ns) that so many bytes take out of a GPU."""
        return max(1, round(size_bytes * 8e9 / self.nvlink_bps))
