"""Path control frames: exact bytes, round trips, and nothing but silence for the rest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hpn.testbed.routing.pathcontrol.message import (
    MAX_ENTRIES,
    Interest,
    Reach,
    decode,
    encode_hello,
    encode_interest,
    encode_reach,
)

addresses = st.lists(st.ip_addresses(v=4).map(str), min_size=1, max_size=700)
states = st.lists(st.tuples(st.ip_addresses(v=4).map(str), st.booleans()), min_size=1, max_size=700)


def test_frames_are_as_documented() -> None:
    assert encode_interest(500, ["10.0.1.1", "10.0.1.2"]) == [
        bytes.fromhex("4850 02 01 0002 01f4 0000000000000000 0a000101 0a000102")
    ]
    assert encode_reach(7, [("10.0.1.1", False), ("10.0.1.2", True)]) == [
        bytes.fromhex("4850 02 02 0002 0000 0000000000000007 0a00010100 0a00010201")
    ]


def test_a_full_frame_fits_the_smallest_ethernet() -> None:
    assert MAX_ENTRIES == 296
    assert len(encode_reach(0, [("10.0.0.1", True)] * MAX_ENTRIES)[0]) <= 1500


@given(st.integers(1, 60_000), addresses, st.binary(max_size=46))
def test_interest_survives_the_wire_and_its_padding(refresh_ms: int, wanted: list[str], padding: bytes) -> None:
    messages = [decode(frame + padding) for frame in encode_interest(refresh_ms, wanted)]
    assert all(isinstance(m, Interest) and m.refresh_ms == refresh_ms for m in messages)
    assert [ip for m in messages if isinstance(m, Interest) for ip in m.destinations] == wanted


@given(st.integers(0, 2**64 - 10), states)
def test_reach_survives_the_wire(number: int, told: list[tuple[str, bool]]) -> None:
    messages = [decode(frame) for frame in encode_reach(number, told)]
    assert [m.number for m in messages if isinstance(m, Reach)] == [number + at for at in range(len(messages))]
    assert [state for m in messages if isinstance(m, Reach) for state in m.states] == told


@given(st.binary(max_size=200))
def test_noise_is_ignored(payload: bytes) -> None:
    assert decode(payload) is None or payload.startswith(b"HP\x02")


@given(states, st.data())
def test_a_cut_frame_is_ignored_whole(told: list[tuple[str, bool]], data: st.DataObject) -> None:
    frame = encode_reach(3, told)[0]
    assert decode(frame[: data.draw(st.integers(0, len(frame) - 1))]) is None


def test_other_versions_kinds_and_values_are_ignored() -> None:
    good = encode_reach(3, [("10.0.0.1", True)])[0]
    assert decode(good) is not None
    for at, value in ((0, 0x49), (2, 1), (3, 3), (3, 0), (-1, 2), (4, 0xFF)):
        bad = bytearray(good)
        bad[at] = value
        assert decode(bytes(bad)) is None, (at, value)
    assert decode(encode_interest(0, ["10.0.0.1"])[0]) is None  # would live for no time
    asking = encode_interest(500, ["10.0.0.1"])[0]
    assert decode(asking[:4] + b"\0\0" + asking[6:]) is None  # about nothing


def test_an_agent_that_starts_says_so_without_a_state() -> None:
    assert decode(encode_hello(2 << 32) + bytes(30)) == Reach(2 << 32, ())
    assert Reach((2 << 32) + 5, ()).epoch == 2


def test_a_frame_longer_than_any_of_ours_is_ignored_whole() -> None:
    full = encode_reach(3, [("10.0.0.1", True)] * MAX_ENTRIES)[0]
    assert decode(full) is not None
    assert decode(full + bytes(1501 - len(full))) is None
