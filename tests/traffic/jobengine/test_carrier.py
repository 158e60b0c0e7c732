"""A job's workers, joined by a network that loses, copies, delays and marks: all ends right, each byte counts once."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.traffic.congestion.parameter_sets import PARAMETERS
from hpn.traffic.congestion.scale import Scale
from hpn.traffic.flows.flow import requester_qpn
from hpn.traffic.jobengine.counters import nic_counters
from hpn.traffic.jobengine.multipath_sender import MultipathSender
from hpn.traffic.streams.qp import QpState
from hpn.traffic.transport.telemetry import EMPTY, Telemetry
from hpn.traffic.transport.work import Recovery, Status
from hpn.traffic.workers.messages import QpError
from tests.traffic.jobengine.network import LATENCY_NS, MS, RATE_BPS, TICK_NS, US, Network, planned

SMALL = "gpus: 1, path_mtu: 1024, ib_timeout: 11"  # a try takes 8.4 ms


def collective(kind: str, size: str = "20 KB", more: str = "") -> str:
    return f"{{collective: {{kind: {kind}, size: {size}, slices: 2}}, {SMALL}{more}}}"


def told_right(net: Network, iterations: int) -> None:
    """Every rank has ended its iterations and has what it must have; each byte counts once."""
    for rank, ended in net.timed.items():
        numbers = [each.iteration for each in ended if each.span == 0]
        assert numbers == list(range(len(numbers))), rank
        assert len(numbers) >= iterations
        assert not any(each.wrong for each in ended)
        assert all(each.begin_ns <= each.end_ns for each in ended)
    completed: Counter[int] = Counter()
    for flow, completion in net.completed:
        assert completion.status is Status.SUCCESS
        completed[flow] += completion.request.size_bytes
    for sender in net.senders:
        flow = sender.pair.flow.id
        assert sender.report().bytes_acknowledged == completed[flow] == net.receivers[flow].inbox.bytes_


FATE = st.one_of(
    st.just((0,)),
    st.just(()),  # lost
    st.integers(0, 2 * MS).map(lambda late: (late,)),  # late, so that others overtake it
    st.integers(0, 2 * MS).map(lambda late: (0, late)),  # twice
)
FATES = st.lists(FATE, max_size=60)
CHOICES = st.sampled_from(["", ", recovery: selective-repeat"])
CONNECTIONS = st.sampled_from(
    ["", ", queue_pairs: 3", ", queue_pairs: 3, split: yes", ", queue_pairs: 2, queue_pair_choice: in-turn"]
)


@pytest.mark.parametrize(
    "kind",
    [
        "all-reduce, algorithm: ring",
        "all-reduce, algorithm: tree",
        "all-reduce, algorithm: halving-doubling",
        "all-gather",
        "reduce-scatter",
        "broadcast",
        "all-to-all",
        "send-recv",
    ],
)
@settings(max_examples=8)
@given(FATES, FATES, CHOICES, CONNECTIONS)
def test_whatever_is_lost_copied_or_late_everyone_ends_with_the_right_data(
    kind: str, data: list[tuple[int, ...]], replies: list[tuple[int, ...]], recovery: str, connection: str
) -> None:
    net = Network(planned(collective(kind, more=recovery + connection)), data, replies)
    net.iterations(2)
    told_right(net, 2)
    assert net.errors == []


@settings(max_examples=20)
@given(st.integers(0, 400), st.integers(1, 40), CHOICES, st.sampled_from([8, 256]))
def test_a_hole_of_any_length_at_any_place_is_mended(begin: int, length: int, recovery: str, window: int) -> None:
    """A small window that is lost as a whole again and again is death, so there the hole is short."""
    fates: list[tuple[int, ...]] = [(0,)] * begin + [()] * (length if window == 256 else min(length, 5))
    net = Network(planned(collective("all-reduce", "100 KB", f"{recovery}, window: {window}")), fates)
    net.iterations(1)
    told_right(net, 1)


@pytest.mark.parametrize("size", [1, 7, 1023, 1024, 1025, 4 * 1024 + 1])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_messages_of_odd_sizes_and_workers_in_any_number(size: int, workers: int) -> None:
    net = Network(planned(collective("all-reduce", f"{size} B")), workers=workers)
    net.iterations(3)
    told_right(net, 3)
    assert sum(sender.requester.counters.packets_again for sender in net.senders) == 0


@pytest.mark.parametrize("hosts", [2, 3, 4])
def test_any_number_of_ranks_from_two(hosts: int) -> None:
    net = Network(planned(collective("all-reduce", more=f", hosts: {hosts}")))
    net.iterations(2)
    assert len(net.timed) == hosts
    told_right(net, 2)


@pytest.mark.parametrize("work", ["{pattern: incast, size: 3 KB}", "{pattern: kv-pull, size: 3 KB, count: 2}"])
def test_patterns_of_messages_go_on_and_on(work: str) -> None:
    net = Network(planned(f"{{messages: {work}, {SMALL}}}"))
    net.begin()
    net.run(lambda: len(net.completed) >= 20)
    net.quiet()
    told_right(net, 1)


def test_a_message_of_two_gibibytes_begins_and_has_not_ended() -> None:
    """It takes a word for each packet and no more: 4 MB."""
    tracemalloc.start()
    try:
        net = Network(planned("{messages: {pattern: same-rail, size: 2 GiB}, gpus: 1, ib_timeout: 18}"))
        net.begin()
        net.pass_(20 * MS)
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()
    assert net.completed == []
    assert {sender.requester.outstanding_bytes for sender in net.senders} == {1 << 31}
    assert all(receiver.inbox.bytes_ > 300_000 for receiver in net.receivers.values())


def test_a_ring_is_as_fast_as_its_ports() -> None:
    """4 ranks, 2(n-1)/n of the data through each port, and a latency and two ticks for each of the 6 steps."""
    net = Network(planned("{collective: {kind: all-reduce, size: 2 MB, slices: 8}, gpus: 1, ib_timeout: 18}"))
    net.iterations(1)
    ended = max(each.end_ns - each.begin_ns for rank in net.timed.values() for each in rank if each.iteration == 0)
    wire = 1.5 * 2e6 * 8 / RATE_BPS * (4096 + 14 + 28 + 16) / 4096 * 1e9
    assert wire < ended < wire * 1.01 + 6 * (LATENCY_NS + 2 * TICK_NS)


@pytest.mark.parametrize(
    "work",
    ["collective: {kind: all-to-all, algorithm: direct, size: 400 KB}", "messages: {pattern: same-rail, size: 1 KB}"],
)
def test_no_port_is_handed_more_than_it_carries(work: str) -> None:
    """In any stretch of time, but for two ticks. ACKs count as data does: of the short messages each has one."""
    work = work.replace("1 KB", "1 KB, count: 100")
    net = Network(planned(f"{{{work}, gpus: 1, ib_timeout: 18}}"))
    net.begin()
    net.pass_(150 * MS)
    for port in net.ports:
        for nic in {nic for _, nic, _ in port.handed}:
            handed = [(at, bytes_) for at, of, bytes_ in port.handed if of == nic]
            debt = 0.0  # bytes handed over that the port has not had the time for
            last_ns = handed[0][0]
            for at, bytes_ in handed:
                debt = max(0.0, debt - (at - last_ns) * RATE_BPS / 8e9) + bytes_
                last_ns = at
                assert debt <= 2 * TICK_NS * RATE_BPS / 8e9 + 2 * 4200


def test_a_port_is_kept_busy_by_data_although_acknowledgements_share_it() -> None:
    net = Network(planned("{messages: {pattern: same-rail, size: 100 KB, count: 8}, gpus: 1, ib_timeout: 18}"))
    net.begin()
    net.pass_(20 * MS)
    begun = net.now_ns
    net.pass_(200 * MS)
    for port in net.ports:
        for nic in {nic for _, nic, _ in port.handed}:
            bytes_ = sum(size for at, of, size in port.handed if of == nic and at > begun)
            assert bytes_ * 8 / 0.2 == pytest.approx(RATE_BPS, rel=0.01)


def _dead(job: str) -> tuple[Network, list[QpError]]:
    """The first sender's NIC is not heard any more from 5 ms on."""
    net = Network(planned(job))
    net.begin()
    net.pass_(5 * MS)
    net.dead.add(net.senders[0].pair.flow.src_nic)
    net.run(lambda: bool(net.errors))
    return net, [error for error in net.errors if isinstance(error, QpError)]


def test_a_dead_path_is_told_once_when_all_tries_are_used_up() -> None:
    net, errors = _dead(collective("all-reduce", "200 KB", ", retry_count: 2"))
    dead = net.senders[0]
    (error,) = errors
    assert error.flow == dead.pair.flow.id
    assert dead.requester.state is QpState.ERROR
    assert error.at_ns == dead.died_at_ns == net.now_ns
    assert error.outstanding > 0
    patience_ns = 3 * (4096 << 11)
    assert patience_ns <= error.at_ns - (1000 * MS + 5 * MS) <= patience_ns + 5 * MS
    net.pass_(500 * MS)
    assert len(net.errors) == 1, "others wait for what never comes, and die of nothing"
    counters = {each.nic: each.counters for each in nic_counters(net.senders, net.receivers.values())}
    counted = counters[dead.pair.flow.src_nic]
    assert counted["local_ack_timeout_err"] == 2
    assert counted["req_transport_retries_exceeded"] == 1
    assert counted["req_cqe_flush_error"] == counted["req_cqe_error"] - 1


def test_whoever_is_told_of_the_death_sends_nothing_more() -> None:
    net, _ = _dead(collective("all-reduce", "200 KB", ", retry_count: 2"))
    for carrier in net.carriers:
        carrier.stop()
    packets = net.packets["data"]
    net.pass_(200 * MS)
    assert net.packets["data"] == packets
    assert len(net.errors) == 1
    assert not any(carrier.busy for carrier in net.carriers)


def test_a_rank_whose_queue_pair_is_dead_posts_to_nobody_on_it() -> None:
    """What it gets from others it would hand on by it."""
    net = Network(planned(collective("all-reduce", "200 KB")))
    net.begin()
    net.pass_(MS)
    dead = net.carriers[0].senders[0]
    net.carriers[0].on_refused(requester_qpn(dead.pair.flow.id), Status.INVALID_REQUEST, net.now_ns)
    (error,) = net.errors
    assert (error.flow, error.at_ns) == (dead.pair.flow.id, net.now_ns)
    posted = dead.requester.counters.packets
    net.pass_(300 * MS)
    assert dead.requester.counters.packets == posted
    assert dead.requester.outstanding_bytes == 0
    assert len(net.errors) == 1


def test_a_worker_that_is_stopped_sends_nothing_more_of_what_waits() -> None:
    net = Network(planned("{messages: {pattern: same-rail, size: 100 KB, count: 8}, gpus: 1, ib_timeout: 18}"))
    net.begin()
    net.pass_(20 * MS)
    assert all(carrier.busy for carrier in net.carriers)
    for carrier in net.carriers:
        carrier.stop()
    packets = net.packets["data"]
    net.pass_(100 * MS)
    assert net.packets["data"] == packets


@settings(max_examples=15)
@given(st.integers(1, 50), st.integers(0, 49))
def test_every_notification_that_is_sent_is_handled(every: int, at: int) -> None:
    plan = planned("{collective: {kind: all-reduce, size: 100 KB, slices: 2}, gpus: 1, ib_timeout: 20}")
    plan = replace(plan, control=PARAMETERS["adapter-200g"].values, scale=Scale(slower=1000, longer=20))
    net = Network(plan, marked=lambda n: n % every == at % every)
    net.iterations(2)
    net.pass_(5 * MS)  # what is marked last is told of after a delay
    told_right(net, 2)
    sent = sum(receiver.notices for receiver in net.receivers.values())
    handled = sum(sender.cnps for sender in net.senders)
    assert sent == handled == net.packets["cnp"]
    marked = sum(receiver.marked for receiver in net.receivers.values())
    assert marked == sum(n % every == at % every for n in range(net.packets["data"]))
    counters = [each.counters for each in nic_counters(net.senders, net.receivers.values())]
    assert sum(each["np_cnp_sent"] for each in counters) == sent
    assert sum(each["rp_cnp_handled"] for each in counters) == sent
    assert sum(each["np_ecn_marked_roce_packets"] for each in counters) == marked
    assert (sent > 0) == (marked > 0)


def test_queue_pairs_that_move_to_another_port_keep_their_turn_and_their_data() -> None:
    net = Network(planned(collective("all-reduce", "300 KB", ", queue_pairs: 2, split: yes")))
    net.begin()
    for at in range(30):
        net.pass_(700 * US)
        for carrier in net.carriers:
            ports = {2 * sender.pair.flow.id: (at + sender.pair.flow.id) % 2 for sender in carrier.senders}
            acks = {2 * receiver.pair.flow.id + 1: at % 2 for receiver in carrier.responders.ends}
            busy = carrier.busy
            carrier.set_ports(ports | acks, net.now_ns)
            assert carrier.busy == busy
    net.quiet()
    told_right(net, 1)


PATHS_NS = (0, 700 * US, 200 * US, 1300 * US)
"""How much longer each of four paths takes; a packet lasts 165 us, so up to 8 overtake another one."""


@pytest.mark.parametrize(
    ("recovery", "reorder", "needless"),
    [("selective-repeat", 8, False), ("selective-repeat", 1, True), ("go-back-n", 0, True)],
)
def test_sprayed_packets_are_sent_once_where_as_many_may_overtake_as_do(
    recovery: str, reorder: int, needless: bool
) -> None:
    """What is sent again where fewer may was never lost; all ends right in any case."""
    job = "{collective: {kind: all-reduce, size: 400 KB}, gpus: 1, ib_timeout: 18, window: 64}"
    plan = planned(job)
    transport = replace(plan.transport, recovery=Recovery(recovery), reorder_packets=reorder)
    net = Network(replace(plan, transport=transport), ((PATHS_NS[at % 4],) for at in range(10_000)))
    net.iterations(2)
    told_right(net, 2)
    assert (sum(sender.report().packets_again for sender in net.senders) > 0) == needless


def _hpcc(pattern: str = "incast") -> Network:
    """An incast whose senders ask for telemetry; a port of 2 Gbit/s reports what ``queue_bytes`` says."""
    plan = planned(f"{{messages: {{pattern: {pattern}, size: 1 MB}}, gpus: 1, congestion: line-rate, ib_timeout: 18}}")
    net = Network(plan)
    for sender in net.senders:
        control = PARAMETERS["hpcc-200g"].values.control(RATE_BPS, Scale(1000, 200))
        sender.control = control
    return net


def test_a_sender_that_asks_for_telemetry_probes_with_its_first_packets_and_then_once_for_so_many_bytes() -> None:
    net = _hpcc()
    net.iterations(2)
    told_right(net, 2)
    assert net.packets["probe"] == net.packets["echo"] > 0
    data, each = net.packets["data"] * 4154, 64_000 * 200 // 1000
    senders = sum(1 for sender in net.senders if sender.requester.counters.packets)
    assert data / each / 2 <= net.packets["probe"] <= data / each + senders


def test_telemetry_of_a_full_queue_slows_the_senders_down_and_an_empty_one_lets_them_go() -> None:
    net = _hpcc()
    net.queue_bytes = 10**6
    net.begin()
    net.pass_(200 * MS)
    slow = [sender.rate_bps for sender in net.senders if sender.requester.counters.packets]
    assert max(slow) < RATE_BPS / 10
    net.queue_bytes = 0
    net.pass_(2000 * MS)
    assert all(sender.rate_bps > RATE_BPS / 2 for sender in net.senders if sender.requester.counters.packets)


def test_lost_probes_are_no_error_and_nobody_probes_without_being_asked() -> None:
    net = _hpcc()
    net.deaf = {sender.pair.flow.id for sender in net.senders[:1]}
    net.begin()
    net.pass_(50 * MS)
    assert net.packets["probe"] > net.packets["echo"]
    assert net.errors == []
    plain = Network(planned(collective("all-reduce")))
    plain.iterations(1)
    assert plain.packets["probe"] == plain.packets["echo"] == 0


def test_a_probe_for_nobody_is_told() -> None:
    net = _hpcc()
    assert not net.carriers[0].responders.on_probe(0xABCDE, Telemetry(0, (), EMPTY), net.now_ns)
    net.carriers[0].on_echo(0xABCDE, Telemetry(0, (), EMPTY), net.now_ns)


MULTIPATH = ", transport: {use: multipath, paths: 16}"


@settings(max_examples=12)
@given(FATES, FATES, st.sampled_from(["", ", queue_pairs: 3", ", queue_pairs: 3, split: yes"]))
def test_over_many_paths_everyone_ends_with_the_right_data_too(
    data: list[tuple[int, ...]], replies: list[tuple[int, ...]], connection: str
) -> None:
    net = Network(planned(collective("all-reduce, algorithm: ring", more=MULTIPATH + connection)), data, replies)
    net.iterations(2)
    told_right(net, 2)
    assert net.errors == []


def test_a_dark_port_costs_a_multipath_job_no_retry_and_carries_again_later() -> None:
    net = Network(planned(collective("all-reduce, algorithm: ring", "400 KB", MULTIPATH)))
    net.begin()
    net.pass_(30 * MS)
    net.dark = {(sender.pair.flow.id, path) for sender in net.senders for path in range(0, 16, 2)}
    net.pass_(200 * MS)
    before = net.begun()
    net.dark = set()
    net.pass_(100 * MS)
    net.run(lambda: net.begun() > before + 2)
    net.quiet()
    told_right(net, before + 2)
    assert net.errors == []
    assert sum(sender.requester.counters.local_ack_timeout_err for sender in net.senders) == 0
    assert {sender.requester.paths.counters.good for sender in net.senders if isinstance(sender, MultipathSender)} == {
        16
    }
