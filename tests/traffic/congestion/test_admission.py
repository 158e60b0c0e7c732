"""Grants: who may send what to a receiver, with all of it on its way counted."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.traffic.congestion.admission import AdmissionReceiver, AdmissionSender, Grant, Part
from hpn.traffic.congestion.admission_parameters import AdmissionParameters
from hpn.traffic.congestion.parameter_sets import NCCL_4MB
from hpn.traffic.congestion.scale import Scale


def _grants(receiver: AdmissionReceiver) -> list[Grant]:
    return list(iter(receiver.next_grant, None))


def test_messages_take_turns_slice_by_slice_until_the_limit_is_on_its_way() -> None:
    receiver = AdmissionReceiver(limit_bytes=400, slice_bytes=100)
    receiver.expect(1, 7, 250, (0, 0))
    receiver.expect(2, 7, 300, (0, 1))
    assert _grants(receiver) == [Grant(1, 7, 100), Grant(2, 7, 100), Grant(1, 7, 200)]
    receiver.on_received(2, 7, 0, 99)
    assert _grants(receiver) == []
    receiver.on_received(2, 7, 99, 1)
    receiver.on_received(2, 7, 90, 10)  # a copy
    assert _grants(receiver) == [Grant(2, 7, 200)]
    receiver.on_received(1, 7, 0, 50)
    assert _grants(receiver) == [Grant(1, 7, 250)]


def test_the_first_message_gets_a_slice_although_others_hold_all_and_do_not_come() -> None:
    receiver = AdmissionReceiver(limit_bytes=300, slice_bytes=100)
    receiver.expect(1, 7, 1000, (0, 5))
    assert _grants(receiver) == [Grant(1, 7, 100), Grant(1, 7, 200)]
    receiver.expect(2, 7, 150, (0, 2))
    assert _grants(receiver) == [Grant(2, 7, 100)]
    receiver.on_received(2, 7, 0, 100)
    assert _grants(receiver) == [Grant(2, 7, 150)]
    receiver.on_received(2, 7, 100, 50)
    assert _grants(receiver) == []


def test_a_sender_waits_for_its_grant_and_a_grant_for_its_message() -> None:
    sender = AdmissionSender()
    assert sender.post(0, 1, 150) is None
    assert sender.on_grant(0, 1, 100) == Part(0, 1, 0, 100)
    assert sender.on_grant(0, 2, 50) is None
    assert sender.on_grant(0, 2, 30) is None  # overtaken
    assert sender.post(0, 2, 80) == Part(0, 2, 0, 50)
    assert sender.on_grant(0, 2, 50) is None  # a copy
    assert sender.on_grant(0, 1, 150) == Part(0, 1, 100, 50)
    assert sender.on_grant(0, 2, 80) == Part(0, 2, 50, 30)


_SIZES = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 1000)), max_size=30)


@given(_SIZES, st.integers(1, 500), st.integers(1, 500), st.randoms(use_true_random=False))
def test_every_byte_is_sent_once_and_never_more_than_the_limit_is_on_its_way(
    sizes: list[tuple[int, int]], limit: int, slice_bytes: int, chance: random.Random
) -> None:
    slice_bytes = min(limit, slice_bytes)
    receiver = AdmissionReceiver(limit, slice_bytes)
    senders = [AdmissionSender() for _ in range(4)]
    order = itertools.count()
    todo = [("expect", peer, tag, size) for tag, (peer, size) in enumerate(sizes)]
    todo += [("post", peer, tag, size) for tag, (peer, size) in enumerate(sizes)]
    chance.shuffle(todo)
    granted: list[Grant] = []
    under_way: list[tuple[int, Part]] = []
    sent: Counter[tuple[int, int]] = Counter()
    while todo or granted or under_way:
        choices = [name for name, some in (("todo", todo), ("grant", granted), ("arrive", under_way)) if some]
        match chance.choice(choices):
            case "todo":
                what, peer, tag, size = todo.pop()
                if what == "expect":
                    receiver.expect(peer, tag, size, (0, next(order)))
                    part = None
                else:
                    part = senders[peer].post(0, tag, size)
            case "grant":
                grant = granted.pop(chance.randrange(len(granted)))
                peer = grant.peer
                part = senders[peer].on_grant(0, grant.tag, grant.up_to)
            case _:
                part, (peer, arrived) = None, under_way.pop(chance.randrange(len(under_way)))
                receiver.on_received(peer, arrived.tag, arrived.offset, arrived.size_bytes)
        if part is not None:
            assert part.offset == sent[peer, part.tag]
            sent[peer, part.tag] += part.size_bytes
            under_way.append((peer, part))
        granted += _grants(receiver)
        assert sum(part.size_bytes for _, part in under_way) <= limit
    assert sent == Counter({(peer, tag): size for tag, (peer, size) in enumerate(sizes)})


def test_a_lab_at_a_thousandth_of_the_rate_admits_the_same_bytes() -> None:
    values = NCCL_4MB.values
    assert isinstance(values, AdmissionParameters)
    receiver = values.admission(Scale.similar(1000), 4096)
    for tag in range(64):
        receiver.expect(0, tag, 1 << 30, (0, tag))
    assert sum(grant.up_to for grant in _grants(receiver)) == (4 << 20) - (512 << 10)  # one is kept for the first


def test_slices_are_of_whole_packets() -> None:
    receiver = AdmissionParameters(limit_bytes=4 << 20, slice_bytes=512 << 10).admission(Scale(1000, 200), 4096)
    receiver.expect(0, 0, 1 << 30, (0, 0))
    assert {grant.up_to % 4096 for grant in _grants(receiver)} == {0}
    tiny = AdmissionParameters(limit_bytes=1, slice_bytes=1).admission(Scale.similar(1), 1024)
    tiny.expect(0, 0, 5000, (0, 0))
    assert _grants(tiny) == [Grant(0, 0, 1024)]


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("limit_bytes", 0, "0 bytes admit nothing; write more, such as 4 MB"),
        ("slice_bytes", 0, "0 bytes grant nothing; write more, such as 512 KB"),
        ("slice_bytes", 8 << 20, "8388608 bytes are above the limit of 4194304; write less"),
    ],
)
def test_nonsense_is_named_with_the_way_out(field: str, value: int, text: str) -> None:
    values = NCCL_4MB.values
    assert isinstance(values, AdmissionParameters)
    assert list(replace(values, **{field: value}).problems(200e9)) == [(field, text)]
