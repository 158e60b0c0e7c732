"""A queue pair keeps to its rate as it is now, not as it was when its last packet left."""

from __future__ import annotations

import pytest

from hpn.traffic.congestion.scale import Scale
from hpn.traffic.jobengine.sender import Sender
from tests.traffic.congestion.bottleneck import dcqcn
from tests.traffic.jobengine.network import MS, Network, S, planned


def _sender(rate_bps: float = 200e6) -> Sender:
    plan = planned("{messages: {pattern: same-rail, size: 1 MB}, gpus: 1}")
    return Sender(plan.queue_pairs[0], plan.transport, dcqcn("simai-200g").control(rate_bps, Scale(1000, 200)))


def test_what_is_left_to_wait_is_waited_for_at_the_new_rate() -> None:
    sender = _sender()
    sender.next_ns = 10 * MS
    sender.on_cnp(4 * MS)  # alpha is 1: half of the rate
    assert sender.rate_bps == 100e6
    assert sender.next_ns == 4 * MS + 12 * MS
    sender.on_cnp(20 * MS)  # what is over is not waited for again
    assert sender.next_ns == 16 * MS


def test_a_queue_pair_at_its_minimum_sends_as_soon_as_it_may_send_faster() -> None:
    """At 0.1 Mbit/s a packet takes 336 ms; the rate rises after 180."""
    sender = _sender()
    for at in range(20):
        sender.on_cnp(at * MS)
    assert sender.rate_bps == 0.1e6
    sender.next_ns = 20 * MS + 336 * MS
    raised_ns = sender.deadline_ns()
    assert raised_ns == 19 * MS + 180 * MS
    sender.on_timer(raised_ns)
    assert sender.rate_bps == pytest.approx(100.05e6)
    assert sender.next_ns - raised_ns < 0.2 * MS


def test_queue_pairs_that_a_burst_of_notifications_stopped_all_go_on_when_their_rate_rises() -> None:
    """Marks on the first packets only: from the first increase (180 ms) on the port is busy again."""
    plan = planned("{messages: {pattern: incast, size: 1 MB}, gpus: 1, congestion: line-rate, ib_timeout: 18}")
    net = Network(plan)
    for sender in net.senders:
        sender.control = dcqcn("simai-200g").control(200e6, Scale(1000, 200))
    net.begin()
    for _ in range(12):
        net.pass_(MS)
        for sender in net.senders:
            sender.on_cnp(net.now_ns)
    sent = net.packets["data"]
    net.pass_(178 * MS)
    assert net.packets["data"] - sent < 30
    at_ns = net.now_ns
    sent = net.packets["data"]
    net.pass_(40 * MS)
    assert net.now_ns - at_ns < S
    assert net.packets["data"] - sent > 3 * 0.9 * 100e6 * 0.03 / (8 * 4154)
