"""Stacked ToRs collapse as the paper says, and only then; in a running lab they also recover."""

from __future__ import annotations

import struct

import pytest

from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.fabric.model import Stack
from hpn.testbed.fabric.spec import FabricSpec, StackSpec
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.stack import sync_packet
from hpn.testbed.lab.stack_member import Decision, Keepalive, Member, Reason, timers
from hpn.testbed.lab.state import differences, state
from tests.lab.running import Recorder, running, tiny, whole_again

MS = 1_000_000
CLOCK = timers(StackSpec())
OLD, NEW = "1", "2"
SHUT_DOWN, RETURNED, TOOK_OVER = Decision.SHUT_DOWN, Decision.RETURN, Decision.TAKE_OVER


def _member(*, primary: bool = False, version: str = OLD, booted_ns: int = 0) -> Member:
    return Member(CLOCK, version, primary, booted_ns)


def _live(
    member: Member, start_ns: int, for_ms: int, *, alive: Keepalive | None, synced: bool
) -> list[tuple[int, Decision]]:
    """Decisions by ms since the start, the peer being heard or not."""
    found = []
    for after_ms in range(0, for_ms, 100):
        now = start_ns + after_ms * MS
        if alive is not None:
            member.on_keepalive(alive, now)
        if synced:
            member.on_sync(now)
        decision = member.on_tick(now)
        if decision is not None:
            found.append((after_ms, decision))
    return found


PEER_PRIMARY = Keepalive(OLD, True, 0)
PEER_SECONDARY = Keepalive(OLD, False, 0)


def test_a_healthy_stack_decides_nothing() -> None:
    assert _live(_member(), 0, 60_000, alive=PEER_PRIMARY, synced=True) == []


def test_a_secondary_without_sync_shuts_down_while_the_primary_is_alive() -> None:
    member = _member()
    assert _live(member, 0, 3000, alive=PEER_PRIMARY, synced=False) == [(1100, SHUT_DOWN)]
    assert (member.up, member.reason) == (False, Reason.SYNC_LOST)


def test_a_secondary_takes_over_when_the_primary_is_dead_altogether() -> None:
    member = _member()
    assert _live(member, 0, 3000, alive=None, synced=False) == [(1100, TOOK_OVER)]
    assert member.up
    assert member.primary


def test_a_primary_stays_whatever_its_secondary_does() -> None:
    assert _live(_member(primary=True), 0, 3000, alive=PEER_SECONDARY, synced=False) == []


def test_a_hung_control_plane_alone_is_no_reason_to_act() -> None:
    assert _live(_member(), 0, 3000, alive=None, synced=True) == []


def test_who_shut_down_returns_when_sync_has_been_back_for_the_hold() -> None:
    member = _member()
    _live(member, 0, 3000, alive=PEER_PRIMARY, synced=False)
    assert _live(member, 3000 * MS, 600, alive=PEER_PRIMARY, synced=True) == []
    assert _live(member, 3600 * MS, 1200, alive=PEER_PRIMARY, synced=False) == []  # flapped: counts anew
    assert _live(member, 4800 * MS, 3000, alive=PEER_PRIMARY, synced=True) == [(1000, RETURNED)]


@pytest.mark.parametrize(
    ("mine_ns", "peers_ns", "primary", "goes"),
    [(5, 0, True, True), (5, 0, False, True), (0, 5, False, False), (0, 0, True, False), (0, 0, False, True)],
)
def test_of_two_versions_the_one_that_booted_later_goes(mine_ns: int, peers_ns: int, primary: bool, goes: bool) -> None:
    member = _member(primary=primary, booted_ns=mine_ns)
    decisions = _live(member, mine_ns, 500, alive=Keepalive(NEW, not primary, peers_ns), synced=True)
    assert decisions == ([(0, SHUT_DOWN)] if goes else [])
    assert member.reason is (Reason.VERSIONS if goes else None)


def test_a_primary_that_boots_leaves_the_role_to_who_has_it() -> None:
    member = _member(primary=True, booted_ns=5)
    member.on_keepalive(PEER_PRIMARY, 6)
    assert not member.primary


def test_a_member_that_stood_still_does_not_take_its_own_silence_for_the_peers() -> None:
    member = _member()
    _live(member, 0, 1000, alive=PEER_PRIMARY, synced=True)
    assert member.on_tick(60_000 * MS) is None
    assert _live(member, 60_000 * MS, 900, alive=PEER_PRIMARY, synced=False) == []


def test_a_sync_packet_is_right_ip() -> None:
    packet = sync_packet("10.1.2.3")
    total = sum(struct.unpack("!10H", packet[:20]))
    assert (total & 0xFFFF) + (total >> 16) == 0xFFFF
    assert len(packet) == struct.unpack("!H", packet[2:4])[0]


def _stacked() -> FabricSpec:
    return tiny(architecture="stacked-dual-tor", rails=1, hosts=1)


def _said(events: Recorder, since_ns: int) -> list[tuple[str, str]]:
    found: list[Event] = [e for e in events.after(since_ns, EventKind.DAEMON) if e.subject == "stack"]
    return [(event.node, event.what) for event in found]


def _gone(lab: Lab, stack: Stack) -> bool:
    """Whether the secondary has no port left but the peer link's."""
    links = [link.name for link in lab.fabric.links_of(stack.secondary) if link.name != stack.peer_link]
    return not any(lab.link_up(link) for link in links)


@pytest.mark.kernel
async def test_a_dead_data_plane_of_the_primary_takes_the_secondary_with_it_until_it_lives() -> None:
    events = Recorder()
    async with running(_stacked(), events) as lab:
        before, since = state(lab), now_ns()
        stack = lab.fabric.stacks[0]
        lab.breakage.stop_forwarding(stack.primary)
        await lab.wait_for(lambda: _gone(lab, stack), 20)
        assert lab.link_up(stack.peer_link)
        assert _said(events, since) == [(stack.secondary, "shut-down")]
        lab.breakage.start_forwarding(stack.primary)
        await lab.wait_for(lambda: (stack.secondary, "returned") in _said(events, since), 20)
        await whole_again(lab, before)


@pytest.mark.kernel
async def test_a_cut_peer_link_does_the_same() -> None:
    async with running(_stacked()) as lab:
        before = state(lab)
        stack = lab.fabric.stacks[0]
        ends = [(lab.fabric.link(stack.peer_link), stack.primary)]
        lab.breakage.ports_down(ends)
        await lab.wait_for(lambda: _gone(lab, stack), 20)
        lab.breakage.ports_up(ends)
        await lab.wait_for(lambda: not _gone(lab, stack), 20)
        await whole_again(lab, before)


@pytest.mark.kernel
async def test_a_crashed_primary_hands_over_and_comes_back_as_secondary() -> None:
    events = Recorder()
    async with running(_stacked(), events) as lab:
        before, since = state(lab), now_ns()
        stack = lab.fabric.stacks[0]
        lab.breakage.crash([stack.primary])
        await lab.wait_for(lambda: (stack.secondary, "took-over") in _said(events, since), 20)
        await lab.breakage.boot([stack.primary])
        await lab.converged(30)
        assert _said(events, since) == [(stack.secondary, "took-over")]
        assert differences(before, state(lab)) == ()


@pytest.mark.kernel
@pytest.mark.parametrize("upgraded", ["primary", "secondary"])
async def test_a_tor_that_was_upgraded_goes_down_again_until_it_has_its_old_version(upgraded: str) -> None:
    events = Recorder()
    async with running(_stacked(), events) as lab:
        before, since = state(lab), now_ns()
        tor: str = getattr(lab.fabric.stacks[0], upgraded)
        lab.stacks.reload(tor, NEW, 50 * MS)
        await lab.wait_for(lambda: (tor, "shut-down") in _said(events, since), 20)
        await lab.stacks.restore(tor)
        await whole_again(lab, before)
        assert [(node, what) for node, what in _said(events, since) if what == "shut-down"] == [(tor, "shut-down")]


@pytest.mark.kernel
async def test_a_tor_outside_a_stack_is_upgraded_without_a_word() -> None:
    events = Recorder()
    async with running(tiny(rails=1, hosts=1), events) as lab:
        before, since = state(lab), now_ns()
        lab.stacks.reload("p0.s0.t0.0", NEW, 50 * MS)
        assert lab.missing()
        await lab.wait_for(lambda: lab.tors["p0.s0.t0.0"].alive, 20)
        await lab.stacks.restore("p0.s0.t0.0")
        await whole_again(lab, before)
        assert _said(events, since) == []
