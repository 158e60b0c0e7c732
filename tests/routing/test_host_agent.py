"""The host's path control agent: exactly the queue pairs that lost their destination move, and they come home."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hpn.testbed.routing.pathcontrol.actions import Action, Hold, Move, Reachability, Send, Stuck
from hpn.testbed.routing.pathcontrol.destinations import HostSettings
from hpn.testbed.routing.pathcontrol.host_agent import MOVE_BATCH, Connection, HostAgent
from hpn.testbed.routing.pathcontrol.message import Interest, decode, encode_hello, encode_interest, encode_reach
from hpn.testbed.routing.pathcontrol.source_ports import FIRST_SPORT, SEARCH_LIMIT, SPORTS
from hpn.testbed.routing.pathcontrol.tor_view import Standing

MS = 1_000_000
PORTS = ("r0p0", "r0p1")
B, C = "10.0.1.1", "10.0.1.2"
EVEN, ODD = 0xC100, 0xC101


def parity(sport: int, dst_ip: str, dport: int, active: Sequence[str]) -> str:
    """A LAG that carries even source ports by the first active member, odd ones by the second."""
    return active[sport % len(active)]


def agent(*connections: Connection) -> HostAgent:
    made = HostAgent("p0.s0.h0.r0", PORTS, HostSettings(), parity)
    made.set_active(PORTS, 0)
    made.add(connections, 0)
    return made


def hear(made: HostAgent, port: str, *states: tuple[str, bool], number: int = 1, at_ns: int = 1) -> list[Action]:
    return [a for frame in encode_reach(number, states) for a in made.on_frame(port, frame, at_ns)]


def moves(actions: list[Action]) -> list[tuple[int, str, str]]:
    return [(a.connection, a.from_port, a.to_port) for a in actions if isinstance(a, Move)]


def asked(actions: list[Action]) -> list[tuple[str, tuple[str, ...]]]:
    sends = [(a.port, decode(a.payload)) for a in actions if isinstance(a, Send)]
    return [(port, message.destinations) for port, message in sends if isinstance(message, Interest)]


def test_each_active_port_is_asked_about_each_destination_once_and_at_every_refresh() -> None:
    made = HostAgent("nic", PORTS, HostSettings(), parity)
    made.set_active(PORTS, 0)
    first = made.add([Connection(1, B, 4791, EVEN), Connection(2, B, 4791, ODD)], 0)
    assert asked(first) == [("r0p0", (B,)), ("r0p1", (B,))]
    assert asked(made.add([Connection(3, C, 4791, 0xC200)], 0)) == [("r0p0", (C,)), ("r0p1", (C,))]
    due = made.deadline_ns
    assert due is not None
    assert 250 * MS <= due < 500 * MS
    assert asked(made.on_timer(due)) == [("r0p0", (B, C)), ("r0p1", (B, C))]
    assert made.deadline_ns == due + 500 * MS


def test_without_connections_nothing_is_sent_ever() -> None:
    made = HostAgent("nic", PORTS, HostSettings(), parity)
    assert made.set_active(PORTS, 0) == []
    assert made.deadline_ns is None
    made.add([Connection(1, B, 4791, EVEN)], 0)
    made.remove([1])
    assert made.deadline_ns is None


def test_exactly_the_connections_of_the_lost_plane_move_and_come_home() -> None:
    made = agent(Connection(1, B, 4791, EVEN), Connection(2, B, 4791, ODD), Connection(3, C, 4791, 0xC102))
    lost = hear(made, "r0p0", (B, False), (C, True))
    assert [a for a in lost if isinstance(a, Reachability)] == [
        Reachability(B, "r0p0", False),
        Reachability(C, "r0p0", True),
    ]
    assert moves(lost) == [(1, "r0p0", "r0p1")]
    assert made.sport_of(1) % 2 == 1
    assert (made.sport_of(2), made.sport_of(3)) == (ODD, 0xC102)
    back = hear(made, "r0p0", (B, True), number=2)
    assert moves(back) == [(1, "r0p1", "r0p0")]
    assert made.sport_of(1) == EVEN


def test_moves_precede_nothing_when_no_port_reaches_the_destination() -> None:
    made = agent(Connection(1, B, 4791, EVEN))
    hear(made, "r0p1", (B, False))
    assert moves(hear(made, "r0p0", (B, False))) == []
    assert made.sport_of(1) == EVEN
    assert moves(hear(made, "r0p1", (B, True), number=2)) == [(1, "r0p0", "r0p1")]


def test_the_newest_word_on_each_destination_counts_in_whatever_order_frames_come() -> None:
    made = agent(Connection(1, B, 4791, EVEN), Connection(2, C, 4791, EVEN + 2))
    hear(made, "r0p0", (B, True), number=5)
    hear(made, "r0p0", (B, True), number=7)
    assert moves(hear(made, "r0p0", (B, False), number=6)) == []
    assert moves(hear(made, "r0p0", (C, False), number=4)) == [(2, "r0p0", "r0p1")]
    assert moves(hear(made, "r0p0", (B, False), number=8)) == [(1, "r0p0", "r0p1")]
    assert hear(made, "r0p0", (B, False), number=8) == []


def test_a_missing_frame_has_the_tor_asked_again_at_once_but_not_without_end() -> None:
    made = agent(Connection(1, B, 4791, EVEN), Connection(2, C, 4791, ODD))
    made.set_active((), 0)
    made.set_active(PORTS, 0)
    assert asked(hear(made, "r0p0", (B, True), number=1, at_ns=100 * MS)) == []
    assert asked(hear(made, "r0p0", (C, True), number=3, at_ns=100 * MS)) == [("r0p0", (B, C))]
    assert asked(hear(made, "r0p0", (B, True), (C, True), number=4, at_ns=101 * MS)) == []
    assert asked(hear(made, "r0p0", (B, True), number=6, at_ns=102 * MS)) == []
    assert made.deadline_ns == 162_500_000
    assert asked(made.on_timer(162_500_000)) == [("r0p0", (B, C))]


def test_a_restarted_agent_outranks_its_predecessor_and_is_asked_again() -> None:
    made = agent(Connection(1, B, 4791, EVEN))
    hear(made, "r0p0", (B, True), number=(1 << 32) + 9)
    made.on_frame("r0p0", encode_hello(2 << 32), 100 * MS)
    due = made.deadline_ns
    assert due is not None
    assert due < 163 * MS
    assert asked(made.on_timer(due)) == [("r0p0", (B,))]
    assert hear(made, "r0p0", (B, False), number=(1 << 32) + 10) == []
    assert moves(hear(made, "r0p0", (B, False), number=(2 << 32) + 1)) == [(1, "r0p0", "r0p1")]


def test_after_a_long_silence_an_agent_that_counts_anew_is_believed() -> None:
    made = agent(Connection(1, B, 4791, EVEN))
    hear(made, "r0p0", (B, True), number=9 << 32)
    assert hear(made, "r0p0", (B, False), number=1, at_ns=1500 * MS) == []
    assert moves(hear(made, "r0p0", (B, False), number=1, at_ns=1502 * MS)) == [(1, "r0p0", "r0p1")]


def test_the_words_of_a_silent_tor_expire_but_nothing_goes_home_on_silence() -> None:
    made = agent(Connection(1, B, 4791, EVEN))
    hear(made, "r0p0", (B, False))
    actions: list[Action] = []
    while made.standing("r0p0", B, 0) is Standing.BAD:
        due = made.deadline_ns
        assert due is not None
        assert due <= 2001 * MS
        actions += made.on_timer(due)
    assert moves(actions) == []
    assert moves(hear(made, "r0p1", (B, False), at_ns=2001 * MS)) == [(1, "r0p1", "r0p0")]


def flap(made: HostAgent, number: int, at_ns: int) -> list[Action]:
    """Lost, and back 10 ms later."""
    return hear(made, "r0p0", (B, False), number=number, at_ns=at_ns) + hear(
        made, "r0p0", (B, True), number=number + 1, at_ns=at_ns + 10 * MS
    )


def test_a_flapping_destination_is_held_twice_as_long_after_each_loss() -> None:
    made = agent(Connection(1, B, 4791, EVEN), Connection(2, C, 4791, EVEN + 2))
    assert moves(flap(made, 1, 1000 * MS)) == [(1, "r0p0", "r0p1"), (1, "r0p1", "r0p0")]
    second = flap(made, 3, 1100 * MS)
    assert moves(second) == [(1, "r0p0", "r0p1")]
    assert [a for a in second if isinstance(a, Hold)] == [Hold(B, "r0p0", 1000 * MS)]
    third = flap(made, 5, 1200 * MS)
    assert moves(third) == []
    assert [a for a in third if isinstance(a, Hold)] == [Hold(B, "r0p0", 2000 * MS)]
    assert moves(made.on_timer(3209 * MS)) == []
    assert moves(made.on_timer(3210 * MS)) == [(1, "r0p1", "r0p0")]
    assert made.sport_of(2) == EVEN + 2


def test_a_held_port_serves_when_no_other_does() -> None:
    made = agent(Connection(1, B, 4791, EVEN))
    flap(made, 1, 1000 * MS)
    flap(made, 3, 1100 * MS)
    assert moves(hear(made, "r0p1", (B, False), at_ns=1200 * MS)) == [(1, "r0p1", "r0p0")]
    assert made.sport_of(1) == EVEN


def test_many_queue_pairs_move_in_batches() -> None:
    made = agent(*(Connection(n, B, 4791, FIRST_SPORT + n) for n in range(600)))
    while (due := made.deadline_ns) is not None and due < 100 * MS:
        made.on_timer(due)
    batches = [hear(made, "r0p0", (B, False), at_ns=100 * MS)]
    while (due := made.deadline_ns) is not None and due < 110 * MS:
        batches.append(made.on_timer(due))
    assert max(len(moves(batch)) for batch in batches) <= MOVE_BATCH
    assert len([move for batch in batches for move in moves(batch)]) == 300
    assert all(made.sport_of(n) % 2 for n in range(600))


def test_state_goes_with_the_connections() -> None:
    made = agent(Connection(1, B, 4791, EVEN), Connection(2, C, 4791, ODD))
    hear(made, "r0p0", (B, False), (C, True))
    made.remove([1, 2])
    assert made.state_size == 0


def test_a_tor_without_path_control_changes_nothing() -> None:
    made = agent(Connection(1, B, 4791, EVEN))
    assert made.set_active(PORTS[1:], 1) == []
    actions = made.set_active(PORTS, 2)
    assert moves(actions) == []
    assert made.sport_of(1) == EVEN


def test_a_port_that_returns_is_not_used_before_its_tor_confirms() -> None:
    made = agent(Connection(1, B, 4791, EVEN))
    hear(made, "r0p0", (B, True))
    made.set_active(PORTS[1:], 10)  # carrier lost: the LAG carries everything by r0p1
    actions = made.set_active(PORTS, 20)
    assert asked(actions) == [("r0p0", (B,))]
    assert moves(actions) == [(1, "r0p0", "r0p1")]
    assert moves(hear(made, "r0p0", (B, True), at_ns=30)) == [(1, "r0p1", "r0p0")]


def test_doubt_about_a_returned_port_ends_with_silence() -> None:
    made = agent(Connection(1, B, 4791, EVEN))
    hear(made, "r0p0", (B, True))
    made.set_active(PORTS[1:], 10)
    made.set_active(PORTS, 20)
    actions: list[Action] = []
    while made.sport_of(1) != EVEN:
        due = made.deadline_ns
        assert due is not None
        assert due <= 20 + 1500 * MS
        actions += made.on_timer(due)
    assert moves(actions) == [(1, "r0p1", "r0p0")]


def test_hostile_frames_and_unasked_destinations_are_ignored() -> None:
    made = agent(Connection(1, B, 4791, EVEN))
    assert made.on_frame("r0p0", b"\0" * 60, 1) == []
    assert made.on_frame("r0p0", encode_interest(500, [B])[0], 1) == []
    assert made.on_frame("eth9", encode_reach(1, [(B, False)])[0], 1) == []
    assert hear(made, "r0p0", ("10.9.9.9", False)) == []


def test_a_lag_blind_to_source_ports_leaves_everything_where_it_is_at_a_bounded_cost() -> None:
    asked_of_the_lag: list[int] = []

    def blind(sport: int, dst: str, dport: int, active: Sequence[str]) -> str:
        asked_of_the_lag.append(sport)
        return active[0]

    made = HostAgent("nic", PORTS, HostSettings(), blind)
    made.set_active(PORTS, 0)
    made.add([Connection(1, B, 4791, EVEN)], 0)
    assert moves(hear(made, "r0p0", (B, False))) == []
    assert len(asked_of_the_lag) <= SEARCH_LIMIT + 5


def test_the_same_story_gives_the_same_source_ports() -> None:
    stories = []
    for _ in range(2):
        made = agent(*(Connection(n, B, 4791, FIRST_SPORT + n) for n in range(200)))
        hear(made, "r0p0", (B, False))
        stories.append([made.sport_of(n) for n in range(200)])
    assert stories[0] == stories[1]
    assert len(set(stories[0])) == 200


class Host(RuleBasedStateMachine):
    """Any order of news from LAG and ToRs; what must hold after each."""

    @initialize(homes=st.lists(st.integers(FIRST_SPORT, FIRST_SPORT + SPORTS - 1), unique=True, min_size=1, max_size=8))
    def begin(self, homes: list[int]) -> None:
        self.connections = [Connection(n, (B, C)[n % 2], 4791, home) for n, home in enumerate(homes)]
        self.agent = agent(*self.connections)
        self.active: tuple[str, ...] = PORTS
        self.generation = dict.fromkeys(PORTS, 1)
        self.sports = {c.id: c.home_sport for c in self.connections}
        self.now = 1

    def carry_out(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, Move):
                assert self.sports[action.connection] == action.old_sport != action.sport
                self.sports[action.connection] = action.sport
        self.now += MS
        due = self.agent.deadline_ns
        if due is not None and due <= self.now:  # no event loop lets a timer wait for the next frame
            self.carry_out(self.agent.on_timer(self.now))

    @rule(port=st.sampled_from(PORTS), b=st.booleans(), c=st.booleans())
    def tor_speaks(self, port: str, b: bool, c: bool) -> None:
        self.generation[port] += 1
        self.carry_out(hear(self.agent, port, (B, b), (C, c), number=self.generation[port], at_ns=self.now))

    @rule(active=st.sampled_from([PORTS, PORTS[:1], PORTS[1:], ()]))
    def lag_changes(self, active: tuple[str, ...]) -> None:
        self.active = active
        self.carry_out(self.agent.set_active(active, self.now))

    @rule()
    def time_passes(self) -> None:
        due = self.agent.deadline_ns
        assert due is not None
        self.now = max(self.now, due)
        actions = self.agent.on_timer(self.now)
        after = self.agent.deadline_ns
        assert after is not None
        assert after > self.now, "a timer that does not advance would spin"
        self.carry_out(actions)

    @invariant()
    def the_agent_and_the_world_agree(self) -> None:
        assert {c.id: self.agent.sport_of(c.id) for c in self.connections} == self.sports

    @invariant()
    def source_ports_are_roce_ports_and_nobody_elses(self) -> None:
        assert all(FIRST_SPORT <= sport < FIRST_SPORT + SPORTS for sport in self.sports.values())
        homes = {c.home_sport: c.id for c in self.connections}
        assert len(set(self.sports.values())) == len(self.sports)
        assert all(homes.get(sport, number) == number for number, sport in self.sports.items())

    @invariant()
    def everyone_who_can_reach_does_and_is_home_if_possible(self) -> None:
        for c in self.connections if self.active else ():
            standings = {p: self.agent.standing(p, c.dst_ip, self.now) for p in self.active}
            good = [p for p, standing in standings.items() if standing is Standing.GOOD]
            usable = [p for p, standing in standings.items() if standing is not Standing.BAD]
            at = parity(self.sports[c.id], c.dst_ip, c.dport, self.active)
            assert not usable or at in usable
            if parity(c.home_sport, c.dst_ip, c.dport, self.active) in good:
                assert self.sports[c.id] == c.home_sport


TestHost = Host.TestCase
TestHost.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def test_a_search_that_fails_is_told_once_and_again_after_it_was_placed() -> None:
    def one_port(_sport: int, _dst_ip: str, _dport: int, active: Sequence[str]) -> str:
        return active[0]  # a LAG that does not hash source ports

    made = HostAgent("p0.s0.h0.r0", PORTS, HostSettings(), one_port)
    made.set_active(PORTS, 0)
    made.add([Connection(7, B, 4791, EVEN)], 0)
    stuck = [a for a in hear(made, "r0p0", (B, False)) if isinstance(a, Stuck)]
    assert stuck == [Stuck(7, B, EVEN, "r0p0", SEARCH_LIMIT)]
    assert made.sport_of(7) == EVEN
    again = [*hear(made, "r0p0", (B, False), number=2, at_ns=2), *made.look_at_all(3)]
    assert not [a for a in again if isinstance(a, Stuck | Move)], "it is told once"
    hear(made, "r0p0", (B, True), number=3, at_ns=10**10)
    made.look_at_all(10**11)
    more = hear(made, "r0p0", (B, False), number=4, at_ns=2 * 10**11)
    assert [a.connection for a in more if isinstance(a, Stuck)] == [7]
