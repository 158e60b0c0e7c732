"""LACP in a process of its own: what the lab is told of it, and when."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from hpn.testbed.events import Event, EventKind
from hpn.testbed.kernel import ns as namespaces
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.lag.config import LacpConfig, PortConfig
from hpn.testbed.lag.lacp_process import messages
from hpn.testbed.lag.lacp_process.main_loop import GRAIN_NS, Timers
from hpn.testbed.lag.lacp_process.messages import Active, Carrier, Entered, Freeze, Order, Stands, Start, Stop, Thaw
from hpn.testbed.lag.lacp_process.speakers import ApartSpeaker, RemoteLacp
from hpn.testbed.lag.machine import LacpSystem
from hpn.testbed.lag.speaker import SystemAt

CONFIG = LacpConfig("00:00:5e:00:01:01", key=7, independent=True)
PORTS = (PortConfig("eth0", 301), PortConfig("eth1", 302, 8))


class Orders:
    """In the place of the process: keeps what it is told."""

    def __init__(self) -> None:
        self.orders: list[Order] = []
        self.active: list[tuple[str, ...]] = []
        self.events: list[Event] = []
        apart = cast(RemoteLacp, self)
        self.speaker = ApartSpeaker(
            apart, 4, SystemAt("t0", cast(NetNs, None), CONFIG, PORTS, self.events.append, self.active.append)
        )

    def order(self, order: Order) -> None:
        self.orders.append(order)


def test_messages_are_lines_that_say_what_they_are() -> None:
    rows = messages.as_rows(LacpSystem(CONFIG, PORTS).status())
    golden = (
        (Start(4, 1), b'["Start",4,1]\n'),
        (Carrier(4, "eth0", True), b'["Carrier",4,"eth0",true]\n'),
        (Active(4, 1, ["eth0", "eth1"]), b'["Active",4,1,["eth0","eth1"]]\n'),
        (Entered(4, 1, 5, "eth0", "expired", {"key": 7}), b'["Entered",4,1,5,"eth0","expired",{"key":7}]\n'),
        (Stands(4, 1, rows), b'["Stands",4,1,[["eth0",false,[65535,"00:00:5e:00:01:01",7,255,301,71],'),
    )
    for message, line in golden:
        written = messages.encode(message)
        assert written.startswith(line)
        assert messages.decode(written.rstrip(b"\n")) == message
    made = messages.decode(messages.encode(messages.make(4, "t0", 9, CONFIG, PORTS)).rstrip(b"\n"))
    assert isinstance(made, messages.Make)
    assert messages.made(made) == (CONFIG, list(PORTS))
    assert messages.from_rows(rows) == LacpSystem(CONFIG, PORTS).status()


def test_what_a_speaker_did_in_an_earlier_life_is_not_told() -> None:
    lab = Orders()
    speaker = lab.speaker
    speaker.start()
    speaker.hear(Active(4, 1, ["eth0"]))
    speaker.stop()
    for life in (1, 2):  # sent before it was stopped, read afterwards
        speaker.hear(Active(4, life - 1, ["eth0", "eth1"]))
        speaker.hear(Entered(4, life - 1, 5, "eth0", "expired", {}))
    speaker.start()
    speaker.hear(Active(4, 1, ["eth1"]))
    assert speaker.active_ports == ()
    speaker.hear(Active(4, 3, ["eth1"]))
    speaker.hear(Entered(4, 3, 6, "eth1", "distributing", {}))
    assert lab.active == [("eth0",), ("eth1",)]
    assert lab.events == [Event(6, EventKind.LACP, "t0", "eth1", "distributing")]
    assert lab.orders == [Start(4, 1), Stop(4), Start(4, 3)]
    assert speaker.status() == LacpSystem(CONFIG, PORTS).status(), "nothing was heard of this life yet"


def test_what_a_frozen_speaker_had_decided_is_told_when_it_runs_on() -> None:
    lab = Orders()
    speaker = lab.speaker
    speaker.start()
    speaker.freeze()
    speaker.hear(Active(4, 1, ["eth0"]))
    assert (lab.active, speaker.active_ports) == ([], ("eth0",))
    speaker.thaw()
    speaker.hear(Active(4, 1, ["eth0"]))
    assert lab.active == [("eth0",)]
    assert lab.orders == [Start(4, 1), Freeze(4), Thaw(4)]


def test_timers_of_one_grain_fire_together_and_none_early() -> None:
    timers, fired = Timers(), list[int]()
    second = 10**9
    for late in (0, 1, GRAIN_NS - 1, GRAIN_NS + 1):
        timers.call_at(second + late, fired.append)
    timers.call_at(second, fired.append).cancel()
    timers.ring(second - 1)
    assert fired == []
    assert timers.wait_s(second - 1) == pytest.approx(1e-9)
    timers.ring(second)
    assert fired == [second]
    timers.ring(second + 2)
    assert fired == [second], "a grain has not passed"
    assert timers.wait_s(second + 2) == pytest.approx((GRAIN_NS - 2) / 1e9)
    timers.ring(second + GRAIN_NS)
    assert fired == [second, second + 1, second + GRAIN_NS - 1]


@pytest.mark.kernel
async def test_a_process_that_finds_no_interface_says_so_and_dies() -> None:
    space, told, died = namespaces.create("t0"), list[Event](), asyncio.Event()

    def hear(event: Event) -> None:
        told.append(event)
        if event.what == "died":
            died.set()

    apart = RemoteLacp([space], hear)
    (pid,) = apart.pids
    speaker = apart.make(SystemAt("t0", space, CONFIG, PORTS, hear))
    apart.settle()
    assert apart.trouble is None
    speaker.start()
    async with asyncio.timeout(10):
        await died.wait()
    assert apart.trouble is not None
    assert apart.trouble.startswith(f"the lab's LACP (process {pid}) died, exit code 1: OSError:")
    assert [(event.what, event.detail["pid"]) for event in told] == [("started", pid), ("died", pid)]
    assert apart.pids == frozenset()
    speaker.carrier("eth0", True)
    apart.settle()
    apart.close()


@pytest.mark.kernel
async def test_a_process_ends_with_what_was_asked_of_it_done() -> None:
    space = namespaces.create("t0")
    apart = RemoteLacp([space], lambda _event: None)
    for _ in range(3000):  # more than the socket holds
        apart.make(SystemAt("t0", space, CONFIG, PORTS, lambda _event: None))
    apart.settle()
    apart.close()
    assert (apart.trouble, apart.pids) == (None, frozenset())
