"""What a capture writes, read by tshark: every packet, at every link, in order, with nothing malformed."""

from __future__ import annotations

import shutil
import subprocess
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.packets.capture import WHOLE_BYTES, Capture, Tap
from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.traffic.io.sockets import open_raw_sender, open_receiver
from hpn.traffic.transport.outgoing import Outgoing
from hpn.traffic.transport.packets import Envelope
from hpn.traffic.transport.requester import Run
from hpn.traffic.transport.work import WorkRequest
from tests.traffic import nets

MTU = 4096
PACKETS = 40
_WORDS = np.arange(PACKETS, dtype=np.uint64) + np.uint64(0xDEADBEEF)  # as content is; small ones look like EtherTypes


def _tshark(file: Path, *options: str) -> list[str]:
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("tshark is not installed")
    return subprocess.run(
        [tshark, "-r", str(file), *options], check=True, capture_output=True, text=True
    ).stdout.split()


def _fields(file: Path, *names: str) -> list[list[str]]:
    lines = _tshark(file, "-T", "fields", "-E", "separator=;", *(option for name in names for option in ("-e", name)))
    return [line.split(";") for line in lines]


def _taps(net: nets.Net) -> list[Tap]:
    """The router's ports: the first link's far end, the second's near end."""
    router = net.routers[0]
    return [Tap("a-r", router, "w0", 10**9), Tap("r-b", router, "e1", 2 * 10**9)]


def _send(net: nets.Net) -> None:
    outgoing = Outgoing(64, MTU)
    request = WorkRequest(0, PACKETS * MTU - 7, 1 << 40, 5)
    with open_raw_sender(net.a) as sender, open_receiver(net.b, nets.B_IP):
        path = outgoing.open_path(sender.fileno(), Envelope(nets.A_IP, nets.B_IP, 0xC123, 0x1234), ack_every=16)
        outgoing.add(path, Run(request, 0, PACKETS, 0, again=False), _WORDS, 7)
        assert outgoing.send() == PACKETS


@pytest.mark.kernel
@pytest.mark.parametrize("snap_bytes", [WHOLE_BYTES, 128])
def test_tshark_finds_every_packet_at_both_links_in_order_and_nothing_malformed(
    tmp_path: Path, snap_bytes: int
) -> None:
    net, file = nets.chain(routers=1), tmp_path / "x.pcapng"
    with file.open("wb") as out, closing(Capture(_taps(net), out, "hpn", snap_bytes)) as capture:
        before_ns = time.time_ns()
        _send(net)
        end_ns = time.monotonic_ns() + 10**10
        while min(found.packets for found in capture.captured) < PACKETS and time.monotonic_ns() < end_ns:
            capture.run(time.monotonic_ns() + 20_000_000)
        capture.run(time.monotonic_ns() + 20_000_000)  # what the kernels say besides may have been among them
        after_ns = time.time_ns()
    names = ("frame.interface_name", "frame.packet_flags_direction", "frame.len", "frame.cap_len", "infiniband.bth.psn")
    every = _fields(file, *names, "infiniband.bth.opcode", "frame.time_epoch")
    for found in capture.captured:
        sizes = [int(row[2]) for row in every if row[0] == found.link]
        assert (found.packets, found.bytes, found.lost) == (len(sizes), sum(sizes), 0)
    rows = [row for row in every if row[4]]  # the kernels have their own to say too
    for link, direction in (("a-r", "0x00000001"), ("r-b", "0x00000002")):
        seen = [row for row in rows if row[0] == link]
        assert [int(row[4]) for row in seen] == list(range(PACKETS))
        assert [int(row[5]) for row in seen] == [6, *[7] * (PACKETS - 2), 9]
        assert {row[1] for row in seen} == {direction}
        assert {int(row[3]) for row in seen} == {min(int(row[2]), snap_bytes) for row in seen}
        assert [int(row[2]) for row in seen][1:-1] == [14 + 28 + 12 + MTU + 4] * (PACKETS - 2)
    stamps = [row[6] for row in every]
    assert stamps == sorted(stamps)
    ours = [float(row[6]) for row in rows]  # a kernel may say something until the capture is closed
    assert before_ns / 1e9 <= ours[0] <= ours[-1] <= after_ns / 1e9
    assert _tshark(file, "-Y", "_ws.malformed || _ws.expert.severity >= error") == []


@pytest.mark.kernel
def test_what_the_socket_had_no_room_for_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hpn.testbed.kernel.packets.capture._BUFFER_BYTES", 100_000)
    net, file = nets.chain(routers=1), tmp_path / "x.pcapng"
    with file.open("wb") as out, closing(Capture(_taps(net), out, "hpn")) as capture:
        _send(net)
    for seen in capture.captured:
        assert seen.lost > 0
        assert seen.packets + seen.lost >= PACKETS
    assert len(_fields(file, "frame.number")) == sum(seen.packets for seen in capture.captured)


@pytest.mark.kernel
def test_a_link_that_goes_down_and_comes_back_is_heard_again(tmp_path: Path) -> None:
    net = nets.chain(routers=1)
    router = Netlink(net.routers[0])
    with (tmp_path / "x.pcapng").open("wb") as out, closing(Capture(_taps(net), out, "hpn")) as capture:
        router.run([rtnl.set_link(nets.B_IF + 1, up=False)])
        capture.run(time.monotonic_ns() + 5_000_000)
        router.run([rtnl.set_link(nets.B_IF + 1, up=True), *nets.westward(net, 1)])
        nets.until_running(net.a, *net.routers)
        _send(net)
    assert capture.captured[0].packets >= PACKETS


@pytest.mark.kernel
def test_a_node_without_that_interface_is_named(tmp_path: Path) -> None:
    net = nets.chain(routers=1)
    taps = [Tap("x-y", net.routers[0], "nothing", 1)]
    with (tmp_path / "x").open("wb") as out, pytest.raises(MachineError, match="cannot listen to x-y at r0:nothing"):
        Capture(taps, out, "hpn")
