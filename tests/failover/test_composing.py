r"""Faults that may overlap, on a running lab: both have their effect, and they come off in either order.

host A ---- ToR .0 ---- Agg .0, .1 (plane 0)        two segments of one host and one rail
        \-- ToR .1 ---- Agg .0, .1 (plane 1)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest

from hpn.failover.analysis.model import EdgeKind
from hpn.failover.faults import (
    AdminDown,
    AggCrash,
    BgpReset,
    BitCorruption,
    End,
    Fault,
    HostDown,
    LinkDown,
    NicDown,
    OneWayLoss,
    PlannedFault,
    RateDrop,
    SilentDrop,
    TorControlHang,
    TorCrash,
    TorDataplaneDeath,
    TorDrain,
)
from hpn.failover.faults.compose import clash
from hpn.failover.faults.impair import Dropped
from hpn.failover.faults.moments import moments
from hpn.failover.faults.streams import Direction
from hpn.failover.inject.injector import Injector
from hpn.testbed.events import EventKind, now_ns
from hpn.testbed.kernel.nftables.nft import Nft
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.lab.breaking.impair_ingress import probe
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.state import differences, state
from tests.lab.running import Recorder, has_carrier, running, tiny, whole_again
from tests.lab.test_impair_lab import rate_of

pytestmark = pytest.mark.kernel

MS = 10**6
SPEC = tiny(hosts=1, rails=1)
HOST, NIC, LINK, TOR, AGG = "p0.s0.h0", "p0.s0.h0.r0", "p0.s0.h0.r0.0", "p0.s0.t0.0", "p0.a0.0"
UPLINK = f"{TOR}-{AGG}"

Effect = Callable[[Lab], bool]


def dark(*links: str) -> Effect:
    return lambda lab: not any(has_carrier(lab, link) for link in links)


def dead(switch: str) -> Effect:
    return lambda lab: not lab.bgp[switch].running and dark(*(link.name for link in lab.fabric.links_of(switch)))(lab)


def says(thing: str, condition: str) -> Effect:
    return lambda lab: lab.breakage.standing().get(f"{thing} of {TOR}") == condition


def drops(link: str, rule: str) -> Effect:
    def holds(lab: Lab) -> bool:
        nft = Nft(lab.wiring.namespaces[lab.fabric.link(link).upper.node])
        try:
            return rule in nft.run("list ruleset")
        finally:
            nft.close()

    return holds


def slow(link: str) -> Effect:
    return lambda lab: rate_of(lab.fabric.link(link).upper) < lab.fabric.link(link).rate_bps


@dataclass(frozen=True)
class Done:
    """A fault and what shows it."""

    fault: Fault
    effect: Effect


CUT, LOSS = Done(LinkDown(LINK), dark(LINK)), Done(SilentDrop(LINK, 0.3, Dropped.DATA), drops(LINK, "drop"))
LANES = Done(RateDrop(LINK, 0.5), slow(LINK))
CRASH = Done(TorCrash(TOR), dead(TOR))
HANG = Done(TorControlHang(TOR), says("daemons", "hung"))
DEAF = Done(TorDataplaneDeath(TOR), says("forwarding", "dead"))

PAIRS = {
    "two impairments at two actions": (LANES, LOSS),
    "two impairments at one lever": (Done(BitCorruption(LINK, 0.1), drops(LINK, "set")), LOSS),
    "an impairment and one direction": (LANES, Done(OneWayLoss(LINK, Direction.UP), drops(LINK, "drop"))),
    "a lossy link that is cut": (LOSS, CUT),
    "a slow link whose ToR dies": (LANES, CRASH),
    "a link and its NIC": (CUT, Done(NicDown(NIC), dark(LINK, f"{NIC}.1"))),
    "a link and its ToR": (CUT, CRASH),
    "a port and its host": (Done(AdminDown(LINK, End.SWITCH), dark(LINK)), Done(HostDown(HOST), dark(f"{NIC}.1"))),
    "an uplink and its ToR, which holds one end": (Done(LinkDown(UPLINK), dark(UPLINK)), CRASH),
    "a ToR and an Agg": (CRASH, Done(AggCrash(AGG), dead(AGG))),
    "both halves of a ToR": (HANG, DEAF),
    "a hung ToR that loses a link": (HANG, CUT),
    "a hung ToR that loses an Agg": (HANG, Done(AggCrash(AGG), dead(AGG))),
    "a deaf ToR that loses a link": (DEAF, CUT),
}


@pytest.mark.parametrize("what", PAIRS)
async def test_both_have_their_effect_and_come_off_in_either_order(what: str) -> None:
    one, other = PAIRS[what]
    async with running(SPEC) as lab:
        if (problem := probe(_space(lab))) is not None:
            pytest.skip(f"no nftables at a port's ingress here: {problem}")
        before = state(lab)
        for first_ms in (10, 30):
            planned = [
                PlannedFault("one", one.fault, 0, first_ms * MS),
                PlannedFault("other", other.fault, MS, 20 * MS),
            ]
            assert clash(planned[0], planned[1], lab.fabric) == ""
            injector = Injector(lab)
            left = {"one": one, "other": other}
            for moment in moments(planned):
                await injector.carry_out(moment, ())
                if moment.kind is EdgeKind.REPAIR:
                    del left[moment.due[0].planned.id]
                await lab.wait_for(partial(_is_heard_of, lab), 10)
                if len(left) == 1 or moment.due[0].planned.id == "other":
                    await lab.wait_for(partial(_all_show, lab, list(left.values())), 10)
            for done in (one, other):
                await lab.wait_for(partial(_is_gone, lab, done), 10)
            await whole_again(lab, before)


def _space(lab: Lab) -> NetNs:
    return lab.wiring.namespaces[HOST]


def _all_show(lab: Lab, done: list[Done]) -> bool:
    return all(each.effect(lab) for each in done)


def _is_heard_of(lab: Lab) -> bool:
    """Whether the lab knows the carriers that the kernel has."""
    return all(lab.link_up(link.name) == has_carrier(lab, link.name) for link in lab.fabric.links)


def _is_gone(lab: Lab, done: Done) -> bool:
    return not done.effect(lab)


@pytest.mark.parametrize(
    ("drained_ms", "dead_ms"), [((0, 300), (50, 200)), ((0, 300), (150, 400)), ((0, 200), (150, 400))]
)
async def test_a_tor_that_dies_while_it_is_drained_boots_when_both_let_go(
    drained_ms: tuple[int, int], dead_ms: tuple[int, int]
) -> None:
    async with running(SPEC) as lab:
        before = state(lab)
        planned = [
            PlannedFault(fault.KIND, fault, start * MS, (end - start) * MS)
            for fault, (start, end) in ((TorDrain(TOR, 100 * MS), drained_ms), (TorCrash(TOR), dead_ms))
        ]
        assert clash(planned[0], planned[1], lab.fabric) == ""
        injector = Injector(lab)
        *all_but_last, last = moments(planned)
        for moment in all_but_last:
            await injector.carry_out(moment, ())
        await lab.wait_for(lambda: CRASH.effect(lab), 10)
        await injector.carry_out(last, ())
        await lab.wait_for(lambda: not CRASH.effect(lab), 10)
        await whole_again(lab, before)


@pytest.mark.parametrize("beside", [SilentDrop(UPLINK, 0.3, Dropped.DATA), TorDataplaneDeath(TOR)])
async def test_a_session_is_reset_beside_a_fault_that_leaves_it_alone(beside: Fault) -> None:
    events = Recorder()
    async with running(SPEC, events) as lab:
        before = state(lab)
        planned = [PlannedFault("beside", beside, 0, 200 * MS), PlannedFault("reset", BgpReset(UPLINK), 100 * MS)]
        assert clash(planned[0], planned[1], lab.fabric) == ""
        injector = Injector(lab)
        begin, reset, end = moments(planned)
        await injector.carry_out(begin, ())
        start = now_ns()
        await injector.carry_out(reset, ())

        def mourners() -> set[str]:
            return {e.node for e in events.after(start, EventKind.BGP) if e.what == "down"}

        await lab.wait_for(lambda: mourners() == {TOR, AGG}, 10)
        await lab.converged(30)
        effect = DEAF.effect if isinstance(beside, TorDataplaneDeath) else drops(UPLINK, "drop")
        assert effect(lab)
        await injector.carry_out(end, ())
        assert not effect(lab)
        await injector.heal()
        assert differences(before, state(lab)) == ()
