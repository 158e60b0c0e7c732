"""Speakers that leave what is said every second to their wires, held against speakers that never do.

host:eth0 --- tor0:down0, host:eth1 --- tor1:down0, in pretended time; the kernel's part is played by lists.
"""

from __future__ import annotations

import select
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from typing import cast
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.testbed.events import Event
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.packets.packet_batch import Frame
from hpn.testbed.lag import speaker as speakers
from hpn.testbed.lag.config import SECOND_NS, LacpConfig, PortConfig
from hpn.testbed.lag.lacp_process import slow_protocols as airs
from hpn.testbed.lag.lacp_process.main_loop import GRAIN_NS, Timers
from hpn.testbed.lag.lacp_process.slow_protocols import SlowProtocols
from hpn.testbed.lag.lacpdu import Lacpdu, PortInfo, PortState, encode
from hpn.testbed.lag.speaker import Speaker, SystemAt, Timer, Wire
from hpn.testbed.lag.states import Mux
from tests.lag.wire import DELAY_NS

HOST, TOR = LacpConfig("02:00:00:00:00:01", 1), LacpConfig("00:00:5e:00:01:01", 1)
CABLES = {("host", 1): ("tor0", 1), ("host", 2): ("tor1", 1)}
PEERS = CABLES | {far: near for near, far in CABLES.items()}
PORTS = {("host", 1): "eth0", ("host", 2): "eth1", ("tor0", 1): "down0", ("tor1", 1): "down0"}
STEP_NS = 5_000_000
MARKER = bytes([2, 1, 1, 16]) + bytes(106)


@dataclass
class World:
    """Nodes and cables. Time moves in ``run``."""

    resting: bool
    now: int = 7 * SECOND_NS
    timers: Timers = field(default_factory=Timers)
    inboxes: dict[str, list[tuple[int, bytes]]] = field(default_factory=dict)
    silent: set[tuple[str, int]] = field(default_factory=set)
    sent: list[tuple[int, str, int, bytes]] = field(default_factory=list)
    events: list[tuple[str, Event]] = field(default_factory=list)
    flushing: list[SlowProtocols] = field(default_factory=list)
    nodes: dict[str, Node] = field(default_factory=dict)

    def call_at(self, at_ns: int, call: object) -> Timer:
        return self.timers.call_at(at_ns, call)  # type: ignore[arg-type]

    def flush_soon(self, air: SlowProtocols) -> None:
        self.flushing.append(air)

    def carry(self, node: str, frame: Frame) -> None:
        self.sent.append((self.now, node, frame.ifindex, frame.payload))
        if (node, frame.ifindex) not in self.silent:
            far, ifindex = PEERS[node, frame.ifindex]
            self.inboxes[far].append((ifindex, frame.payload))

    def run(self, seconds: float) -> None:
        end = self.now + round(seconds * SECOND_NS)
        while self.now < end:
            self.now += STEP_NS
            for node in self.nodes.values():
                node.air.read()
            self.timers.ring(self.now)
            while self.flushing:
                self.flushing.pop().flush()

    def rests(self) -> Counter[str]:
        """How many ports of each node are at rest."""
        return Counter({name: len(node.air._resting) for name, node in self.nodes.items()})


@dataclass
class Batch:
    """In the place of ``PacketBatch``."""

    world: World
    name: str
    socket: mock.Mock = field(default_factory=mock.Mock)

    def listen(self, ifindex: int) -> None:
        pass

    def send(self, frames: list[Frame]) -> None:
        for frame in frames:
            self.world.carry(self.name, frame)

    def receive(self) -> list[tuple[int, bytes]]:
        found, self.world.inboxes[self.name] = self.world.inboxes[self.name], []
        return found


class Node:
    """A node with one speaker; what it runs in."""

    def __init__(self, world: World, name: str, config: LacpConfig, place: int) -> None:
        self.world, self.name, self.place = world, name, place
        world.inboxes[name], world.nodes[name] = [], self
        space = mock.Mock(spec=NetNs, entered=nullcontext, node=name)
        self.air = SlowProtocols(cast(NetNs, space), cast(select.epoll, mock.Mock()), world)
        ports = [PortConfig(port, 300 * place + at) for (node, at), port in PORTS.items() if node == name]
        self.speaker = Speaker(
            SystemAt(name, cast(NetNs, space), config, ports, lambda event: world.events.append((name, event))), self
        )
        if not world.resting:
            self.speaker._rest = lambda: None  # type: ignore[method-assign]

    def open(self, ns: NetNs, interface: str, on_frame: object) -> Wire:
        return self.air.open(interface, on_frame)  # type: ignore[arg-type]

    def call_at(self, at_ns: int, call: object) -> Timer:
        return self.world.call_at(at_ns, call)

    def beat_ns(self, _ns: NetNs) -> int:
        return 125_000_000 * self.place

    def moved(self) -> None:
        pass


def _world(*, resting: bool) -> World:
    world = World(resting)
    for place, (name, config) in enumerate({"host": HOST, "tor0": TOR, "tor1": TOR}.items()):
        Node(world, name, config, place)
    return world


def _play(world: World, steps: list[tuple[str, str, float]]) -> None:
    """Converge, then take steps: what is done, where, and how long it then takes."""

    def index(interface: str) -> int:
        return {"eth0": 1, "eth1": 2, "down0": 1}[interface]

    def now_ns() -> int:
        return world.now

    def batch(space: NetNs, *_: object) -> Batch:
        return Batch(world, space.node)  # type: ignore[attr-defined]

    with (
        mock.patch.object(airs, "PacketBatch", batch),
        mock.patch("socket.if_nametoindex", index),
        mock.patch.object(airs, "close_soon"),
        mock.patch.object(airs, "now_ns", now_ns),
        mock.patch.object(speakers, "now_ns", now_ns),
    ):
        for node in world.nodes.values():
            node.speaker.start()
        for name, at in PORTS:
            world.nodes[name].speaker.carrier(PORTS[name, at], True)
        world.run(9)
        for what, where, seconds in steps:
            _do(world, what, where)
            world.run(seconds)


def _do(world: World, what: str, where: str) -> None:
    speaker, end = world.nodes[where].speaker, (where, 1)
    match what:
        case "mute":
            world.silent.add(end)
        case "unmute":
            world.silent.discard(end)
        case "down" | "up":
            for node, at in (end, PEERS[end]):
                world.nodes[node].speaker.carrier(PORTS[node, at], what == "up")
        case "refuse" | "accept":
            speaker.refuse(what == "refuse")
        case "freeze":
            speaker.freeze()
        case "thaw":
            speaker.thaw()
        case "restart":
            speaker.start()
            speaker.carrier(PORTS[end], True)
        case "marker":
            world.inboxes[where].append((1, MARKER))
        case "stranger":
            other = PortInfo(1, "02:00:00:00:00:99", 9, 9, 9, PortState(0x3F))
            world.inboxes[where].append((1, encode(Lacpdu(other, other))))


def _told(world: World) -> dict[tuple[str, str], list[tuple[str, int]]]:
    told: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for name, event in world.events:
        told.setdefault((name, event.subject), []).append((event.what, event.at_ns))
    return told


_STEPS = st.tuples(
    st.sampled_from(
        ["mute", "unmute", "down", "up", "refuse", "accept", "freeze", "thaw", "restart", "marker", "stranger", "none"]
    ),
    st.sampled_from(["host", "tor0", "tor1"]),
    st.sampled_from([0.01, 0.4, 1.7, 3.3, 6.0]),
)


@settings(max_examples=8)
@given(st.lists(_STEPS, max_size=6))
def test_speakers_that_rest_do_what_those_do_that_never_rest(steps: list[tuple[str, str, float]]) -> None:
    thawed = {"thaw": set[str](), "freeze": set[str]()}
    steps = [step for step in steps if step[0] not in thawed or _possible(step, thawed["freeze"])]
    quick, thorough = _world(resting=True), _world(resting=False)
    for world in (quick, thorough):
        _play(world, steps)
    ours, theirs = _told(quick), _told(thorough)
    assert ours.keys() == theirs.keys()
    for port, changes in ours.items():
        assert [what for what, _ in changes] == [what for what, _ in theirs[port]]
        for (_, at), (_, other) in zip(changes, theirs[port], strict=True):
            assert abs(at - other) <= 3 * GRAIN_NS
    assert [node.speaker.status() for node in quick.nodes.values()] == [
        node.speaker.status() for node in thorough.nodes.values()
    ]
    assert abs(len(quick.sent) - len(thorough.sent)) <= 4


def _possible(step: tuple[str, str, float], frozen: set[str]) -> bool:
    """Only what is frozen thaws, only what is not freezes."""
    what, where, _ = step
    possible = (where in frozen) == (what == "thaw")
    if possible:
        frozen ^= {where}
    return possible


def test_a_converged_lab_rests_and_says_what_it_said_once_a_second() -> None:
    world = _world(resting=True)
    _play(world, [("none", "host", 5.0)])
    assert world.rests() == {"host": 2, "tor0": 1, "tor1": 1}
    assert all(
        port.mux is Mux.COLLECTING_DISTRIBUTING for node in world.nodes.values() for port in node.speaker.status()
    )
    last = [(name, ifindex) for at, name, ifindex, _ in world.sent if at > world.now - 5 * SECOND_NS]
    assert Counter(last) == dict.fromkeys(PORTS, 5)
    assert not [event for _, event in world.events if event.at_ns > world.now - 5 * SECOND_NS]


def test_a_port_is_never_later_than_a_second_and_keeps_to_its_beat_once_it_carries_traffic() -> None:
    world = _world(resting=False)
    _play(world, [("none", "host", 5.0)])
    for place, end in ((0, ("host", 1)), (1, ("tor0", 1)), (2, ("tor1", 1))):
        times = [at for at, name, ifindex, _ in world.sent if (name, ifindex) == end]
        gaps = [later - at for at, later in pairwise(times)]
        assert max(gaps) <= SECOND_NS + 2 * GRAIN_NS
        assert all((at - 125_000_000 * place) % SECOND_NS <= 2 * GRAIN_NS for at in times[-5:])


def test_a_partner_that_falls_silent_is_given_up_after_three_seconds() -> None:
    world = _world(resting=True)
    _play(world, [("mute", "tor0", 4.0)])
    heard = max(at for at, name, _, _ in world.sent if name == "tor0" and at <= world.now - 4 * SECOND_NS)
    (at,) = [
        event.at_ns for name, event in world.events if (name, event.what) == ("host", "expired") and event.at_ns > heard
    ]
    assert 3 * SECOND_NS <= at - heard <= 3 * SECOND_NS + 4 * GRAIN_NS + DELAY_NS
    assert world.nodes["host"].speaker.active_ports == ("eth1",)
