"""The host's path control agent: exactly the queue pairs that lost their destination move, and they come home."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from testbed.routing.pathcontrol.actions import Action, Move, Reachability, Send
from testbed.routing.pathcontrol.host_agent import FIRST_SPORT, SPORTS, Connection, HostAgent
from testbed.routing.pathcontrol.message import Interest, decode, encode_interest, encode_reach

MS = 1_000_000
PORTS = ("r0p0", "r0p1")
B, C = "10.0.1.1", "10.0.1.2"
EVEN, ODD = 0xC100, 0xC101


def parity(sport: int, dst_ip: str, dport: int, active: Sequence[str]) -> str:
    """A LAG that carries even source ports by the first active member, odd ones by the second."""
    return active[sport % len(active)]


def agent(*connections: Connection) -> HostAgent:
    made = HostAgent("p0.s0.h0.r0", PORTS, 500, parity)
    made.set_active(PORTS, 0)
    made.add(connections, 0)
    return made


def hear(made: HostAgent, port: str, *states: tuple[str, bool], generation: int = 1, at_ns: int = 1) -> list[Action]:
    return [a for frame in encode_reach(generation, states) for a in made.on_frame(port, frame, at_ns)]


def moves(actions: list[Action]) -> list[tuple[int, str, str]]:
    return [(a.connection, a.from_port, a.to_port) for a in actions if isinstance(a, Move)]


def asked(actions: list[Action]) -> list[tuple[str, tuple[str, ...]]]:
    sends = [(a.port, decode(a.payload)) for a in actions if isinstance(a, Send)]
    return [(port, message.destinations) for port, message in sends if isinstance(message, Interest)]


def test_each_active_port_is_asked_about_each_destination_once_and_at_every_refresh() -> None:
    made = HostAgent("nic", PORTS, 500, parity)
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
    made = HostAgent("nic", PORTS, 500, parity)
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
    back = hear(made, "r0p0", (B, True), generation=2)
    assert moves(back) == [(1, "r0p1", "r0p0")]
    assert made.sport_of(1) == EVEN


def test_moves_precede_nothing_when_no_port_reaches_the_destination() -> None:
    made = agent(Connection(1, B, 4791, EVEN))
    hear(made, "r0p1", (B, False))
    assert moves(hear(made, "r0p0", (B, False))) == []
    assert made.sport_of(1) == EVEN
    assert moves(hear(made, "r0p1", (B, True), generation=2)) == [(1, "r0p0", "r0p1")]


def test_an_old_generation_is_not_believed() -> None:
    made = agent(Connection(1, B, 4791, EVEN))
    hear(made, "r0p0", (B, True), generation=5)
    assert hear(made, "r0p0", (B, False), generation=4) == []
    assert moves(hear(made, "r0p0", (B, False), generation=5)) == [(1, "r0p0", "r0p1")]


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


def test_a_lag_blind_to_source_ports_leaves_everything_where_it_is() -> None:
    made = HostAgent("nic", PORTS, 500, lambda sport, dst, dport, active: active[0])
    made.set_active(PORTS, 0)
    made.add([Connection(1, B, 4791, EVEN)], 0)
    assert moves(hear(made, "r0p0", (B, False))) == []


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
        self.carry_out(hear(self.agent, port, (B, b), (C, c), generation=self.generation[port], at_ns=self.now))

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
            good = [p for p in self.active if self.agent._reaches(p, c.dst_ip, self.now)]
            at = parity(self.sports[c.id], c.dst_ip, c.dport, self.active)
            assert not good or at in good
            if parity(c.home_sport, c.dst_ip, c.dport, self.active) in good:
                assert self.sports[c.id] == c.home_sport


TestHost = Host.TestCase
TestHost.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
