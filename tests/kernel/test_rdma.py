"""RDMA netlink: the bytes of requests and answers (linux/rdma_netlink.h), no kernel asked."""

from __future__ import annotations

import struct

from hpn.testbed.kernel.rtnetlink.nlmsg import attributes
from hpn.testbed.kernel.softroce import rdma

NLDEV = 5 << 10


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def test_a_link_is_asked_for_by_its_name_kind_and_interface() -> None:
    request = rdma.new_link("rxe-p0.s0.h0.r0", "rxe", "bond0")
    size, kind, flags, _, _ = struct.unpack_from("=IHHII", request)
    assert (size, kind, flags) == (len(request), NLDEV + 3, 0x1 | 0x4)
    assert len(request) % 4 == 0
    assert attributes(request[16:]) == {2: b"rxe-p0.s0.h0.r0\0", 65: b"rxe\0", 51: b"bond0\0"}


def test_a_link_goes_by_its_index_and_counters_are_of_its_only_port() -> None:
    assert rdma.delete_link(7)[4:6] == struct.pack("=H", NLDEV + 4)
    assert attributes(rdma.delete_link(7)[16:]) == {1: struct.pack("=I", 7)}
    assert rdma.counters_request(7)[4:6] == struct.pack("=H", NLDEV + 17)
    assert attributes(rdma.counters_request(7)[16:]) == {1: struct.pack("=I", 7), 3: struct.pack("=I", 1)}


def test_every_counter_of_an_answer_is_read_in_its_order() -> None:
    told = {"sent_pkts": 6613, "rcvd_pkts": 2**40, "duplicate_request": 0}
    entries = b"".join(
        attribute(81 | 0x8000, attribute(82, name.encode() + b"\0") + attribute(83, struct.pack("=Q", value)))
        for name, value in told.items()
    )
    body = attribute(1, struct.pack("=I", 7)) + attribute(2, b"rxe-a\0") + attribute(80 | 0x8000, entries)
    assert list(rdma.parse_counters(body).items()) == list(told.items())
    assert rdma.parse_device(body) == ("rxe-a", 7)
    assert rdma.parse_counters(attribute(1, struct.pack("=I", 7))) == {}
