"""The injector on a running lab: several faults at one instant, faults of several steps, and healing from anywhere."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from hpn.failover.analysis.model import EdgeKind
from hpn.failover.faults import (
    AdminDown,
    End,
    FlapStorm,
    LinkDown,
    PlannedFault,
    TorControlHang,
    TorDataplaneDeath,
    TorDrain,
)
from hpn.failover.faults.moments import moments
from hpn.failover.inject.injector import Injector
from hpn.testbed.events import EventKind
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.state import state
from tests.lab.running import Recorder, running, tiny, whole_again

pytestmark = pytest.mark.kernel

MS = 10**6
ONE, TWO = "p0.s0.h0.r0.0", "p0.s1.h1.r1.1"
TOR = "p0.s0.t0.0"


async def test_two_links_cut_at_one_instant_are_one_edge_with_a_measured_skew() -> None:
    events = Recorder()
    async with running(tiny(), events) as lab:
        before = state(lab)
        injector = Injector(lab)
        down, up = moments([PlannedFault(name, LinkDown(link), 0, MS) for name, link in (("a", ONE), ("b", TWO))])
        ways, answers = {7: ["x", ONE], 8: ["x"], 9: [TWO]}, {7: [TWO], 8: ["y", TWO], 9: ["y"]}
        cut = await injector.carry_out(down, (), ways=ways, ack_ways=answers)
        assert (cut.crossed, cut.acks_crossed, cut.only_acks_crossed) == ((7, 9), (7, 8), (8,))
        assert (cut.faults, cut.label) == (("a", "b"), "a+b failure 0")
        assert {link.name for link in cut.links} == {ONE, TWO}
        assert cut.inject_before_ns < cut.inject_after_ns
        told = [(e.subject, e.what, e.at_ns) for e in events if e.kind is EventKind.FAULT]
        assert told == [
            (name, what, at_ns)
            for name in ("a", "b")
            for what, at_ns in (("inject", cut.inject_before_ns), ("injected", cut.inject_after_ns))
        ]
        await lab.wait_for(lambda: not (lab.link_up(ONE) or lab.link_up(TWO)), 10)
        mended = await injector.carry_out(up, ())
        assert (mended.crossed, mended.acks_crossed, mended.only_acks_crossed) == (None, None, ())
        assert (mended.kind, mended.faults) == (EdgeKind.REPAIR, ("a", "b"))
        await whole_again(lab, before)
        assert injector.edges == [cut, mended]


async def test_a_drain_goes_through_its_steps_and_one_repair_undoes_them_all() -> None:
    async with running(tiny()) as lab:
        before = state(lab)
        injector = Injector(lab)
        watcher = lab.watcher
        withdraw, leave, crash, boot = moments([PlannedFault("drain", TorDrain(TOR, 100 * MS), 0, 200 * MS)])
        await injector.carry_out(withdraw, ())
        await lab.wait_for(lambda: "10.0.0.1/32" not in watcher.routes("p0.s1.t0.0"), 10)
        await injector.carry_out(leave, ())
        await lab.wait_for(lambda: lab.nics["p0.s0.h0.r0"].active == (1,), 10)
        await injector.carry_out(crash, ())
        await lab.wait_for(lambda: not lab.bgp[TOR].running, 10)
        await injector.carry_out(boot, ())
        await whole_again(lab, before)


def _are_down(lab: Lab, links: set[str]) -> bool:
    return links == {link.name for link in lab.fabric.links if not lab.link_up(link.name)}


async def test_each_flap_of_a_storm_takes_one_link_and_gives_it_back() -> None:
    async with running(tiny()) as lab:
        before = state(lab)
        injector = Injector(lab)
        storm = FlapStorm("plane0", 40 * MS, 60 * MS, 200 * MS).on(lab.fabric)
        down: set[str] = set()
        for moment in moments([PlannedFault("storm", storm, 0)]):
            edge = await injector.carry_out(moment, ())
            hit = {link.name for link in edge.links}
            assert len(hit) == len(moment.due)
            down = down | hit if moment.kind is EdgeKind.FAILURE else down - hit
            await lab.wait_for(partial(_are_down, lab, down), 10)
        assert not down
        await whole_again(lab, before)


async def test_whatever_stands_when_a_drill_stops_is_healed_last_first() -> None:
    events = Recorder()
    async with running(tiny(), events) as lab:
        before = state(lab)
        injector = Injector(lab)
        planned = [
            PlannedFault("shut", AdminDown("p0.s1.h0.r0.1", End.SWITCH), 0),
            PlannedFault("hang", TorControlHang("p0.s1.t1.0"), 1),
            PlannedFault("mmu", TorDataplaneDeath("p0.s0.t1.1"), 2),
            PlannedFault("drain", TorDrain(TOR, 100 * MS), 3),
        ]
        for moment in moments(planned):
            await injector.carry_out(moment, ())
        assert state(lab)[f"daemons of {TOR}"] == "dead"
        # A host that does not notice the loss of its port does not announce itself when the port is back.
        await lab.wait_for(lambda: lab.nics["p0.s1.h0.r0"].active == (0,), 10)
        await injector.heal()
        healed = [e.subject for e in events if e.what == "healed"]
        assert healed == ["drain", "drain", "drain", "mmu", "hang", "shut"]
        await whole_again(lab, before)


async def test_what_cannot_be_undone_keeps_nothing_else_broken() -> None:
    events = Recorder()
    async with running(tiny(), events) as lab:
        injector = Injector(lab)
        planned = [PlannedFault("cut", LinkDown(ONE), 0), PlannedFault("mmu", TorDataplaneDeath("p0.s0.t1.1"), 1)]
        for moment in moments(planned):
            await injector.carry_out(moment, ())

        async def refuse() -> None:
            raise OSError("the kernel will not")

        mmu = ("mmu", planned[1].fault)
        injector._broken[mmu] = replace(injector._broken[mmu], undo=refuse)
        with pytest.raises(OSError, match="the kernel will not"):
            await injector.heal()
        assert [e.subject for e in events if e.what == "healed"] == ["cut"]
        assert lab.link_up(ONE)
