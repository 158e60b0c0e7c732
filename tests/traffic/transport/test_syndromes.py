"""What 256 syndromes mean, by the standard's table (IBTA vol. 1, tables 44 and 45)."""

from __future__ import annotations

from hpn.traffic.transport.syndromes import REFUSALS, SYNDROME_ACK, SYNDROME_NAK_INVALID, SYNDROME_NAK_PSN, Says, says
from hpn.traffic.transport.work import Status


def test_an_acknowledgement_is_one_whatever_credits_it_brings() -> None:
    assert {says(credits) for credits in range(0x20)} == {Says.ARRIVED}
    assert says(SYNDROME_ACK) is Says.ARRIVED


def test_one_nak_says_that_a_packet_is_missing_and_three_refuse_a_request() -> None:
    assert [syndrome for syndrome in range(256) if says(syndrome) is Says.MISSING] == [SYNDROME_NAK_PSN]
    assert [syndrome for syndrome in range(256) if says(syndrome) is Says.REFUSED] == [0x61, 0x62, 0x63]
    assert REFUSALS[SYNDROME_NAK_INVALID] is Status.INVALID_REQUEST
    assert (REFUSALS[0x62], REFUSALS[0x63]) == (Status.ACCESS_ERROR, Status.OPERATION_ERROR)


def test_a_peer_that_is_not_ready_acknowledges_nothing_and_misses_nothing() -> None:
    assert {says(0x20 + timer) for timer in range(0x20)} == {Says.NOTHING}
