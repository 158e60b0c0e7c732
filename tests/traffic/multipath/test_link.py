"""Both ends over paths that lose, delay and double: each message arrives once, and bad paths are left."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.traffic.multipath.denials import MOST_DENIALS, Denial, Loss
from hpn.traffic.multipath.paths import Paths
from hpn.traffic.multipath.sack import Sack
from hpn.traffic.multipath.states import ASSUMED_BAD, DENIED, GOOD, SKIPPED
from hpn.traffic.transport.ranges import PSN_MASK
from hpn.traffic.transport.work import Status
from tests.traffic.multipath.link import MOST_LATE_NS, MOST_PACKETS, SETTINGS, SLACK_NS, TRANSPORT, Link
from tests.traffic.transport.link import FINE, LATENCY_NS, LOST, MTU, PACKET_NS, Fate

BEFORE_WRAP = 2**24 - 20
ROUND_NS = 2 * LATENCY_NS + SLACK_NS
PORTS = 9  # acknowledgements of 8 packets come by each port in turn

sizes = st.lists(
    st.one_of(st.sampled_from([1, MTU - 1, MTU, MTU + 1, 2 * MTU, 40 * MTU]), st.integers(1, 12 * MTU)),
    min_size=1,
    max_size=8,
)
fates = st.lists(
    st.one_of(
        st.just(FINE),
        st.just(LOST),
        st.lists(st.sampled_from([0, 500, 3_000, 40_000, 300_000, 900_000]), min_size=1, max_size=3).map(tuple),
    ),
    max_size=120,
)
lateness = st.lists(st.sampled_from([0, 2_000, MOST_LATE_NS]), min_size=SETTINGS.paths, max_size=SETTINGS.paths)


@given(sizes, fates, fates, lateness, st.sampled_from([0, 1, BEFORE_WRAP]), st.integers(1, MOST_PACKETS))
@settings(max_examples=60)
def test_whatever_is_lost_or_late_every_message_arrives_once_and_completes_in_order(
    sizes: list[int], data: list[Fate], replies: list[Fate], late_ns: list[int], first_psn: int, most: int
) -> None:
    link = Link(data, replies, first_psn, most)
    link.late_ns = late_ns
    link.post(*sizes)
    link.run()
    link.check_delivered()


@given(sizes, lateness, st.integers(1, MOST_PACKETS))
@settings(max_examples=40)
def test_order_among_paths_says_nothing(sizes: list[int], late_ns: list[int], most: int) -> None:
    link = Link(first_psn=BEFORE_WRAP, most_packets=most)
    link.late_ns = late_ns
    link.post(*sizes)
    link.run()
    link.check_delivered()
    assert link.requester.counters.packets_again == 0
    assert link.paths.counters.denials == 0


@given(st.integers(0, SETTINGS.paths - 1), st.integers(1, MOST_PACKETS))
def test_a_dark_path_loses_at_most_what_left_within_a_round_trip(path: int, most: int) -> None:
    link = Link(most_packets=most)
    link.post(200 * MTU)
    link.run(until_ns=60_000)
    link.dark, dark_ns = {path}, link.now_ns
    link.post(600 * MTU)
    link.run()
    link.check_delivered()
    by_it = [at_ns for at_ns, packet in link.sent if packet.path == path and at_ns > dark_ns]
    assert max(by_it, default=dark_ns) - dark_ns <= ROUND_NS + TRANSPORT.window_packets * 2_000
    assert link.paths.state(path) is DENIED


def test_a_lost_packet_goes_again_at_once_by_another_path_and_its_own_is_denied() -> None:
    link = Link([FINE] * 3 + [LOST])
    link.post(64 * MTU)
    link.run()
    link.check_delivered()
    copies = [packet.path for _, packet in link.sent if packet.psn24 == 3]
    assert len(copies) == 2
    assert copies[0] != copies[1]
    assert link.requester.counters.packets_again == 1
    assert link.paths.state(copies[0]) is DENIED


def test_a_lost_packet_goes_again_by_another_port_while_one_carries() -> None:
    """A port may be bad as a whole: a lone packet would try its paths one after the other, each time for longer."""
    link = Link(most_packets=1)
    link.post(MTU)
    requester, paths = link.requester, link.paths
    (run,) = requester.take(0, 1, 0)
    due_ns = requester.deadline_ns()
    assert due_ns is not None
    requester.on_timer(due_ns)
    assert paths.counters.denials == 1
    assert requester.take(paths.port(run.paths[0]), 1, due_ns) == []
    (again,) = requester.take(1, 1, due_ns)
    assert (again.again, paths.port(again.paths[0])) == (True, 1)


def test_a_packet_that_several_ports_lost_goes_again_by_one_that_has_lost_nothing() -> None:
    """Half of the ports may be dark, and each try of one of them takes twice as long as the last."""
    link = Link(most_packets=1)
    link.post(MTU)
    requester = link.requester
    requester.set_values([value._replace(port=at % 4) for at, value in enumerate(link.values)])
    requester.take(0, 1, 0)
    now_ns = 0
    for port in (1, 2):
        while not requester.sendable:  # probes may be due before it is lost
            due_ns = requester.deadline_ns()
            assert due_ns is not None
            now_ns = due_ns
            requester.on_timer(now_ns)
        assert requester.paths.trusted_ports == frozenset(range(port, 4))
        assert [requester.take(other, 1, now_ns) for other in range(port)] == [[]] * port
        assert len(requester.take(port, 1, now_ns)) == 1


def test_with_one_port_left_it_takes_what_it_lost() -> None:
    link = Link(most_packets=1)
    link.post(MTU)
    requester = link.requester
    requester.set_values([value._replace(port=0) for value in link.values])
    requester.take(0, 1, 0)
    due_ns = requester.deadline_ns()
    assert due_ns is not None
    requester.on_timer(due_ns)
    assert len(requester.take(0, 1, due_ns)) == 1


def test_a_denied_path_comes_back_when_a_probe_is_answered() -> None:
    link = Link()
    link.dark = {3}
    link.post(64 * MTU)
    link.run()
    assert link.paths.state(3) is DENIED
    link.run(until_ns=link.now_ns + 3 * SETTINGS.probe_interval_ns)
    assert link.paths.state(3) is DENIED, "it is dark"
    assert link.paths.counters.probes >= 2
    link.dark = set()
    link.run(until_ns=link.now_ns + 2 * SETTINGS.probe_interval_ns)
    assert link.paths.state(3) is GOOD
    assert link.paths.counters.answers == 1
    link.post(64 * MTU)
    before = len(link.sent)
    link.run()
    assert any(packet.path == 3 for _, packet in link.sent[before:])


def test_paths_of_a_silent_port_are_assumed_bad_and_come_back_with_one_answer() -> None:
    link = Link(settings=replace(SETTINGS, dark_after=2))
    link.dark = {0, 2, 4, 6}  # all of port 0
    link.post(200 * MTU)
    link.run()
    link.check_delivered()
    states = [link.paths.state(path) for path in (0, 2, 4, 6)]
    assert set(states) <= {DENIED, ASSUMED_BAD}
    assert (link.paths.counters.denials, link.paths.counters.assumed) == (2, 2)
    link.dark = {0}
    link.run(until_ns=link.now_ns + 3 * SETTINGS.probe_interval_ns)
    assert [link.paths.state(path) for path in (0, 2, 4, 6)] == [DENIED, GOOD, GOOD, GOOD]


def test_with_all_paths_dark_all_are_probed_and_the_retry_counter_ends_the_queue_pair() -> None:
    link = Link()
    link.dark = set(range(SETTINGS.paths))
    link.post(64 * MTU, MTU)
    link.run()
    assert [end.status for end in link.completions] == [Status.RETRY_EXCEEDED, Status.FLUSHED]
    assert link.completions[0].completed_ns >= TRANSPORT.patience_ns
    assert link.paths.counters.probes > SETTINGS.paths


@given(st.integers(100_000, 8_000_000))
@settings(max_examples=20)
def test_it_goes_on_when_any_path_is_back_before_that(dark_ns: int) -> None:
    link = Link()
    link.dark = set(range(SETTINGS.paths))
    link.post(64 * MTU)
    link.run(until_ns=dark_ns)
    link.dark = set(range(1, SETTINGS.paths))
    link.run()
    link.check_delivered()


def test_a_marked_path_is_skipped_for_a_while_and_loses_nothing() -> None:
    link = Link()
    link.marks = {5}
    link.post(64 * MTU)
    link.run()
    assert link.paths.state(5) is SKIPPED
    link.marks = set()
    link.run(until_ns=link.now_ns + 2 * SETTINGS.skip_for_ns)
    assert link.paths.state(5) is GOOD
    assert link.requester.counters.packets_again == 0


@given(sizes, fates, fates, st.sets(st.integers(0, SETTINGS.paths - 1)), st.integers(1, MOST_PACKETS))
@settings(max_examples=60)
def test_trimmed_packets_go_again_whatever_else_is_lost(
    sizes: list[int], data: list[Fate], replies: list[Fate], full: set[int], most: int
) -> None:
    link = Link(data, replies, BEFORE_WRAP, most)
    link.full = full
    link.post(*sizes)
    link.run(5 * ROUND_NS)
    link.full = set()
    link.run()
    link.check_delivered()


def test_a_trimmed_packet_goes_again_at_once_by_another_path_and_its_own_is_only_skipped() -> None:
    link = Link(most_packets=2)
    link.full = {3}
    link.post(40 * MTU)
    link.run()
    link.check_delivered()
    trimmed = [packet for _, packet in link.sent if packet.trimmed]
    again = link.requester.counters.packets_again
    assert again == link.trims == len(trimmed) > 0
    assert all(any(p.psn24 == packet.psn24 and p.path != 3 for _, p in link.sent) for packet in trimmed)
    assert (link.paths.counters.denials, link.paths.counters.probes) == (0, 0)
    assert link.paths.counters.skips == len(trimmed)


def test_where_all_paths_are_full_it_goes_on_as_soon_as_one_is_not() -> None:
    """The news of trimmed packets keeps the queue pair alive for longer than its retries would."""
    transport = replace(TRANSPORT, retry_count=0)
    link = Link(transport=transport)
    link.full = set(range(SETTINGS.paths))
    link.post(4 * MTU)
    link.run(2 * transport.timer.wait_ns(0))
    assert link.completions == []
    assert link.paths.counters.denials == 0
    link.full.discard(5)
    link.run()
    link.check_delivered()


def test_news_of_a_packet_that_has_gone_again_since_changes_nothing() -> None:
    link = Link()
    link.post(MTU)
    (run,) = link.requester.take(0, 1, 0)
    news = Sack(-1, 0, link.values[run.paths[0]].sport, trimmed=True)
    assert link.requester.on_sack(news, 1).trimmed == 1
    (again,) = link.requester.take(1, 1, 2)
    assert again.paths != run.paths
    assert link.requester.on_sack(news, 3).trimmed == 0
    assert not link.requester.sendable


def test_packets_beyond_the_window_are_never_taken_and_old_acknowledgements_change_nothing() -> None:
    link = Link()
    link.post(100 * MTU)
    assert sum(run.count for run in link.requester.take(0, 1000, 0)) == TRANSPORT.window_packets
    sack = link.responder.acknowledge()
    assert link.requester.on_sack(sack._replace(psn=(1 << 23) & PSN_MASK), 1).packets == 0
    assert link.requester.progress() == 0


@given(sizes, fates, fates, st.integers(1, MOST_PACKETS), st.integers(1, 2 * MOST_PACKETS))
@settings(max_examples=60)
def test_no_more_is_under_way_by_a_port_than_its_part_of_the_congestion_window(
    sizes: list[int], data: list[Fate], replies: list[Fate], most: int, window: int
) -> None:
    link = Link(data, replies, BEFORE_WRAP, most)
    link.requester.set_window(window)
    link.post(*sizes)
    for until_ns in range(0, 400_000, 2_000):
        link.run(until_ns)
        for port in (0, 1):
            most_now = max(window // max(link.paths.carrying_ports, 1), 1)
            assert link.requester.room(port, most_now) == most_now - link.under_way(port)
    link.run()
    link.check_delivered()
    assert [link.under_way(port) for port in (0, 1)] == [0, 0]


def test_a_small_window_waits_for_no_delayed_acknowledgement() -> None:
    link = Link()
    link.requester.set_window(4)
    link.post(400 * MTU)
    link.run()
    link.check_delivered()
    assert link.now_ns < 400 / 4 * (2 * LATENCY_NS + 4 * PACKET_NS) * 1.5 < 400 / 4 * SLACK_NS


@given(st.integers(0, SETTINGS.paths - 1), st.integers(1, MOST_PACKETS))
def test_a_denial_tells_when_the_first_lost_packet_left_and_the_round_trip_known_then(path: int, most: int) -> None:
    link = Link(most_packets=most)
    link.post(200 * MTU)
    link.run(until_ns=60_000)
    link.dark, dark_ns, under_way = {path}, link.now_ns, len(link.sent)
    link.post(600 * MTU)
    link.run()
    (denial,) = link.paths.denials
    by_it = [at_ns for at_ns, packet in link.sent[under_way:] if packet.path == path]
    assert denial.sent_ns == by_it[0] >= dark_ns
    assert denial.at_ns >= by_it[-1], "nothing leaves by it afterwards"
    assert denial.port == link.paths.port(path)
    assert 2 * LATENCY_NS <= denial.rtt_ns <= 2 * LATENCY_NS + SLACK_NS


def test_of_two_packets_of_a_path_that_are_found_lost_at_once_the_first_counts() -> None:
    link = Link([FINE] * 3 + [LOST] + [FINE] * (SETTINGS.paths - 1) + [LOST], most_packets=1)
    link.post(64 * MTU)
    link.run()
    (denial,) = link.paths.denials
    lost = [(at_ns, packet.path) for at_ns, packet in link.sent if packet.psn24 in {3, 3 + SETTINGS.paths}][:2]
    assert lost[0][1] == lost[1][1], "they took the same path"
    assert lost[1][0] > lost[0][0] == denial.sent_ns


def test_a_denial_without_a_round_trip_before_says_so() -> None:
    link = Link()
    link.dark = {1}
    link.post(8 * MTU)
    link.run()
    (denial,) = link.paths.denials
    assert (denial.sent_ns, denial.rtt_ns) == (0, 0)


def test_denials_are_remembered_up_to_a_limit_and_counted_beyond() -> None:
    paths = Paths(SETTINGS, [0] * SETTINGS.paths)
    for turn in range(MOST_DENIALS + 2):
        paths.on_lost([Loss(0, turn, 1)], turn + 1)
        paths.on_answered(0)
    assert len(paths.denials) == MOST_DENIALS
    assert paths.counters.denials == MOST_DENIALS + 2
    assert paths.denials[7] == Denial(0, 7, 8, 1)


@given(st.integers(1, SETTINGS.paths - 1))
def test_lost_packets_give_those_of_other_paths_no_more_time(dark: int) -> None:
    """Most paths fail at once, and no round trip is known until a packet finds one that works."""
    link = Link(most_packets=1)
    link.post(200 * MTU)
    link.run()
    link.dark, at_ns = set(range(dark)), link.now_ns
    link.post(SETTINGS.paths * MTU)
    link.run()
    link.check_delivered()
    at_first = [each for each in link.paths.denials if each.sent_ns - at_ns < SETTINGS.paths * PACKET_NS]
    assert len(at_first) == dark
    assert all(each.at_ns - each.sent_ns <= 2 * LATENCY_NS + 2 * SLACK_NS for each in at_first)


@pytest.mark.parametrize(("times", "most"), [(2, 1), (3, 4), (6, 40)])
def test_a_port_whose_packets_queue_loses_nothing_once_that_is_known(times: int, most: int) -> None:
    """Congestion of one plane is no loss of its paths, however short the round trips of the others are."""
    link = Link(most_packets=most, settings=replace(SETTINGS, paths=4 * PORTS), ports=PORTS)
    link.post(*[40 * MTU] * 200)
    link.run(20 * ROUND_NS)
    slow_ns = times * ROUND_NS
    link.late_ns = [0 if path % PORTS else slow_ns for path in range(4 * PORTS)]
    link.run(link.now_ns + 6 * slow_ns)
    denied, again = link.paths.counters.denials, link.requester.counters.packets_again
    link.run()
    link.check_delivered()
    assert link.paths.counters.denials == denied <= 3 * 4, "only while it was not known"
    assert link.requester.counters.packets_again == again
