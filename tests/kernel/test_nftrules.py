"""Batches of nftables rules as bytes, and what is read from the kernel's answers."""

from __future__ import annotations

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.testbed.kernel.nftables import rules as nftrules
from hpn.testbed.kernel.nftables.rules import Chain, Refusal
from hpn.testbed.kernel.rtnetlink import nlmsg

NAMES = st.text("abcdefgh_0123456789", min_size=1, max_size=27)
INDEXES = st.integers(1, 2**31 - 1)
BEGIN, END, NEW_RULE, DELETE_RULE = 16, 17, 10 << 8 | 6, 10 << 8 | 8
ACK, CREATE, APPEND = 0x4, 0x400, 0x800


def answer(number: int, code: int = 0) -> bytes:
    """What the kernel says of message ``number``: NLMSG_ERROR with the header of what was asked, and nothing of it."""
    return struct.pack("=IHHIIiIHHII", 36, 2, 0x100, number, 7, -code, 20, NEW_RULE, 1, number, 0)


def expressions(rule: bytes) -> list[tuple[str, dict[int, bytes]]]:
    """Name and attributes of each expression of a rule, which the body of its message holds in order."""
    held, found, at = nlmsg.attributes(rule[4:])[4], [], 0
    while at < len(held):
        size, kind = nlmsg.ATTR.unpack_from(held, at)
        assert (size >= 4, kind) == (True, 0x8001)
        element = nlmsg.attributes(held[at + 4 : at + size])
        found.append((element[1].rstrip(b"\0").decode(), nlmsg.attributes(element[2])))
        at += size + 3 & ~3
    assert at == len(held)
    return found


@given(table=NAMES, chain=NAMES, ports=st.lists(INDEXES, max_size=8), seed=st.integers(0, 2**32 - 1))
def test_a_batch_is_framed_numbered_and_asks_once_for_an_answer(
    table: str, chain: str, ports: list[int], seed: int
) -> None:
    where = Chain(table, chain)
    key = nftrules.jhash(12, 16, len(ports) or 1, seed, 1)
    messages = [where.flush(), *(where.append(key + nftrules.forward(port)) for port in ports)]
    data = nftrules.batch(messages)
    found = list(nlmsg.split(data))
    assert sum(16 + len(body) for _, _, _, body in found) == len(data), "no message is longer or shorter than it says"
    assert [kind for kind, *_ in found] == [BEGIN, DELETE_RULE, *[NEW_RULE] * len(ports), END]
    assert [number for _, number, _, _ in found] == list(range(len(messages) + 2))
    assert [number for _, number, flags, _ in found if flags & ACK] == [len(messages)]
    assert all(flags & (CREATE | APPEND) == CREATE | APPEND for kind, _, flags, _ in found if kind == NEW_RULE)
    assert [found[0][3], found[-1][3]] == [b"\0\0\0\x0a"] * 2, "the subsystem, in network order"
    for _, _, _, body in found[1:-1]:
        assert body[:4] == b"\x05\0\0\0"
        told = nlmsg.attributes(body[4:])
        assert [told[1], told[2]] == [table.encode() + b"\0", chain.encode() + b"\0"]
    for port, (_, _, _, body) in zip(ports, found[2:-1], strict=True):
        (hashed, how), (loaded, value), (sent, register) = expressions(body)
        assert [hashed, loaded, sent] == ["hash", "immediate", "fwd"]
        assert [int.from_bytes(how[n], "big") for n in (1, 2, 3, 4, 5)] == [12, 1, 16, len(ports), seed]
        assert nlmsg.attributes(value[2])[1] == struct.pack("=I", port)
        assert value[1] == register[1], "out of the register that it was put into"


@given(numbers=st.lists(st.integers(1, 9)), refused=st.dictionaries(st.integers(0, 10), st.integers(1, 133)))
def test_the_first_refusal_counts_and_silence_is_one(numbers: list[int], refused: dict[int, int]) -> None:
    answers = [answer(number) for number in numbers] + [answer(number, code) for number, code in refused.items()]
    found = nftrules.refusal(answers, 9)
    if refused:
        number, code = next(iter(refused.items()))
        assert found == Refusal(code, "", 0 if number == 10 else number)
    elif 9 in numbers:
        assert found is None
    else:
        assert found is not None
        assert found.errno == errno.EPROTO


@given(st.lists(st.binary(max_size=19)))
def test_answers_that_are_cut_off_are_no_answer(answers: list[bytes]) -> None:
    found = nftrules.refusal(answers, 1)
    assert found is not None


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (Chain("lag_bond0", "tx").flush(), "flush chain netdev lag_bond0 tx"),
        (Chain("lag_bond0", "rx").append(nftrules.accept()), "add rule netdev lag_bond0 rx"),
    ],
)
def test_a_message_says_what_it_wanted(message: bytes, words: str) -> None:
    assert nftrules.describe(message) == words
