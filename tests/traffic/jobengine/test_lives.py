"""A job that dies and is started again: nothing of the life before reaches the next one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from hpn.scenarios.drill.job import JobSpec
from hpn.traffic.flows.flow import MAX_FLOWS, MAX_RECOVERING, recovery_qpns, requester_qpn, responder_qpn
from hpn.traffic.job.collective import CollectiveWork
from hpn.traffic.job.training import Training
from hpn.traffic.jobengine.setup import FailedOver, Incarnation, Recovered
from hpn.traffic.transport.port_recovery import PortRecovery
from hpn.traffic.workers.messages import QpError
from tests.traffic.jobengine.wires import MS, TICK_NS, Wires, setup_of

JOB = JobSpec(CollectiveWork("all-reduce", 200_001), gpus=1, ib_timeout=10, retry_count=3)  # dead after 17 ms
COMPUTES = replace(JOB, work=Training(compute_ns=20 * MS, data=4, data_bytes=200_001))


def test_a_job_goes_on_with_new_queue_pairs_and_late_packets_of_the_old_ones_change_nothing() -> None:
    setup = setup_of(JOB)
    wires = Wires(setup)
    wires.run(200 * MS)
    assert not wires.deaths
    late = list(wires.under_way)
    before = wires.ended()
    assert late
    wires.lost = lambda flow: flow == 0
    wires.run(50 * MS)
    assert [death.flow for death in wires.deaths] == [0]
    last = wires.carrier.abort(wires.now_ns)
    assert last >= max(wires.ended())
    spans = len(wires.spans)
    wires.run(20 * MS)
    assert not wires.carrier.busy
    assert len(wires.spans) == spans, "nothing ends in a dead job"
    wires.lost = lambda flow: False
    wires.start(Incarnation(1, last + 1))
    wires.strangers = 0
    wires.under_way += late
    wires.run(200 * MS)
    assert wires.strangers > 0
    assert min(wires.ended() - before) > last
    assert len(wires.ended()) >= 1.9 * len(before)
    assert not any(span.wrong for _, span in wires.spans)
    assert len(wires.deaths) == 1


def test_nothing_is_due_in_a_dead_job() -> None:
    setup = setup_of(JOB)
    wires = Wires(setup)
    wires.run(20 * MS)
    assert wires.carrier.next_ns() is not None
    wires.carrier.abort(wires.now_ns)
    assert wires.carrier.next_ns() is None


def test_nothing_is_computed_in_a_dead_job() -> None:
    setup = setup_of(COMPUTES)
    wires = Wires(setup)
    wires.run(5 * MS)
    assert not wires.spans
    assert wires.carrier.abort(wires.now_ns) == 0
    wires.run(100 * MS)
    assert not wires.spans


def _failing(job: JobSpec, flows: set[int]) -> Wires:
    """A job that runs for a while, then loses all packets of these queue pairs."""
    setup = setup_of(job)
    wires = Wires(setup)
    wires.run(100 * MS)
    assert not wires.deaths
    wires.lost = lambda flow: flow in flows
    wires.run(200 * MS)
    return wires


@pytest.mark.parametrize("split", [False, True])
def test_a_connection_goes_on_with_the_queue_pair_that_it_has_left(split: bool) -> None:
    wires = _failing(replace(JOB, queue_pairs=2, port_failover=True, split=split), {0})
    (lost,) = wires.deaths
    assert isinstance(lost, FailedOver)
    assert lost.flow == 0
    assert lost.requests > 0
    before = wires.ended()
    wires.run(200 * MS)
    assert len(wires.ended()) > len(before) + 1
    assert wires.ended() == set(range(len(wires.ended()))), "none was left out"
    assert not any(span.wrong for _, span in wires.spans)
    assert len(wires.deaths) == 1


def test_a_job_dies_with_the_last_queue_pair_of_a_connection() -> None:
    wires = _failing(replace(JOB, queue_pairs=2, port_failover=True), {0, 1})
    assert [type(each) for each in wires.deaths] == [FailedOver, QpError]


def test_without_failover_the_first_dead_queue_pair_kills_the_job() -> None:
    wires = _failing(replace(JOB, queue_pairs=2), {0})
    assert [type(each) for each in wires.deaths] == [QpError]


def test_queue_pairs_of_every_life_have_numbers_of_their_own() -> None:
    flows = (0, 1, MAX_FLOWS - 1)
    numbers = [q(flow, life) for flow in flows for life in range(7) for q in (requester_qpn, responder_qpn)]
    assert len(set(numbers)) == len(numbers)
    assert max(numbers) < 1 << 24
    assert requester_qpn(3, 7) == requester_qpn(3)


def test_connections_beside_queue_pairs_have_numbers_that_none_of_these_has() -> None:
    numbers = [*recovery_qpns(0), *recovery_qpns(MAX_RECOVERING - 1)]
    assert min(numbers) > responder_qpn(MAX_FLOWS - 1, 6)
    assert len(set(numbers)) == 4
    assert max(numbers) < 1 << 24


RECOVERS = replace(
    JOB, work=CollectiveWork("all-reduce", 100_001), queue_pairs=2, port_failover=True, port_recovery=PortRecovery()
)
SOON = PortRecovery(start_delay_ns=10 * MS, ack_timeout_ns=40 * MS)
BACK_NS = SOON.start_delay_ns + SOON.ack_timeout_ns
"""After the second batch of alive messages."""


def _failed_over(recovery: PortRecovery = SOON) -> Wires:
    """A job in which queue pair 0 has just failed over."""
    setup = setup_of(RECOVERS)
    wires = Wires(replace(setup, recovery=recovery))
    wires.run(50 * MS)
    wires.lost = lambda flow: flow == 0
    while not wires.deaths:
        wires.run(MS)
    return wires


def _returned(wires: Wires) -> list[Recovered]:
    return [each for each in wires.deaths if isinstance(each, Recovered)]


def test_a_queue_pair_that_failed_over_returns_as_new_and_carries_its_share() -> None:
    wires = _failed_over()
    wires.lost = lambda flow: False
    wires.run(80 * MS)
    (back,) = _returned(wires)
    assert (back.flow, back.again) == (0, True)
    (failed,) = (each for each in wires.deaths if isinstance(each, FailedOver))
    assert back.at_ns - failed.at_ns == pytest.approx(BACK_NS, abs=4 * MS)
    assert wires.notes == 2 * 5 + 2, "two batches, an acknowledgement, and that of it"
    before = dict(wires.bytes_completed)
    wires.run(60 * MS)
    share = wires.bytes_completed[0] - before[0]
    assert share == pytest.approx(wires.bytes_completed[1] - before[1], rel=0.3)
    assert wires.ended() == set(range(len(wires.ended())))
    assert not any(span.wrong for _, span in wires.spans)


def test_a_queue_pair_that_failed_again_fails_over_again() -> None:
    wires = _failed_over()
    wires.lost = lambda flow: False
    wires.run(80 * MS)
    wires.lost = lambda flow: flow == 0
    wires.run(40 * MS)
    assert [type(each) for each in wires.deaths] == [FailedOver, Recovered, FailedOver]
    wires.lost = lambda flow: False
    wires.run(80 * MS)
    assert len(_returned(wires)) == 2
    assert not any(span.wrong for _, span in wires.spans)


def test_a_queue_pair_returns_a_second_time_as_soon_although_the_word_on_the_first_was_lost() -> None:
    wires = _failed_over()
    wires.lost = lambda flow: False
    while not _returned(wires):
        wires.run(TICK_NS)
    wires.under_way.clear()  # what the sender has just said with all that is on its way
    wires.run(5 * MS)
    wires.lost = lambda flow: flow == 0
    while not isinstance(wires.deaths[-1], FailedOver):
        wires.run(MS)
    failed_ns = wires.now_ns
    wires.lost = lambda flow: False
    wires.run(BACK_NS + 10 * MS)
    assert len(_returned(wires)) == 2, "it took another batch"
    assert _returned(wires)[1].at_ns - failed_ns == pytest.approx(BACK_NS, abs=4 * MS)


def test_a_port_that_stays_away_is_given_up_and_the_job_goes_on() -> None:
    wires = _failed_over()
    wires.run(240 * MS)
    assert [each.again for each in _returned(wires)] == [False]
    assert wires.notes == 5 * 5
    wires.lost = lambda flow: False
    before = wires.bytes_completed[0]
    wires.run(80 * MS)
    assert wires.bytes_completed[0] == before
    assert not any(isinstance(each, QpError) for each in wires.deaths)


def test_datagrams_bring_it_back_with_the_first_batch_and_five_packets_fewer() -> None:
    wires = _failed_over(replace(SOON, over="ud"))
    wires.lost = lambda flow: False
    wires.run(BACK_NS)
    (back,) = _returned(wires)
    (failed,) = (each for each in wires.deaths if isinstance(each, FailedOver))
    assert back.at_ns - failed.at_ns == pytest.approx(SOON.start_delay_ns, abs=4 * MS)
    assert wires.notes == 5 + 2


@pytest.mark.parametrize(("use", "after"), [("active-standby", {0}), ("active-standby-stay", {1})])
def test_a_standby_carries_nothing_until_the_other_port_fails(use: str, after: set[int]) -> None:
    carried = Counter[int]()

    def grown(wires: Wires, *, of: tuple[int, ...] = (0, 1)) -> set[int]:
        """Queue pairs of the first connection that have carried something since the last call."""
        new = {flow for flow in of if wires.bytes_completed[flow] > carried[flow]}
        carried.update({flow: wires.bytes_completed[flow] - carried[flow] for flow in of})
        return new

    wires = Wires(replace(setup_of(replace(RECOVERS, port_use=use)), recovery=SOON))
    wires.run(50 * MS)
    assert grown(wires) == {0}
    wires.lost = lambda flow: flow == 0
    while not wires.deaths:
        wires.run(MS)
    grown(wires)
    wires.run(20 * MS)
    assert grown(wires) == {1}
    wires.lost = lambda flow: False
    wires.run(80 * MS)
    assert len(_returned(wires)) == 1
    grown(wires)
    wires.run(50 * MS)
    assert grown(wires) == after
    assert not any(span.wrong for _, span in wires.spans)


def test_a_dead_job_asks_for_no_port() -> None:
    wires = _failed_over()
    wires.carrier.abort(wires.now_ns)
    notes = wires.notes
    wires.run(80 * MS)
    assert wires.notes == notes


def test_notes_of_an_earlier_life_are_strangers() -> None:
    wires = _failed_over()
    wires.lost = lambda flow: False
    wires.run(100 * MS)
    last = wires.carrier.abort(wires.now_ns)
    old = wires.carrier
    wires.start(Incarnation(1, last + 1))
    qpn = recovery_qpns(0)[1]
    assert not any(wires.carrier.on_note(qpn, 1 << 28 | number, wires.now_ns) for number in range(8))
    assert wires.carrier is not old
    wires.run(50 * MS)
    assert not any(span.wrong for _, span in wires.spans)
