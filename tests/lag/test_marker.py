"""The Marker Responder, judged by scapy and by noise; Linux bonding judges it in ``tests/lab/test_bonding``."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hpn.testbed.lag.marker import MARKER_PDU_SIZE, answer
from tests.lag.markers import marker

U16, U32 = st.integers(0, 0xFFFF), st.integers(0, 0xFFFFFFFF)
MAC = st.binary(min_size=6, max_size=6).map(lambda raw: raw.hex(":"))


@given(U16, MAC, U32)
def test_a_marker_is_answered_with_its_own_words(port: int, system: str, transaction: int) -> None:
    from scapy.contrib.lacp import MarkerProtocol

    asked = marker(port, system, transaction)
    assert len(asked) == MARKER_PDU_SIZE == 110
    reply = answer(asked)
    assert reply is not None
    read = MarkerProtocol(reply[1:])  # after the subtype
    assert (reply[0], read.marker_type) == (2, 2)
    found = (read.requester_port, read.requester_system, read.requester_transaction_id)
    assert found == (port, system, transaction)
    assert answer(reply) is None, "a response is not answered"


def test_a_later_version_s_marker_is_answered_and_its_unknown_octets_are_not_repeated() -> None:
    asked = bytearray(marker(1, "02:00:00:00:00:0a", 9))
    asked[1], asked[40] = 2, 0xFF
    assert answer(bytes(asked) + bytes(10)) == answer(marker(1, "02:00:00:00:00:0a", 9))


@given(st.binary(max_size=140))
def test_noise_is_not_answered(payload: bytes) -> None:
    assert answer(payload) is None or payload[:4] == bytes((2, payload[1], 1, 16))


@given(st.sampled_from([0, 2, 3, 19]), st.integers(0, 255))
def test_a_wrong_type_or_length_is_not_answered(at: int, octet: int) -> None:
    asked = bytearray(marker(1, "02:00:00:00:00:0a", 9))
    if octet == asked[at]:
        return
    asked[at] = octet
    assert answer(bytes(asked)) is None
