"""Synthetic records with known truth: what a sender with jitter sends into a network that fails at known times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hpn.failover.analysis.model import Edge, EdgeKind, HitLink
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.streams.columns import InMemory, Table
from hpn.traffic.streams.records import RECEIVED, SENT

MS = 10**6
S = 10**9

HIT = HitLink("p0.s0.h0.r0.0", "p0.s0.h0:r0.0", "p0.s0.t0.0:h0", "p0.s0.h0.r0", "p0.s0.h0", "bond0", "10.0.0.1")


def flow(number: int = 0, rate_pps: float = 1000, src: str = "p0.s0.h0.r0", dst: str = "p0.s1.h0.r0") -> FlowSpec:
    return FlowSpec(
        id=number,
        name=f"{src}>{dst}#{number}",
        src_nic=src,
        dst_nic=dst,
        src_ip="10.0.0.1",
        dst_ip="10.0.1.1",
        sport=0xC000 + number,
        ack_sport=0xD000 + number,
        rate_pps=rate_pps,
        path_mtu=1024,
    )


def edge(at_ns: int, end_ns: int, kind: EdgeKind = EdgeKind.FAILURE, index: int = 0, fault: str = "link") -> Edge:
    return Edge(fault, kind, index, at_ns, at_ns + MS // 10, end_ns, (HIT,))


@dataclass(frozen=True)
class Dead:
    """The network drops every packet sent in [start, end)."""

    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class Records:
    sent: npt.NDArray[np.void]
    received: npt.NDArray[np.void]

    @property
    def tables(self) -> tuple[Table, Table]:
        """Sent and received, as analysis takes them."""
        return InMemory(self.sent), InMemory(self.received)

    def __add__(self, other: Records) -> Records:
        return Records(np.concatenate([self.sent, other.sent]), np.concatenate([self.received, other.received]))


NO_PACKETS: tuple[Table, Table] = (InMemory(np.empty(0, SENT)), InMemory(np.empty(0, RECEIVED)))
"""Sent and received, of a job."""


def record(
    spec: FlowSpec,
    duration_ns: int,
    dead: Sequence[Dead] = (),
    *,
    paused: Sequence[Dead] = (),
    start_ns: int = S,
    jitter_ns: int = 0,
    burst: int = 1,
    loss: float = 0.0,
    delay_ns: int = MS // 10,
    seed: int = 1,
    first_seq: int = 0,
    stuck: Dead | None = None,
    stuck_for_ns: int = S // 2,
) -> Records:
    """A paced sender that is late by up to ``jitter_ns`` or stands still (and catches up), and what arrives of it.

    Packets sent during ``stuck`` wait ``stuck_for_ns`` longer on their way.
    """
    rng = np.random.default_rng(seed)
    period = 1e9 / spec.rate_pps
    bursts = int(duration_ns / (period * burst))
    due = start_ns + (np.arange(bursts) * period * burst).astype(np.int64)
    times = np.maximum.accumulate(due + rng.integers(0, jitter_ns + 1, bursts))
    for pause in paused:
        times[(times >= pause.start_ns) & (times < pause.end_ns)] = pause.end_ns
    sent = np.zeros(bursts, SENT)
    sent["flow"], sent["count"], sent["sent_ns"], sent["sport"] = spec.id, burst, times, spec.sport
    sent["seq"] = first_seq + np.arange(bursts) * burst
    packet_ns = np.repeat(times, burst)
    alive = rng.random(len(packet_ns)) >= loss
    for gap in dead:
        alive &= (packet_ns < gap.start_ns) | (packet_ns >= gap.end_ns)
    received = np.zeros(len(packet_ns), RECEIVED)
    received["flow"], received["sent_ns"] = spec.id, packet_ns
    received["seq"] = first_seq + np.arange(len(packet_ns))
    received["received_ns"] = packet_ns + delay_ns
    if stuck is not None:
        received["received_ns"][(packet_ns >= stuck.start_ns) & (packet_ns < stuck.end_ns)] += stuck_for_ns
    return Records(sent, received[alive])
