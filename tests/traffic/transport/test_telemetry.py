"""Probes of in-band telemetry: what a switch writes is read back, and nonsense is refused."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.traffic.congestion.hop import Hop
from hpn.traffic.flows.framing import IP_UDP_BYTES
from hpn.traffic.io.sendmmsg import HEAD_BYTES
from hpn.traffic.transport.packets import (
    PROBE_BYTES,
    Envelope,
    Opcode,
    Packet,
    pack_echo,
    pack_ip,
    pack_probe,
    parse,
)
from hpn.traffic.transport.telemetry import EMPTY, ROOM, Telemetry, read_trailer, write_trailer

TO = Envelope("10.0.0.1", "10.1.0.7", 0xC111, 0x0ABCDE)
_SOURCE = TO.sport.to_bytes(2, "big") + bytes((10, 0, 0, 1))
_TRAILER_AT = 24

hops = st.builds(
    Hop,
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1).map(lambda kbps: kbps * 1000),
)


def _read(udp_payload: bytes) -> Packet | None:
    return parse(udp_payload, _SOURCE, TO.dst_ip)


def _as_a_switch(udp_payload: bytes, hop: Hop) -> bytes:
    """What ``sch_mmu.c`` makes of a probe."""
    count, room = udp_payload[_TRAILER_AT : _TRAILER_AT + 2]
    if udp_payload[0] != Opcode.PROBE or count >= room:
        return udp_payload
    changed = bytearray(udp_payload)
    changed[_TRAILER_AT] += 1
    record = (hop.time_ns, hop.sent_bytes, hop.queue_bytes, hop.rate_bps // 1000)
    struct.pack_into(">QQII", changed, _TRAILER_AT + 4 + 24 * count, *record)
    return bytes(changed)


@given(st.integers(-(2**63), 2**63 - 1), st.lists(hops, max_size=ROOM + 2))
def test_a_probe_is_read_with_the_first_eight_ports_that_it_passed_and_echoed_as_it_came(
    sent_ns: int, passed: list[Hop]
) -> None:
    probe = pack_probe(TO, sent_ns)
    for hop in passed:
        probe = _as_a_switch(probe, hop)
    assert len(probe) == PROBE_BYTES == 220
    found = _read(probe)
    assert found is not None
    assert found.telemetry is not None
    assert (found.intact, found.opcode, found.qpn) == (True, Opcode.PROBE, TO.qpn)
    assert (found.telemetry.sent_ns, found.telemetry.hops) == (sent_ns, tuple(passed[:ROOM]))
    echo = pack_echo(TO, found.telemetry)
    assert _as_a_switch(echo, Hop(1, 2, 3, 4000)) == echo
    answer = _read(echo)
    assert answer is not None
    assert (answer.intact, answer.opcode, answer.telemetry) == (True, Opcode.ECHO, found.telemetry)


@given(st.lists(hops, max_size=ROOM))
def test_a_trailer_that_is_written_is_read(passed: list[Hop]) -> None:
    trailer = write_trailer(tuple(passed))
    assert len(trailer) == len(EMPTY)
    assert read_trailer(trailer) == tuple(passed)


@pytest.mark.parametrize(
    "trailer",
    [
        b"",
        b"\0\x08\0",
        EMPTY[:-1],
        EMPTY + b"\0",
        b"\x03\x02\0\0" + bytes(48),  # more than there is room for
        b"\x00\x09\0\0" + bytes(9 * 24),  # more room than any probe has
        b"\x01\x01\0\0" + bytes(23),
    ],
)
def test_nonsense_is_refused(trailer: bytes) -> None:
    assert read_trailer(trailer) is None
    assert _read(pack_probe(TO, 7)[:_TRAILER_AT] + trailer) is None


@given(st.binary(max_size=300))
def test_hostile_trailers_are_read_or_refused(trailer: bytes) -> None:
    found = read_trailer(trailer)
    assert found is None or len(found) <= ROOM


def test_the_icrc_covers_all_but_the_trailer() -> None:
    probe = pack_probe(TO, 0x1234_5678)
    for at in range(len(probe)):
        broken = bytearray(probe)
        broken[at] ^= 1
        found = _read(bytes(broken))
        if 0 < at < _TRAILER_AT and at != 4:
            assert found is not None, at
            assert not found.intact, at
    for other in (_SOURCE[:1] + b"\0" + _SOURCE[2:], _SOURCE[:5] + b"\x02"):
        found = parse(probe, other, TO.dst_ip)
        assert found is not None
        assert not found.intact


def test_an_echo_fits_into_the_row_of_a_reply() -> None:
    full = Telemetry(1, (), EMPTY)
    assert len(pack_ip(TO, pack_echo(TO, full))) == IP_UDP_BYTES + PROBE_BYTES <= HEAD_BYTES
