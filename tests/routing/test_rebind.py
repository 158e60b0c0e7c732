"""The agent that binds queue pairs to other ports, and what the one by source ports can do where adapters bind."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hpn.testbed.routing.pathcontrol.actions import Action, Move, Rebind, Stuck
from hpn.testbed.routing.pathcontrol.destinations import Destinations, HostSettings
from hpn.testbed.routing.pathcontrol.host_agent import Connection, HostAgent, port_instead
from hpn.testbed.routing.pathcontrol.message import encode_reach
from hpn.testbed.routing.pathcontrol.rebind import RebindAgent
from tests.routing.test_host_agent import PORTS, B, C, parity

ZERO, ONE = PORTS
PAIRS = [
    Connection(1, B, 4791, 0xC100, ZERO),
    Connection(2, B, 4791, 0xC102, ONE),
    Connection(3, C, 4791, 0xC104, ZERO),
]

_ACTIVE = st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), *2 * [st.sets(st.integers(0, n - 1))]))


def rebinding(*connections: Connection) -> RebindAgent:
    made = RebindAgent(PORTS, Destinations("p0.s0.h0.r0", PORTS, HostSettings()))
    made.set_active(PORTS, 0)
    made.add(connections, 0)
    return made


def hear(made: RebindAgent | HostAgent, port: str, *states: tuple[str, bool], number: int = 1) -> list[Action]:
    return [a for frame in encode_reach(number, states) for a in made.on_frame(port, frame, 1)]


def rebinds(actions: list[Action]) -> list[tuple[int, str, str]]:
    return [(a.connection, a.from_port, a.to_port) for a in actions if isinstance(a, Rebind)]


def test_exactly_the_queue_pairs_of_the_lost_plane_are_bound_to_the_other_port_and_come_home() -> None:
    made = rebinding(*PAIRS)
    assert rebinds(hear(made, ZERO, (B, False), (C, True))) == [(1, ZERO, ONE)]
    assert rebinds(hear(made, ZERO, (B, True), number=2)) == [(1, ONE, ZERO)]
    assert made.bound_to(1) == ZERO


def test_the_loss_of_its_own_port_is_left_to_the_adapter_and_the_other_port_is_then_no_help() -> None:
    made = rebinding(*PAIRS)
    hear(made, ONE, (B, True), (C, True))
    assert rebinds(made.set_active((ONE,), 2)) == []
    assert rebinds(hear(made, ONE, (B, False), number=2)) == [], "there is no other port"


def test_a_queue_pair_that_no_adapter_bound_is_left_alone() -> None:
    assert rebinds(hear(rebinding(Connection(1, B, 4791, 0xC100)), ZERO, (B, False))) == []


def test_no_source_port_moves_a_bound_queue_pair_which_is_told_once_and_none_is_tried() -> None:
    made = HostAgent("p0.s0.h0.r0", PORTS, HostSettings(), parity)
    made.set_active(PORTS, 0)
    made.add(PAIRS, 0)
    told = [a for a in hear(made, ZERO, (B, False)) if isinstance(a, Move | Stuck)]
    assert told == [Stuck(1, B, 0xC100, ZERO, 0)]
    assert made.sport_of(2) == 0xC102, "an even source port, which the hash would send by the lost plane"
    assert not [a for a in made.look_at_all(2) if isinstance(a, Move | Stuck)]


@given(_ACTIVE)
def test_an_adapter_keeps_an_active_port_and_takes_an_active_one_instead(case: tuple[int, set[int], set[int]]) -> None:
    count, ports, active = case
    for port in ports:
        instead = port_instead(port, range(count), sorted(active))
        assert instead == port if port in active or not active else instead in active
