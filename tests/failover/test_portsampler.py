"""The port sampler on a lab: an overloaded port is read full with its drops, a healthy one empty."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Container, Iterable
from itertools import pairwise

import pytest

from hpn.failover.analysis.port_sampling import Ports, Sampling, Watched, watched
from hpn.failover.analysis.ports import PortResult, port_metrics
from hpn.failover.sampling.ports import PortSampler, into_ns
from hpn.testbed.errors import MachineError
from hpn.testbed.events import now_ns
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Link
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.kernel.rtnetlink.qdisc import BucketReading
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.wire import queue_bytes
from tests.lab.running import running, tiny

MS = 10**6
EXPERIMENTAL = 0x88B6  # IEEE 802 local experimental 2: nobody else's
FRAME = 4000
CONTROL_FRAMES = 10  # LACP's own, that may wait or be dropped too


def _sent(sender: socket.socket, frame: bytes) -> bool:
    """False when the queue had no room."""
    try:
        sender.send(frame)
    except OSError as error:
        if error.errno == errno.ENOBUFS:
            return False
        raise
    return True


async def _overload(lab: Lab, link: Link, seconds: float) -> tuple[int, int]:
    """Offer twice its rate to the ToR's end of a link; how many frames, and how many the kernel refused."""
    space = lab.wiring.namespaces[link.upper.node]
    head = bytes.fromhex((link.lower.mac + link.upper.mac).replace(":", "")) + EXPERIMENTAL.to_bytes(2)
    frame = head.ljust(FRAME, b"x")
    per_s = 2 * link.rate_bps / 8 / FRAME
    offered = refused = 0
    began_ns = now_ns()
    with space.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((link.upper.name, 0))
        while (passed_s := (now_ns() - began_ns) / 1e9) < seconds:
            for _ in range(int(passed_s * per_s) - offered):
                offered += 1
                refused += not _sent(sender, frame)
            await asyncio.sleep(0.005)
    return offered, refused


@pytest.mark.kernel
async def test_an_overloaded_port_is_read_full_and_the_others_empty() -> None:
    async with running(tiny(segments=1, scale=10_000), converge=False) as lab:
        link = lab.fabric.links_of("p0.s0.t0.0")[0]
        sampler = PortSampler(lab.fabric, lab.requests, Sampling(5 * MS, Ports.SWITCHES))
        sampler.start(now_ns())
        offered, refused = await _overload(lab, link, 1.0)
        sampler.stop()
        sampled = sampler.sampled()
        assert sampled is not None
        found = {port.port: port for port in port_metrics(sampled, now_ns(), now_ns(), ()).ports}
        assert len(found) == sum(len(lab.fabric.links_of(node.name)) for node in lab.fabric.switches)
        _is_full(found.pop(link.upper.label), offered, refused, queue_bytes(lab.fabric, link))
        for port in found.values():
            assert port.drops == 0, port
            assert port.queue_max_bytes < FRAME, port
            assert port.load < 0.05, port


def _is_full(port: PortResult, offered: int, refused: int, limit_bytes: int) -> None:
    assert refused > 0
    assert refused <= port.drops <= refused + CONTROL_FRAMES
    assert limit_bytes - FRAME < port.queue_max_bytes <= limit_bytes + FRAME, "the bucket holds the next one itself"
    assert port.queue_max_ms == pytest.approx(port.queue_max_bytes * 8e3 / port.rate_bps)
    waiting = limit_bytes // FRAME
    assert offered - waiting <= port.sent_packets + port.drops <= offered + CONTROL_FRAMES


@pytest.mark.kernel
async def test_without_sampling_nothing_is_read() -> None:
    async with running(tiny(segments=1), converge=False) as lab:
        sampler = PortSampler(lab.fabric, lab.requests, None)
        sampler.start(now_ns())
        sampler.stop()
        assert sampler.sampled() is None


@pytest.mark.kernel
async def test_a_kernel_that_refuses_is_named() -> None:
    async with running(tiny(segments=1), converge=False) as lab:
        sampler = PortSampler(lab.fabric, _refuse, Sampling(5 * MS))
        sampler.start(now_ns())
        await asyncio.sleep(0.02)
        sampler.stop()
        with pytest.raises(MachineError, match="queues cannot be sampled: no such luck; remove 'sample'"):
            sampler.sampled()


class _Buckets(Netlink):
    """Of a kernel whose switches have a token bucket at every port, and no RED."""

    def __init__(self, ports: Iterable[Watched]) -> None:
        """Opens nothing."""
        self._ports = ports

    def buckets(self, ifindexes: Container[int]) -> list[BucketReading]:
        found = {port.ifindex for port in self._ports if port.ifindex in ifindexes}
        return [BucketReading(now_ns(), ifindex, 0, 0, 0, 0, 0, 10**9) for ifindex in found]


class _Marks:
    """Of one port alone: one more each time it is read."""

    def __init__(self, ifindex: int) -> None:
        self.ifindex = ifindex
        self.marked = 6
        self.open = True

    def read(self) -> dict[int, int]:
        self.marked += 1
        return {self.ifindex: self.marked}

    def close(self) -> None:
        self.open = False


async def test_what_marks_beside_the_queues_is_read_with_them() -> None:
    fabric = build(tiny(segments=1))
    ports = watched(fabric, Ports.SWITCHES)
    opened = {port.node: _Marks(port.ifindex) for port in reversed(ports)}  # of each node's first port
    sampler = PortSampler(
        fabric, lambda _node: _Buckets(ports), Sampling(60_000 * MS, Ports.SWITCHES), opened.__getitem__
    )
    sampler.start(now_ns())
    await asyncio.sleep(0.01)
    sampler.stop()
    found = sampler.sampled()
    assert found is not None
    for series in found.series:
        marked = [reading.marked for reading in series.until(now_ns())]
        assert marked == ([7, 8] if series.port.ifindex == opened[series.port.node].ifindex else [None, None])
    assert not any(marks.open for marks in opened.values())


async def test_marks_that_cannot_be_read_are_named() -> None:
    sampler = PortSampler(build(tiny(segments=1)), lambda _node: _Buckets(()), Sampling(5 * MS), _refuse_marks)
    sampler.start(now_ns())
    sampler.stop()
    with pytest.raises(MachineError, match="queues cannot be sampled: no counters here"):
        sampler.sampled()


def _refuse_marks(_node: str) -> _Marks:
    raise OSError(errno.EPERM, "no counters here")


def _refuse(_node: str) -> Netlink:
    raise OSError(errno.EPERM, "no such luck")


def test_readings_move_through_their_period() -> None:
    """One in each, and at no fixed place: a sender's tick must not be met at the same phase every time."""
    moments = [into_ns(10 * MS, number) for number in range(1000)]
    assert [moment // (10 * MS) for moment in moments] == list(range(1000))
    places = sorted([0, 10 * MS, *(moment % (10 * MS) for moment in moments)])
    assert max(b - a for a, b in pairwise(places)) < 0.05 * MS
