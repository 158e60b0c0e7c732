"""Receivers that admit what is sent to them: messages wait for grants, which travel as packets do."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.traffic.jobengine.clear_to_send import GRANT_BYTES
from hpn.traffic.jobengine.plan import JobPlan
from hpn.traffic.jobengine.receiver import Receiver, receiving_end
from hpn.traffic.jobengine.setup import FailedOver
from hpn.traffic.transport.inbox import Packets
from hpn.traffic.transport.packets import Opcode
from hpn.traffic.transport.work import Status
from tests.traffic.jobengine.network import MS, Network, planned, setups
from tests.traffic.jobengine.test_carrier import FATES

SLICE, LIMIT = 4096, 12 * 1024
ONE = "{use: receiver-driven, limit: 1 KiB, slice: 1 KiB}"  # a packet at a time


def granted(
    work: str, more: str = "", limits: str = f"{{use: nccl-4mb, limit: {LIMIT} B, slice: {SLICE} B}}"
) -> JobPlan:
    gpus = "" if "gpus" in more else "gpus: 1, "
    return planned(f"{{{work}, {gpus}path_mtu: 1024, ib_timeout: 11, congestion: {limits}{more}}}")


def collective(kind: str, size: str = "50 KB") -> str:
    return f"collective: {{kind: {kind}, size: {size}, slices: 2}}"


def told_right(net: Network, iterations: int) -> None:
    """Every rank has ended its iterations and has what it must have; each byte was wanted, sent and told of once."""
    for ended in net.timed.values():
        assert len([each for each in ended if each.span == 0]) >= iterations
        assert not any(each.wrong for each in ended)
    assert all(completion.status is Status.SUCCESS for _, completion in net.completed)
    data = [sender for sender in net.senders if not sender.pair.grants]
    told = sum(completion.request.size_bytes for _, completion in net.completed)
    assert told == sum(sender.report().bytes_acknowledged for sender in data) > 0
    assert told == sum(net.receivers[sender.pair.flow.id].inbox.bytes_ for sender in data)


@pytest.mark.parametrize(
    "kind", ["all-reduce, algorithm: ring", "all-reduce, algorithm: tree", "all-to-all, algorithm: direct", "broadcast"]
)
@settings(max_examples=6)
@given(FATES, FATES, st.sampled_from(["", ", queue_pairs: 3, split: yes", ", recovery: selective-repeat"]))
def test_whatever_is_lost_copied_or_late_every_message_gets_its_grants(
    kind: str, data: list[tuple[int, ...]], replies: list[tuple[int, ...]], more: str
) -> None:
    net = Network(granted(collective(kind), more), data, replies)
    net.iterations(2)
    told_right(net, 2)
    assert net.errors == []


@pytest.mark.parametrize("granting", [False, True])
def test_packets_are_told_of_as_they_come_only_where_grants_go_by_them(granting: bool) -> None:
    work = collective("broadcast")
    plan = granted(work) if granting else planned(f"{{{work}, gpus: 1, path_mtu: 1024}}")
    setup = next(setup for setup in setups(plan) if setup.receivers)
    receiver = receiving_end(setup, setup.receivers[0])
    assert isinstance(receiver, Receiver)
    first = Packets(bytes([Opcode.WRITE_FIRST]), [1024], np.zeros(1, np.uint64), [0], [0])
    assert len(receiver.on_run(0, first, False, 0, 0).written) == granting


@pytest.mark.parametrize("limits", [ONE, f"{{use: nccl-4mb, limit: {LIMIT} B, slice: {SLICE} B}}"])
def test_an_incast_never_has_more_on_its_way_than_its_receiver_admits(limits: str) -> None:
    limit, slice_bytes = (1024, 1024) if limits == ONE else (LIMIT, SLICE)
    net = Network(granted("messages: {pattern: incast, size: 30 KB, count: 4}", limits=limits))
    most = 0

    def ended() -> bool:
        nonlocal most
        most = max(most, *_on_their_way(net).values())
        return len(net.completed) >= 24

    net.begin()
    net.run(ended)
    net.quiet()
    told_right(net, 1)
    assert max(limit - slice_bytes, 1) <= most <= limit  # the last slice is kept for the first of all messages


def test_without_grants_the_same_incast_has_more_on_its_way() -> None:
    net = Network(planned("{messages: {pattern: incast, size: 30 KB, count: 4}, gpus: 1, path_mtu: 1024}"))
    net.begin()
    net.pass_(10 * MS)
    assert max(_on_their_way(net).values()) > LIMIT


def _on_their_way(net: Network) -> Counter[int]:
    """By rank that receives: bytes that its peers have posted, which leave at once, and that have not arrived."""
    found = Counter[int]({0: 0})
    for sender in net.senders:
        if not sender.pair.grants:
            posted = sender.requester.outstanding_bytes + sender.report().bytes_acknowledged
            found[sender.pair.target] += posted - net.receivers[sender.pair.flow.id].inbox.bytes_
    return found


@pytest.mark.parametrize(
    "work",
    [
        collective("all-reduce, algorithm: tree"),
        collective("all-reduce, algorithm: halving-doubling"),
        "messages: {pattern: kv-pull, size: 9 KB, count: 3}",
        "training: {compute: 1 ms, pipeline: 2, data: 2, micro_batches: 3, pipeline_size: 9 KB, data_size: 20 KB}",
    ],
)
def test_nobody_waits_in_a_circle_for_grants_however_few_there_are(work: str) -> None:
    net = Network(granted(work, limits=ONE))
    net.iterations(2)
    told_right(net, 2)


def test_messages_inside_a_host_need_no_grant() -> None:
    net = Network(granted(collective("all-reduce, algorithm: hierarchical"), ", gpus: 2"))
    net.iterations(2)
    told_right(net, 2)


def test_a_message_is_told_of_once_from_its_posting_on() -> None:
    net = Network(granted("messages: {pattern: incast, size: 50 KB}"))
    net.begin()
    net.run(lambda: bool(net.completed))
    acknowledged = {sender.pair.flow.id: sender.report().bytes_acknowledged for sender in net.senders}
    assert all(acknowledged[flow] >= 50_000 for flow, _ in net.completed)
    net.run(lambda: len(net.completed) >= 3)
    net.quiet()
    whole = [completion for _, completion in net.completed]
    assert {completion.request.size_bytes for completion in whole} == {50_000}
    first = min(completion.posted_ns for completion in whole)
    assert [completion.posted_ns for completion in whole][:3] == [first] * 3  # posted at once, granted in turns
    grants = [sender for sender in net.senders if sender.pair.grants]
    slices = -(-50_000 // SLICE)
    assert all(sender.report().bytes_acknowledged >= slices * GRANT_BYTES for sender in grants)


def test_a_grant_that_is_lost_is_sent_again() -> None:
    """The first packets of all are the grants of the rank that everyone sends to."""
    net = Network(granted("messages: {pattern: incast, size: 3 KB}"), [(), (), ()])
    net.iterations(1)
    told_right(net, 1)
    assert sum(s.requester.counters.packets_again for s in net.senders if s.pair.grants) == 3
    assert sum(s.requester.counters.packets_again for s in net.senders if not s.pair.grants) == 0


def test_grants_fail_over_to_another_queue_pair_and_count_once() -> None:
    """Acknowledgements of grants are lost until the queue pair is dead: the same grants are posted again."""
    plan = granted(
        "messages: {pattern: incast, size: 20 KB, fan_in: 1}", ", queue_pairs: 2, port_failover: yes, retry_count: 1"
    )
    grants = [pair.flow.id for pair in plan.queue_pairs if pair.grants]
    net = Network(plan)
    net.deaf = {grants[0]}
    net.iterations(3)
    told_right(net, 3)
    assert [type(error) for error in net.errors] == [FailedOver]
