"""The ToR's path control agent: tells what its FIB says, to those who asked, when it changes."""

from __future__ import annotations

from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.rtnl_events import LinkEvent, RouteEvent
from hpn.testbed.routing.pathcontrol.actions import Send
from hpn.testbed.routing.pathcontrol.message import Reach, decode, encode_interest, encode_reach
from hpn.testbed.routing.pathcontrol.tor_agent import ASKS_DEPTH, BURST_FRAMES, MAX_INTERESTS, TorAgent

MS = 1_000_000
PORTS = {"h0r0": 11, "h1r0": 12}
UP0, UP1 = 21, 22
B, C = "10.0.1.1", "10.0.1.2"


def route(ip: str, *oifs: int, gone: bool = False, metric: int = 32, kind: int = 1, length: int = 32) -> RouteEvent:
    return RouteEvent(0, f"{ip}/{length}", rtnl.RT_TABLE_MAIN, 12, kind, oifs, gone, metric)


def link(ifindex: int, up: bool = True, carrier: bool = True) -> LinkEvent:
    return LinkEvent(0, ifindex, "x", up, carrier, False)


def agent(*routes: RouteEvent) -> TorAgent:
    made = TorAgent(PORTS, epoch=1, gather_ms=5)
    made.resync([link(i) for i in (11, 12, UP0, UP1)], routes, 0)
    return made


def ask(made: TorAgent, port: str, *ips: str, at_ns: int = 0) -> list[tuple[str, str, bool]]:
    return told([send for frame in encode_interest(500, ips) for send in made.on_frame(port, frame, at_ns)])


def told(sends: list[Send]) -> list[tuple[str, str, bool]]:
    found = []
    for send in sends:
        message = decode(send.payload)
        assert isinstance(message, Reach)
        found += [(send.port, ip, state) for ip, state in message.states]
    return found


def test_an_interest_is_answered_at_once_from_the_fib() -> None:
    assert ask(agent(route(B, UP0)), "h0r0", B, C) == [("h0r0", B, True), ("h0r0", C, False)]


def test_the_subnet_route_reaches_nobody_and_neither_does_a_blackhole() -> None:
    made = agent(route("10.0.1.0", UP0, length=24), route(B, kind=rtnl.RTN_BLACKHOLE))
    assert ask(made, "h0r0", B, C) == [("h0r0", B, False), ("h0r0", C, False)]


def test_a_lost_route_is_told_to_those_who_asked_and_its_return_too() -> None:
    made = agent(route(B, UP0), route(C, UP0))
    ask(made, "h0r0", B)
    ask(made, "h1r0", C)
    assert told(made.on_events([route(B, UP0, gone=True)], 1)) == [("h0r0", B, False)]
    assert told(made.on_events([route(B, UP0)], 10 * MS)) == [("h0r0", B, True)]
    assert made.on_events([route(B, UP0, UP1)], 20 * MS) == []  # another ECMP set is no news


def test_a_route_replaced_within_one_reading_never_went_away() -> None:
    made = agent(route(B, 11, metric=0))
    ask(made, "h0r0", B)
    assert made.on_events([route(B, 11, gone=True, metric=0), route(B, UP0)], 1) == []


def test_either_of_two_daemons_routes_is_enough() -> None:
    made = agent(route(B, 11, metric=0), route(B, UP0))
    ask(made, "h0r0", B)
    assert made.on_events([route(B, 11, metric=0, gone=True)], 1) == []
    assert told(made.on_events([route(B, UP0, gone=True)], 2)) == [("h0r0", B, False)]


def test_routes_through_ports_without_carrier_do_not_count() -> None:
    made = agent(route(B, UP0, UP1))
    ask(made, "h0r0", B)
    assert made.on_events([link(UP0, carrier=False)], 1) == []
    assert told(made.on_events([link(UP1, carrier=False)], 2)) == [("h0r0", B, False)]
    assert told(made.on_events([link(UP1)], 10 * MS)) == [("h0r0", B, True)]


def test_what_the_kernel_flushed_in_silence_does_not_return_with_the_port() -> None:
    made = agent(route(B, UP0))
    ask(made, "h0r0", B)
    assert told(made.on_events([link(UP0, up=False, carrier=False)], 1)) == [("h0r0", B, False)]
    assert made.on_events([link(UP0)], 2) == []
    assert told(made.on_events([route(B, UP0)], 10 * MS)) == [("h0r0", B, True)]


def test_an_interest_that_is_not_refreshed_ends_after_three_refresh_times() -> None:
    made = agent(route(B, UP0))
    ask(made, "h0r0", B)
    assert made.deadline_ns == 1500 * MS
    ask(made, "h0r0", B, at_ns=400 * MS)
    assert made.on_timer(1500 * MS) == []
    assert made.deadline_ns == 1900 * MS
    assert told(made.on_events([route(B, UP0, gone=True)], 1899 * MS)) == [("h0r0", B, False)]
    made.on_timer(1900 * MS)
    assert made.deadline_ns is None
    assert made.on_events([route(B, UP0)], 1901 * MS) == []


def test_a_host_that_lost_carrier_is_forgotten() -> None:
    made = agent(route(B, UP0))
    ask(made, "h0r0", B)
    made.on_events([link(11, carrier=False)], 1)
    assert made.on_events([route(B, UP0, gone=True)], 2) == []


def numbers(sends: list[Send]) -> list[int]:
    return [message.number for message in (decode(send.payload) for send in sends) if isinstance(message, Reach)]


def test_frames_to_each_port_are_numbered_from_the_epoch_on_without_gaps() -> None:
    made = agent(route(B, UP0))
    sends = [*made.hello(), *made.on_frame("h0r0", encode_interest(500, [B])[0], 0)]
    for at in range(4):
        sends += made.on_events([route(B, UP0, gone=at % 2 == 0)], at * 10 * MS)
    sends += made.on_frame("h1r0", encode_interest(500, [B])[0], 0)
    assert numbers([s for s in sends if s.port == "h0r0"]) == [(1 << 32) + n for n in range(1, 7)]
    assert numbers([s for s in sends if s.port == "h1r0"]) == [(1 << 32) + n for n in range(1, 3)]


def test_after_a_notice_further_news_are_gathered_and_what_was_undone_is_not_told() -> None:
    made = agent(route(B, UP0), route(C, UP0))
    ask(made, "h0r0", B, C)
    assert told(made.on_events([route(B, UP0, gone=True)], 1 * MS)) == [("h0r0", B, False)]
    assert made.on_events([route(C, UP0, gone=True)], 2 * MS) == []
    assert made.on_events([route(B, UP0)], 3 * MS) == []
    assert made.deadline_ns == 6 * MS
    assert made.on_events([route(B, UP0, gone=True)], 4 * MS) == []
    assert told(made.on_timer(6 * MS)) == [("h0r0", C, False)]
    assert made.deadline_ns == 1500 * MS


def test_losses_are_told_before_returns() -> None:
    made = agent(route(C, UP0))
    ask(made, "h0r0", B, C)
    assert told(made.on_events([route(B, UP0), route(C, UP0, gone=True)], 1)) == [("h0r0", C, False), ("h0r0", B, True)]


def test_an_answer_takes_the_place_of_a_notice_that_waits() -> None:
    made = agent(route(B, UP0), route(C, UP0))
    ask(made, "h0r0", B, C)
    made.on_events([route(C, UP0, gone=True)], 1 * MS)
    made.on_events([route(B, UP0, gone=True)], 2 * MS)
    assert ask(made, "h0r0", B, at_ns=3 * MS) == [("h0r0", B, False)]
    assert made.on_timer(6 * MS) == []


def test_notices_to_all_ports_leave_in_bursts_and_none_is_forgotten() -> None:
    ports = {f"h{n}": 100 + n for n in range(200)}
    made = TorAgent(ports, epoch=1)
    made.resync([link(UP0)], [route(B, UP0)], 0)
    for port in ports:
        ask(made, port, B)
    sends = made.on_events([route(B, UP0, gone=True)], 1 * MS)
    assert len(sends) == BURST_FRAMES
    rounds = 0
    while (due := made.deadline_ns) is not None and due < 20 * MS:
        more = made.on_timer(due)
        assert 0 < len(more) <= BURST_FRAMES
        sends, rounds = sends + more, rounds + 1
    assert rounds == 3
    assert sorted(port for port, _, _ in told(sends)) == sorted(ports)


def test_a_host_that_asks_without_end_is_answered_in_moderation_and_harms_no_other() -> None:
    made = agent(route(B, UP0))
    answered = sum(len(ask(made, "h0r0", B, at_ns=n * MS)) for n in range(1000))
    assert ASKS_DEPTH + 300 <= answered <= ASKS_DEPTH + 330
    assert ask(made, "h1r0", B, at_ns=1000 * MS) == [("h1r0", B, True)]


def test_state_expires_with_the_interests() -> None:
    made = agent(route(B, UP0))
    ask(made, "h0r0", B, C)
    assert made.state_size == 2
    made.on_timer(1500 * MS)
    assert (made.state_size, made.told("h0r0", B)) == (0, None)


def test_hostile_frames_and_unknown_ports_get_no_answer() -> None:
    made = agent(route(B, UP0))
    assert made.on_frame("h0r0", b"\xff" * 60, 0) == []
    assert made.on_frame("h0r0", encode_reach(1, [(B, True)])[0], 0) == []
    assert made.on_frame("up0", encode_interest(500, [B])[0], 0) == []


def test_interest_is_bounded_per_port() -> None:
    made = agent()
    ips = [f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in range(MAX_INTERESTS + 50)]
    assert len(ask(made, "h0r0", *ips)) == MAX_INTERESTS
    assert len(ask(made, "h1r0", *ips[:10])) == 10


def test_a_thousand_losses_leave_in_a_few_frames() -> None:
    ips = [f"10.1.{n >> 8}.{n & 255}" for n in range(1000)]
    made = agent(*(route(ip, UP0) for ip in ips))
    ask(made, "h0r0", *ips)
    sends = made.on_events([route(ip, UP0, gone=True) for ip in ips], 1)
    assert len(sends) == 4
    assert len(told(sends)) == 1000
