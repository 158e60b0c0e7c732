"""A switch whose data plane lags behind BGP announces what it cannot forward, unless its reload delay outlasts that."""

from __future__ import annotations

import pytest

from hpn.testbed.events import EventKind, now_ns
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.state import state
from tests.lab.running import Recorder, ping, running, tiny, whole_again

pytestmark = pytest.mark.kernel

TOR, AGG, HOST = "p0.s0.t0.0", "p0.a0.0", "p0.s0.h0"
LAG_MS = 2000


def _behind(lab: Lab) -> bool:
    return TOR in lab.breakage.fib.behind


def _fib(recorder: Recorder, node: str) -> list[tuple[int, str]]:
    return [(event.at_ns, event.what) for event in recorder if (event.node, event.subject) == (node, "fib")]


def _first_session_ns(recorder: Recorder, node: str, since_ns: int) -> int:
    sessions = recorder.after(since_ns, EventKind.BGP, node)
    return next(event.at_ns for event in sessions if event.what == "established")


async def _reboot(lab: Lab, switch: str) -> int:
    lab.breakage.crash([switch])
    await lab.wait_for(lambda: not lab.bgp[switch].running, 10)
    at_ns = now_ns()
    await lab.breakage.boot([switch])
    return at_ns


async def test_without_reload_delay_a_tor_draws_traffic_that_it_drops() -> None:
    recorder = Recorder()
    spec = tiny(lag="nft", bgp={"fib_lag_ms": LAG_MS}, lacp={"reload_delay_s": 0})
    async with running(spec, recorder) as lab:
        before, nic = state(lab), lab.fabric.nic(f"{HOST}.r0")
        at_ns = await _reboot(lab, TOR)
        await lab.wait_for(lambda: lab.nics[nic.name].active == (0, 1), 10)
        await lab.wait_for(lambda: f"{nic.ip}/32" in lab.watcher.routes(AGG), 10)
        assert _behind(lab), "announced to the fabric and in the LAG, before the data plane has a route"
        assert [gap.where for gap in lab.missing() if "fib_lag_ms" in gap.text] == [TOR]
        assert "forwarding of p0.s0.t0.0" in lab.breakage.standing()
        await whole_again(lab, before)
        (_, first), (programmed_ns, last) = _fib(recorder, TOR)
        assert (first, last) == ("behind", "programmed")
        lag_ms = (programmed_ns - _first_session_ns(recorder, TOR, at_ns)) / 1e6
        assert LAG_MS <= lag_ms < LAG_MS + 500
        assert "ttl=" in ping(lab, HOST, lab.fabric.nic("p0.s1.h0.r0").ip)


@pytest.mark.parametrize(("delay_s", "outlasts"), [(30, True), (1, False)])
async def test_a_reload_delay_protects_if_it_outlasts_the_lag(delay_s: int, outlasts: bool) -> None:
    recorder = Recorder()
    spec = tiny(lag="nft", bgp={"fib_lag_ms": LAG_MS}, lacp={"reload_delay_s": delay_s})
    async with running(spec, recorder) as lab:
        before = state(lab)
        at_ns = await _reboot(lab, TOR)
        await whole_again(lab, before)
        released = next(e.at_ns for e in recorder if e.at_ns > at_ns and e.subject == "lacp" and e.what == "released")
        (programmed_ns, _) = _fib(recorder, TOR)[-1]
        assert (released >= programmed_ns) is outlasts


async def test_an_agg_lags_too_and_a_crash_in_between_starts_anew() -> None:
    recorder = Recorder()
    async with running(tiny(bgp={"fib_lag_ms": LAG_MS}), recorder) as lab:
        before = state(lab)
        await _reboot(lab, AGG)
        await lab.wait_for(lambda: bool(lab.bgp[AGG].established), 10)
        assert lab.breakage.fib.behind == (AGG,)
        await _reboot(lab, AGG)
        await whole_again(lab, before)
        assert [what for _, what in _fib(recorder, AGG)] == ["behind", "behind", "programmed"]


async def test_forwarding_that_died_stays_dead_when_the_lag_ends() -> None:
    async with running(tiny(bgp={"fib_lag_ms": 100})) as lab:
        before = state(lab)
        lab.breakage.stop_forwarding(AGG)
        await _reboot(lab, AGG)
        await lab.wait_for(lambda: bool(lab.bgp[AGG].established) and not lab.breakage.fib.behind, 20)
        assert lab.breakage.standing() == {f"forwarding of {AGG}": "dead"}
        lab.breakage.start_forwarding(AGG)
        await whole_again(lab, before)


async def test_without_a_lag_nothing_lags() -> None:
    recorder = Recorder()
    async with running(tiny(), recorder) as lab:
        before = state(lab)
        await _reboot(lab, TOR)
        await whole_again(lab, before)
        assert _fib(recorder, TOR) == []
