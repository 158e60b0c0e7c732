"""Steering by destination, pure: what is learned from ToRs, what is steered, and that nothing goes in a circle."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hpn.testbed.kernel.rtnetlink.rtnl import RT_TABLE_MAIN
from hpn.testbed.kernel.rtnetlink.rtnl_events import LinkEvent, RouteEvent
from hpn.testbed.routing.pathcontrol.actions import Action, Hold, Move, Reachability, Send, Steer
from hpn.testbed.routing.pathcontrol.destinations import Destinations, HostSettings
from hpn.testbed.routing.pathcontrol.host_agent import Connection, HostAgent
from hpn.testbed.routing.pathcontrol.message import (
    EVERYTHING,
    MAX_ENTRIES,
    Interest,
    Reach,
    decode,
    encode_hello,
    encode_interest,
    encode_reach,
)
from hpn.testbed.routing.pathcontrol.move_and_steer import MoveAndSteer
from hpn.testbed.routing.pathcontrol.steering import ALSO, FORGET_NS, MAX_NAMES, SteeringAgent
from hpn.testbed.routing.pathcontrol.tor_agent import ASKS_DEPTH, TorAgent
from hpn.testbed.routing.pathcontrol.tor_view import Standing

MS = 1_000_000
S = 1000 * MS
PORTS = ("r0p0", "r0p1")
OWN, B, C = "10.0.0.9", "10.0.1.1", "10.0.1.2"
HELD = HostSettings()
AT_ONCE = HostSettings(hold_ms=0)


def agent(ports: Sequence[str] = PORTS, settings: HostSettings = AT_ONCE) -> SteeringAgent:
    made = SteeringAgent(OWN, ports, Destinations("nic", ports, settings, 0, ALSO))
    made.set_active(ports, 0)
    return made


def hear(made: SteeringAgent | MoveAndSteer, port: str, *states: tuple[str, bool], number: int, at_ns: int = 1):  # type: ignore[no-untyped-def]
    return [a for frame in encode_reach(number, states) for a in made.on_frame(port, frame, at_ns)]


def knows(*ips: str, settings: HostSettings = AT_ONCE, ports: Sequence[str] = PORTS) -> SteeringAgent:
    """An agent whose ToRs have all of these."""
    made = agent(ports, settings)
    for port in ports:
        hear(made, port, *((ip, True) for ip in ips), number=1)
        hear(made, port, *((ip, True) for ip in ips), number=2)
    return made


def steers(actions: Sequence[Action]) -> list[tuple[str, str, str | None]]:
    return [(a.dst_ip, a.from_port, a.to_port) for a in actions if isinstance(a, Steer)]


def asked(actions: Sequence[Action]) -> list[tuple[str, tuple[str, ...]]]:
    sends = [(a.port, decode(a.payload)) for a in actions if isinstance(a, Send)]
    return [(port, message.destinations) for port, message in sends if isinstance(message, Interest)]


def test_it_asks_for_everything_and_then_every_tor_about_what_one_of_them_names() -> None:
    made = SteeringAgent(OWN, PORTS, Destinations("nic", PORTS, AT_ONCE, 0, ALSO))
    assert asked(made.set_active(PORTS, 0)) == [("r0p0", (EVERYTHING,)), ("r0p1", (EVERYTHING,))]
    named = hear(made, "r0p0", (B, True), (OWN, True), number=1)
    assert asked(named) == [("r0p0", (B,)), ("r0p1", (B,))], "not about itself"
    assert hear(made, "r0p1", (B, True), number=1)[1:] == []
    due = made.deadline_ns
    assert due is not None
    assert due < 500 * MS
    assert asked(made.on_timer(due)) == [("r0p0", (EVERYTHING, B)), ("r0p1", (EVERYTHING, B))]


def test_what_a_tor_names_and_cannot_reach_is_not_learned() -> None:
    assert hear(agent(), "r0p0", (B, False), number=1) == []


def test_a_lost_destination_is_steered_to_the_other_port_and_released_when_it_is_back() -> None:
    made = knows(B, C)
    assert steers(hear(made, "r0p0", (B, False), number=3)) == [(B, "r0p0", "r0p1")]
    assert made.steered == {B: {"r0p0": "r0p1"}}
    assert steers(hear(made, "r0p0", (B, True), number=4)) == [(B, "r0p0", None)]
    assert made.steered == {}


def test_a_destination_that_both_planes_lost_is_not_steered_and_its_first_plane_back_takes_it() -> None:
    made = knows(B)
    hear(made, "r0p0", (B, False), number=3)
    assert steers(hear(made, "r0p1", (B, False), number=3)) == [(B, "r0p0", None)]
    assert steers(hear(made, "r0p0", (B, True), number=4)) == [(B, "r0p1", "r0p0")]
    assert steers(hear(made, "r0p1", (B, True), number=4)) == [(B, "r0p1", None)]


def test_a_tor_that_never_had_it_says_so_when_asked_and_it_is_steered() -> None:
    """A ToR that booted while the destination's link was away: there was nothing that it could have withdrawn."""
    made = agent()
    hear(made, "r0p1", (B, True), number=1)
    hear(made, "r0p1", (B, True), number=2)
    assert steers(hear(made, "r0p0", (B, False), number=1)) == [(B, "r0p0", "r0p1")]


def test_a_member_that_goes_takes_the_steering_to_it_along_and_one_that_returns_is_doubted_until_its_tor_speaks() -> (
    None
):
    made = knows(B, C)
    hear(made, "r0p0", (B, False), number=3)
    assert steers(made.set_active(("r0p0",), 2)) == [(B, "r0p0", None)], "there is no better one left"
    back = made.set_active(PORTS, 3)
    assert asked(back) == [("r0p1", (EVERYTHING, B, C))]
    assert sorted(steers(back)) == [(C, "r0p1", "r0p0")], "C goes where it surely is; B is nowhere for sure"
    heard = hear(made, "r0p1", (B, True), (C, True), number=1, at_ns=4)
    assert sorted(steers(heard)) == [(B, "r0p0", "r0p1"), (C, "r0p1", None)]


def test_a_flapping_destination_stays_steered_while_it_is_held() -> None:
    made = knows(B, settings=HELD)
    for number in (3, 5):
        hear(made, "r0p0", (B, False), number=number, at_ns=number * S)
        back = hear(made, "r0p0", (B, True), number=number + 1, at_ns=number * S + 1)
    assert [a for a in back if isinstance(a, Hold)] == [Hold(B, "r0p0", 1 * S)]
    assert made.steered == {B: {"r0p0": "r0p1"}}
    assert steers(made.on_timer(6 * S + 1)) == [(B, "r0p0", None)]


def test_nothing_is_released_on_a_tor_s_silence() -> None:
    made = knows(B)
    hear(made, "r0p0", (B, False), number=3)
    for second in range(1, 10):
        made.on_timer(second * S)
    assert made.steered == {B: {"r0p0": "r0p1"}}


def test_a_tor_that_starts_again_is_asked_about_everything_and_what_it_lacks_is_steered() -> None:
    made = knows(B)
    epoch = 1 << 32
    asks = made.on_frame("r0p0", encode_hello(epoch + 1), 1 * S)
    asks += made.on_timer(2 * S)
    assert ("r0p0", (EVERYTHING, B)) in asked(asks)
    assert steers(hear(made, "r0p0", (B, False), number=epoch + 2, at_ns=2 * S)) == [(B, "r0p0", "r0p1")]


def test_of_eight_ports_the_good_ones_share_what_the_bad_ones_cannot_deliver() -> None:
    ports = tuple(f"p{n}" for n in range(8))
    ips = [f"10.0.2.{n}" for n in range(40)]
    made = knows(*ips, ports=ports)
    for port in ports[:4]:
        hear(made, port, *((ip, False) for ip in ips), number=3)
    targets = [set(made.steered[ip].values()) for ip in ips]
    assert all(set(made.steered[ip]) == set(ports[:4]) for ip in ips)
    assert set().union(*targets) == set(ports[4:])


def test_a_nic_remembers_only_so_many_and_forgets_what_has_long_been_gone() -> None:
    made = agent()
    many = [f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in range(1, MAX_NAMES + 500)]
    hear(made, "r0p0", *((ip, True) for ip in many), number=1)
    assert made.state_size <= 2 * MAX_NAMES
    gone = knows(B)
    hear(gone, "r0p0", (B, False), number=3)
    hear(gone, "r0p1", (B, False), number=3)
    before = gone.state_size
    for number in range(200):
        hear(gone, "r0p0", (B, False), number=4 + number, at_ns=number * FORGET_NS // 100)
        hear(gone, "r0p1", (B, False), number=4 + number, at_ns=number * FORGET_NS // 100)
    assert gone.state_size < before
    assert asked(hear(gone, "r0p1", (B, True), number=999, at_ns=2 * FORGET_NS)), "and learns it again"


def _reaches(tor: TorAgent, *asking: str, at_ns: int = 1) -> dict[str, bool]:
    frames = [send for frame in encode_interest(500, asking) for send in tor.on_frame("h0", frame, at_ns)]
    found = [decode(send.payload) for send in frames]
    return {ip: state for message in found if isinstance(message, Reach) for ip, state in message.states}


def _tor(*ips: str) -> TorAgent:
    made = TorAgent({"h0": 100}, 1)
    routes = [RouteEvent(0, f"{ip}/32", RT_TABLE_MAIN, 12, 1, (9,), False, 32) for ip in ips]
    made.resync([LinkEvent(0, 9, "up", True, True, False)], routes, 0)
    return made


def test_a_tor_names_what_it_has_and_was_not_asked_about_without_promising_to_tell() -> None:
    tor = _tor(B, C)
    assert _reaches(tor, EVERYTHING) == {B: True, C: True}
    assert tor.state_size == 0
    assert _reaches(tor, EVERYTHING, B, OWN) == {B: True, OWN: False, C: True}
    assert tor.state_size == 2
    assert _reaches(tor, EVERYTHING) == {C: True}, "what was asked about is told when it changes"


def test_names_cost_a_host_as_many_questions_as_they_have_frames() -> None:
    tor = _tor(*(f"10.1.{n >> 8}.{n & 255}" for n in range(4 * MAX_ENTRIES)))
    frame = encode_interest(500, [EVERYTHING])[0]
    answers = [len(tor.on_frame("h0", frame, 1)) for _ in range(ASKS_DEPTH)]
    assert answers[:16] == [4] * 16
    assert answers[16:] == [0] * (ASKS_DEPTH - 16)


def test_both_ways_ask_once_and_steer_before_they_move() -> None:
    shared = Destinations("nic", PORTS, AT_ONCE, 0, ALSO)
    mover = HostAgent("nic", PORTS, AT_ONCE, lambda sport, *_: PORTS[sport % 2], 0, shared)
    made = MoveAndSteer(shared, mover, SteeringAgent(OWN, PORTS, shared))
    made.set_active(PORTS, 0)
    made.add([Connection(1, B, 4791, 0xC100)], 0)
    for port in PORTS:
        assert asked(hear(made, port, (B, True), number=1)) == []
    lost = hear(made, "r0p0", (B, False), number=2)
    kinds = [type(a) for a in lost]
    assert kinds == [Reachability, Steer, Move]
    assert mover.sport_of(1) % 2 == 1
    made.remove([1])
    assert steers(hear(made, "r0p0", (B, True), number=3)) == [(B, "r0p0", None)], "it still cares for B"


class SteeringMachine(RuleBasedStateMachine):
    """Any words in any order, ports that go and come, time: what is steered always follows from what is believed."""

    @initialize(ports=st.integers(2, 4), hold=st.sampled_from([0, 50]))
    def begin(self, ports: int, hold: int) -> None:
        self.ports = tuple(f"p{n}" for n in range(ports))
        self.ips = [f"10.0.3.{n}" for n in range(6)]
        self.now = 0
        self.destinations = Destinations("nic", self.ports, HostSettings(50, hold, 400), 0, ALSO)
        self.agent = SteeringAgent(OWN, self.ports, self.destinations)
        self.kernel: dict[tuple[str, str], str] = {}
        self.numbers = dict.fromkeys(self.ports, 0)
        self._do(self.agent.set_active(self.ports, 0))

    def _do(self, actions: Sequence[Action]) -> None:
        for each in actions:
            if isinstance(each, Steer) and each.to_port is not None:
                assert self.kernel.get((each.from_port, each.dst_ip)) != each.to_port, "nothing is done twice"
                self.kernel[each.from_port, each.dst_ip] = each.to_port
            elif isinstance(each, Steer):
                del self.kernel[each.from_port, each.dst_ip]

    @rule(
        port=st.integers(0, 3), states=st.dictionaries(st.integers(0, 5), st.booleans(), max_size=6), skip=st.booleans()
    )
    def word(self, port: int, states: dict[int, bool], skip: bool) -> None:
        name = self.ports[port % len(self.ports)]
        self.numbers[name] += 1 + skip
        for frame in encode_reach(self.numbers[name], [(self.ips[n], there) for n, there in states.items()]):
            self._do(self.agent.on_frame(name, frame, self.now))

    @rule(port=st.integers(0, 3))
    def restart(self, port: int) -> None:
        name = self.ports[port % len(self.ports)]
        self.numbers[name] = (self.numbers[name] >> 32) + 1 << 32
        self._do(self.agent.on_frame(name, encode_hello(self.numbers[name]), self.now))

    @rule(active=st.sets(st.integers(0, 3)))
    def ports_change(self, active: set[int]) -> None:
        self._do(self.agent.set_active([self.ports[n] for n in active if n < len(self.ports)], self.now))

    @rule(ms=st.sampled_from([1, 20, 60, 500, 20_000]))
    def time_passes(self, ms: int) -> None:
        end = self.now + ms * MS
        while (due := self.agent.deadline_ns) is not None and due <= end:
            self.now = max(self.now, due)
            self._do(self.agent.on_timer(self.now))
        self.now = end

    @invariant()
    def exactly_what_is_worse_is_steered_and_to_what_is_best(self) -> None:
        if not hasattr(self, "agent"):
            return
        active = self.destinations.active
        for ip in self.ips:
            standing = {port: self.destinations.standing(port, ip, self.now) for port in active}
            best = max(standing.values(), default=Standing.BAD)
            known = ip in self.agent._had_ns
            for port in self.ports:
                to = self.kernel.get((port, ip))
                if known and port in active and standing[port] < best:
                    assert to is not None, (ip, port, standing)
                    assert standing[to] == best
                    assert (to, ip) not in self.kernel, "no circle, not even a second hop"
                else:
                    assert to is None, (ip, port, standing)


TestSteeringMachine = SteeringMachine.TestCase
TestSteeringMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
