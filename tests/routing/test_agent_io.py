"""Who is heard on the wire, and in which order what an agent wants is done."""

from __future__ import annotations

from collections.abc import Sequence

from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.routing.pathcontrol.actions import Action, Hold, Move, Reachability
from hpn.testbed.routing.pathcontrol.agent_io import AgentIo

MOVE = Move(7, "10.0.1.1", 0xC000, 0xC001, "p0", "p1")
WANTED: list[Action] = [Reachability("10.0.1.1", "p0", False), Hold("10.0.1.1", "p0", 2_000_000_000), MOVE]
TOR = "02:00:00:00:00:01"


class Listener:
    """An agent that wants the same after every frame."""

    deadline_ns = None

    def __init__(self) -> None:
        self.heard: list[tuple[str, bytes]] = []

    def on_frame(self, port: str, payload: bytes, now_ns: int) -> Sequence[Action]:
        self.heard.append((port, payload))
        return WANTED

    def on_timer(self, now_ns: int) -> Sequence[Action]:
        return []


def io(agent: Listener, done: list[Event | Move], peers: dict[str, str] | None) -> AgentIo:
    return AgentIo("h", NetNs("h", -1), agent, ("p0",), done.append, done.append, peers)


def test_only_the_partner_at_the_other_end_of_a_port_is_heard() -> None:
    agent = Listener()
    at = io(agent, [], {"p0": TOR})
    at._received("p0", b"forged", "02:00:00:00:00:02")
    at._received("p1", b"elsewhere", TOR)
    at._received("p0", b"true", TOR)
    assert agent.heard == [("p0", b"true")]


def test_without_a_list_anybody_is_heard() -> None:
    agent = Listener()
    io(agent, [], None)._received("p0", b"hello", "02:00:00:00:00:02")
    assert agent.heard == [("p0", b"hello")]


def test_what_the_agent_knows_is_brought_up_to_date_before_it_decides() -> None:
    agent = Listener()
    heard: list[int] = []
    at = AgentIo("h", NetNs("h", -1), agent, ("p0",), lambda _: None, before=lambda: heard.append(len(agent.heard)))
    at._received("p0", b"hello", TOR)
    at._tick(0)
    assert heard == [0, 1]


def test_moves_are_made_before_anything_is_reported() -> None:
    done: list[Event | Move] = []
    io(Listener(), done, None)._received("p0", b"", TOR)
    assert done[0] is MOVE
    events = [event for event in done if isinstance(event, Event)]
    assert {event.kind for event in events} == {EventKind.PATH}
    assert [(e.subject, e.what) for e in events] == [("10.0.1.1", "unreachable"), ("10.0.1.1", "held"), ("7", "moved")]
    assert events[1].detail == {"port": "p0", "ms": 2000.0}


def test_it_is_known_until_when_the_longest_hold_is() -> None:
    wanted = [Hold("10.0.1.1", "p0", 2_000_000_000), Hold("10.0.1.2", "p0", 1_000_000_000)]
    at = io(Listener(), [], None)
    assert at.held_until_ns == 0
    before_ns = now_ns()
    for each in wanted:
        at.perform([each])
    assert before_ns + 2_000_000_000 <= at.held_until_ns <= now_ns() + 2_000_000_000
