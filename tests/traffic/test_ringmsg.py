"""One system call for all sockets: what arrives is all that was sent, a wait ends when it is to."""

from __future__ import annotations

import os
import socket
import time
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
import pytest

from hpn.traffic.flows.ip_layer import IPV4
from hpn.traffic.io import uring
from hpn.traffic.io.recvmmsg import BatchReceiver
from hpn.traffic.io.ringmsg import RingReceiver, RingSender, Sleeper
from hpn.traffic.io.sendmmsg import PacketRows
from hpn.traffic.io.uring import Ring, open_ring

MS = 1_000_000
PAYLOAD_BYTES = 64
IP_RECVTOS, IP_TOS = 13, 1


@pytest.fixture
def ring() -> Iterator[Ring]:
    found = open_ring(64)
    if found is None:
        pytest.skip("no io_uring with what is needed here")
    yield found
    found.close()


@pytest.fixture
def sockets() -> Iterator[list[socket.socket]]:
    """Three that take datagrams and tell their TOS, and one that sends."""
    made = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) for _ in range(4)]
    for sock in made:
        sock.bind(("127.0.0.1", 0))
        sock.setsockopt(socket.IPPROTO_IP, IP_RECVTOS, 1)
    yield made
    for sock in made:
        sock.close()


def _receiver(ring: Ring, sockets: list[socket.socket]) -> RingReceiver:
    into = BatchReceiver(48, PAYLOAD_BYTES, tos=True)
    return RingReceiver(ring, into, [sock.fileno() for sock in sockets[:3]], Counter())


def _take(receiver: RingReceiver) -> list[tuple[int, bytes, int]]:
    """Owner, datagram and TOS of everything that waits."""
    found, more = [], True
    while more:
        batch, more = receiver.receive()
        if batch is not None:
            rows = batch.rows[slice(len(batch.lengths)) if batch.places is None else batch.places]
            told = zip(rows, batch.lengths.tolist(), batch.owners.tolist(), batch.tos.tolist(), strict=True)
            found += [(owner, row[:length].tobytes(), tos) for row, length, owner, tos in told]
    return found


@pytest.mark.parametrize("counts", [(0, 0, 0), (1, 0, 3), (5, 1, 0), (40, 2, 17)])
def test_all_that_waits_is_taken_however_little_was_asked_for(
    ring: Ring, sockets: list[socket.socket], counts: tuple[int, int, int]
) -> None:
    receiver, sender = _receiver(ring, sockets), sockets[3]
    for round_ in range(3):
        sent = []
        for owner, count in enumerate(counts):
            sender.setsockopt(socket.IPPROTO_IP, IP_TOS, 4 * owner + 1)
            for k in range(count):
                data = bytes([round_, owner, k]) * (1 + k % 7)
                sender.sendto(data, sockets[owner].getsockname())
                sent.append((owner, data, 4 * owner + 1))
        assert sorted(_take(receiver)) == sorted(sent)
        assert _take(receiver) == []


def test_datagrams_of_a_socket_keep_their_order(ring: Ring, sockets: list[socket.socket]) -> None:
    receiver = _receiver(ring, sockets)
    for k in range(30):
        sockets[3].sendto(bytes([k]), sockets[1].getsockname())
    assert [data[0] for _, data, _ in _take(receiver)] == list(range(30))


class _Counting(Ring):
    asked = 0

    def put(self, requests: uring.Requests) -> None:
        self.asked = len(requests)
        super().put(requests)


@pytest.fixture
def counting() -> Iterator[_Counting]:
    try:
        found = _Counting(64)
    except OSError:
        pytest.skip("no io_uring with what is needed here")
    yield found
    found.close()


def _asked(ring: _Counting, sockets: list[socket.socket], arrivals: Iterable[int]) -> list[int]:
    """Requests for one socket at each receive, while so many arrive there before it."""
    receiver, asked = _receiver(ring, sockets), []
    for count in arrivals:
        for k in range(count):
            sockets[3].sendto(bytes([k]), sockets[1].getsockname())
        receiver.receive()
        asked.append(ring.asked - 2 * 2)  # less what the two others are asked for
    return asked


def test_a_socket_that_gave_all_is_asked_for_twice_as_many(counting: _Counting, sockets: list[socket.socket]) -> None:
    # At most its share of the memory, 48 / 3.
    assert _asked(counting, sockets, (0, 2, 40, 0, 0)) == [2, 2, 4, 8, 16]


def test_many_after_few_come_in_one_batch(counting: _Counting, sockets: list[socket.socket]) -> None:
    asked = _asked(counting, sockets, (12, 0, 0) + 20 * (12, 1))
    assert set(asked[4:]) == {16}


def test_a_socket_is_asked_for_fewer_when_long_no_more_came(counting: _Counting, sockets: list[socket.socket]) -> None:
    asked = _asked(counting, sockets, (12, 0, 0, 12, *200 * (1,)))
    assert asked[20] == 16
    assert asked[-1] == 8


def test_what_a_socket_refuses_is_counted(ring: Ring, sockets: list[socket.socket]) -> None:
    errors: Counter[str] = Counter()
    receiver = RingReceiver(ring, BatchReceiver(48, PAYLOAD_BYTES), [sockets[0].fileno(), 9999], errors)
    sockets[3].sendto(b"x", sockets[0].getsockname())
    batch, _ = receiver.receive()
    assert batch is not None
    assert batch.owners.tolist() == [0]
    assert errors == {"Bad file descriptor": 2}


def test_each_row_leaves_by_its_own_socket(ring: Ring, sockets: list[socket.socket]) -> None:
    rows, port = PacketRows(5, bytes(64)), sockets[3].getsockname()[1]
    for row in range(5):
        rows.place(row, bytes([row]))
        rows.address(row, IPV4.sockaddr("127.0.0.1", port))
    segments = [(sockets[0].fileno(), 0, 2), (sockets[2].fileno(), 2, 4), (sockets[1].fileno(), 4, 5)]
    sender = RingSender(ring, rows)
    for _ in range(2):
        assert sender.hand_over(segments) == 5
        came = [sockets[3].recvfrom(9) for _ in range(5)]
        assert came == [(bytes([row]), sockets[by].getsockname()) for row, by in enumerate((0, 0, 2, 2, 1))]


def test_a_wait_ends_at_its_time_and_when_something_can_be_read() -> None:
    near, far = socket.socketpair()
    with near, far:
        try:
            sleeper = Sleeper(near.fileno())
        except OSError:
            pytest.skip("no io_uring with what is needed here")
        until_ns = time.monotonic_ns() + 20 * MS
        assert not sleeper.until(until_ns)
        assert time.monotonic_ns() >= until_ns
        far.send(b"x")
        begun_ns = time.monotonic_ns()
        assert sleeper.until(begun_ns + 5000 * MS)
        assert time.monotonic_ns() < begun_ns + 2000 * MS
        near.recv(1)
        until_ns = time.monotonic_ns() + 20 * MS
        assert not sleeper.until(until_ns)
        assert time.monotonic_ns() >= until_ns


def test_queues_go_round(ring: Ring) -> None:
    """Marks come back in order over many times the ring's size, whatever part of it is filled."""
    with open(os.devnull, "rb") as file:
        watch = np.zeros(37, uring.REQUEST)  # POLL_ADD of a file that can always be read
        watch["operation"], watch["fd"], watch["how"] = uring.WATCH, file.fileno(), 1
        for round_ in range(20):
            watch["mark"] = np.arange(37) + 100 * round_
            ring.put(watch)
            assert ring.enter(37)["mark"].tolist() == watch["mark"].tolist()


def test_more_requests_than_entries_are_a_mistake(ring: Ring) -> None:
    with pytest.raises(ValueError, match="65 requests for a ring of 64"):
        ring.put(np.zeros(65, uring.REQUEST))


def test_where_the_kernel_has_or_allows_none_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uring, "_SETUP", -1)  # a system call that no kernel has
    assert open_ring(64) is None
    monkeypatch.undo()
    monkeypatch.setattr(uring, "_ABSOLUTE", 1 << 30)  # a flag that no kernel knows
    assert open_ring(64) is None
