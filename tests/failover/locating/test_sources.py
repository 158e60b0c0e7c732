"""Sources: what each counts, who is named for it, and what a run without such records is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.failover.analysis.job import SpanTime
from hpn.failover.analysis.metrics.series import MessageSeries, StreamSeries
from hpn.failover.analysis.metrics.stamps import StampSeries
from hpn.failover.analysis.paths import PathAt
from hpn.failover.analysis.port_sampling import Sampled, Sampling, Series, Watched
from hpn.failover.analysis.series import Bins, SeriesFlow
from hpn.failover.locating.answer import Located, located_by
from hpn.failover.locating.known import KnownPaths, Standing
from hpn.failover.locating.methods import METHODS
from hpn.failover.locating.parts import Part, PartKind
from hpn.failover.locating.recorded import Recorded
from hpn.failover.locating.sources import SOURCES
from hpn.failover.locating.usual import unusual
from hpn.testbed.errors import InputError
from hpn.testbed.kernel.rtnetlink.qdisc import BucketReading
from hpn.traffic.transport.telemetry import ROOM
from tests.failover.locating.spines import BIN, ENDS, ROUTES, S

SECONDS = 12
BINS = Bins(0, BIN, SECONDS * 100)
SHAPE = len(ROUTES), BINS.count
FLOWS = tuple(SeriesFlow(at, f"f{at}", host, "c", 256) for at, (host, _) in enumerate(ROUTES))
OVER = np.array([[link == "t-g" for link in links].count(True) > 0 for _, links in ROUTES])
"""Flows over the link between t and g, up or down."""
LINK = Part(PartKind.LINK, "t-g")
FAULT = slice(500, 900)
"""Bins in which it is at fault."""
HOSTS = {0: "a", 1: "b", 2: "c"}


def known(part: Part = LINK) -> KnownPaths:
    paths = tuple(PathAt(0, at, "begin", 50_000, 0, 0, links) for at, (_, links) in enumerate(ROUTES))
    fault = Standing("f", "fault", FAULT.start * BIN, FAULT.stop * BIN, (part,))
    return KnownPaths(ENDS, {at: host for at, (host, _) in enumerate(ROUTES)}, paths, (fault,))


def streams(delay_us: npt.NDArray[np.uint32]) -> StreamSeries:
    packets = np.ones(SHAPE, np.uint32)
    return StreamSeries(BINS, FLOWS, packets, packets, delay_us)


def delayed(extra_us: int) -> Recorded:
    """Delays that vary by 400 us of their own, and by so much more over the link while it is at fault."""
    delay_us = np.random.default_rng(3).integers(1, 5, SHAPE).astype(np.uint32) * 100
    delay_us[OVER, FAULT] += np.uint32(extra_us)
    return Recorded(known(), BINS, streams=streams(delay_us))


def timed(slower: float) -> Recorded:
    """A job whose queue pairs are busy half of the time; over the link messages take so much longer."""
    size = np.full(SHAPE, 10_000, np.uint64)
    busy_us = np.random.default_rng(3).integers(4500, 5500, SHAPE).astype(np.uint32)
    busy_us[OVER, FAULT] = 9500
    size[OVER, FAULT] = np.uint64(19_000 / slower)
    waits = ~OVER  # they wait for the slow ones, and send as fast as ever when they do
    size[waits, FAULT] //= np.uint64(slower)
    busy_us[waits, FAULT] = (busy_us[waits, FAULT] / slower).astype(np.uint32)
    return Recorded(known(), BINS, messages=MessageSeries(BINS, FLOWS, size, busy_us))


def retransmitting(missed: int) -> Recorded:
    """A job whose queue pairs miss so many of 40 packets in every tenth bin over the link while it is at fault."""
    missing = np.zeros(SHAPE, np.uint32)
    missing[OVER, FAULT.start : FAULT.stop : 10] = missed
    return Recorded(
        known(), BINS, messages=MessageSeries(BINS, FLOWS, np.full(SHAPE, 10_000, np.uint64), retries=missing)
    )


def stamped(extra_us: int) -> Recorded:
    """Probes cross a link in 10 to 40 us, and find a wait of 80 us; over the link at fault it is so much longer."""
    dice, shape = np.random.default_rng(3), (len(FLOWS), ROOM, BINS.count)
    took_us = np.zeros(shape, np.uint32)
    wait_us = np.zeros(shape, np.uint32)
    for at, (_, links) in enumerate(ROUTES):
        hops = len(links) - 1
        took_us[at, :hops] = dice.integers(10, 41, (hops, BINS.count))
        wait_us[at, :hops] = 80
        if LINK.name in links:
            wait_us[at, links.index(LINK.name) - 1, FAULT] += np.uint32(extra_us)
    return Recorded(known(), BINS, stamps=StampSeries(BINS, FLOWS, took_us, wait_us))


def computing(extra_ms: int) -> Recorded:
    """Ranks that compute for 50 ms every 100 ms, that of b longer while it is at fault."""
    spans = []
    for iteration in range(SECONDS * 10 - 1):
        for rank in HOSTS:
            begin = iteration * S // 10
            slow = rank == 1 and FAULT.start <= begin // BIN < FAULT.stop
            took = 50 + rank % 2 + (extra_ms if slow else 0)
            spans.append(SpanTime(rank, iteration, "compute", "compute", begin, begin + took * S // 1000, 0))
            spans.append(SpanTime(rank, iteration, "all-reduce", "all-reduce", begin, begin + (rank + 1) * S // 50, 0))
            spans.append(SpanTime(rank, iteration, "optimizer", "compute", begin, begin + S // 4, 0))  # longer for all
    return Recorded(known(Part(PartKind.NODE, "b")), BINS, spans=spans, hosts=HOSTS)


def counted(drops: int) -> Recorded:
    """Ports of all switches that send 100 packets every 50 ms, of which t's towards g drops some."""
    ports = [("t", link) for link in ("a-t", "b-t", "t-g", "t-i")] + [("g", link) for link in ("t-g", "u-g")]
    found = []
    for node, link in ports:
        series = Series(Watched(node, 1, f"{node}:{link}", link, "tor up", None))
        dropped = 0
        for at in range(SECONDS * 20):
            hit = (node, link) == ("t", "t-g") and FAULT.start < at * 5 <= FAULT.stop
            dropped += drops if hit else 0
            series.append(BucketReading(at * S // 20, 1, 0, 0, dropped, 100_000 * at, 100 * at, 10**8))
        found.append(series)
    return Recorded(known(), BINS, ports=Sampled(Sampling(S // 20), found, 0))


RUNS: dict[str, tuple[Callable[[int], Recorded], int, Part]] = {
    "delay": (delayed, 900, LINK),
    "rate": (timed, 2, LINK),
    "retries": (retransmitting, 4, LINK),
    "stamps": (stamped, 80, LINK),
    "job": (computing, 20, Part(PartKind.NODE, "b")),
    "counters": (counted, 10, Part(PartKind.DIRECTION, "t-g", True)),
}
NOTHING = {"delay": 0, "rate": 1, "retries": 0, "stamps": 0, "job": 0, "counters": 0}


def answer(source: str, much: int, method: str = "likelihood") -> Located:
    return located_by(RUNS[source][0](much), source, method)


def test_every_source_but_the_first_is_tried_here() -> None:
    assert [*RUNS] == [*SOURCES][1:]
    assert [name for name, source in SOURCES.items() if not source.end_hosts] == ["counters"]


@pytest.mark.parametrize("source", RUNS)
def test_a_source_names_the_part_while_it_is_bad_and_nobody_before(source: str) -> None:
    _, much, part = RUNS[source]
    found = answer(source, much)
    ((_, score),) = found.scores
    assert score.stable_ns is not None
    assert score.stable_ns <= 3 * S // 10
    assert score.wrong == 0
    named = [each for each in found.rounds if each.accused]
    assert all(part in each.accused[0].suspect.parts for each in named[1:])
    assert named[0].at_ns > FAULT.start * BIN
    assert named[-1].at_ns < (FAULT.stop + 100) * BIN
    assert found.false_alarms == 0


@pytest.mark.parametrize("source", RUNS)
def test_a_source_names_nobody_where_nothing_is_bad(source: str) -> None:
    assert not any(each.accused for each in answer(source, NOTHING[source]).rounds)


def test_stamps_name_the_link_that_took_longer_too() -> None:
    """Nothing waits: the time was spent on the link before the stamp."""
    run = stamped(0)
    assert run.stamps is not None
    for at, (_, links) in enumerate(ROUTES):
        if LINK.name in links[:-1]:
            run.stamps.took_us[at, links.index(LINK.name), FAULT] += np.uint32(500)
    found = located_by(run, "stamps", "likelihood")
    told = [each for each in found.rounds if each.accused]
    assert told
    assert all(each.accused[0].suspect.parts[0].name == LINK.name for each in told[1:])
    assert found.false_alarms == 0


@pytest.mark.parametrize("source", RUNS)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_takes_every_source(source: str, method: str) -> None:
    """Votes do not weigh what arrived: to them c's link, which all slow paths cross as well, is as good."""
    _, much, part = RUNS[source]
    names = {str(part), part.name, f"{part.name} upwards", f"{part.name} downwards"}
    names |= {"c-u"} if method == "voting" else set()
    told = [each for each in answer(source, much, method).rounds if each.accused and each.at_ns > FAULT.start * BIN]
    assert any({str(one) for one in each.accused[0].suspect.parts} & names for each in told)


@pytest.mark.parametrize("source", SOURCES)
def test_a_run_without_such_records_is_refused_with_what_to_run(source: str) -> None:
    with pytest.raises(InputError, match=r"run |add "):
        located_by(Recorded(known(), BINS), source, "likelihood")


def test_packets_that_full_queues_drop_all_the_time_accuse_nobody_and_hide_no_fault() -> None:
    """As jobs on Slim Fly and on a torus miss packets before anything is broken, on some paths more than on others."""
    run = retransmitting(4)
    assert run.messages is not None
    assert run.messages.retries is not None
    usual = np.random.default_rng(3).binomial(40, np.linspace(0.002, 0.02, len(ROUTES))[:, None], SHAPE)
    missed = run.messages.retries + usual.astype(np.uint32)
    found = located_by(replace(run, messages=replace(run.messages, retries=missed)), "retries", "likelihood")
    ((_, score),) = found.scores
    assert score.stable_ns is not None
    assert found.false_alarms == 0
    assert not any(each.accused for each in found.rounds if each.at_ns <= FAULT.start * BIN)


def test_a_host_that_is_slow_does_not_make_its_links_suspects() -> None:
    found = answer("job", 20)
    assert {str(suspect) for suspect in found.seen.suspects.suspects} == set(HOSTS.values())
    assert found.seen.suspects.unseen == ()


@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_unusual_values_of_a_path_that_does_not_change_are_as_many_as_promised(seed: int) -> None:
    """For any distribution: with 20 values first, one of 21 later ones exceeds them all."""
    dice = np.random.default_rng(seed)
    count, first = 4000, 20
    values = [dice.pareto(1.5, count) for _ in range(60)]
    there = [np.ones(count, dtype=np.bool_)] * 60
    made, bad, healthy = unusual(values, there, 2 * S // first, room=0)
    assert healthy == pytest.approx(1 / (first + 1))
    assert sum(map(np.sum, bad)) / sum(map(np.sum, made)) == pytest.approx(healthy, rel=0.5)


def test_a_path_first_known_later_is_compared_with_its_own_first_seconds() -> None:
    value = np.concatenate([np.full(100, 9.0), np.full(300, 1.0), np.full(100, 3.0)])
    there = np.arange(500) >= 100
    made, bad, _ = unusual([value], [there], BIN, room=1.0)
    assert made[0].sum() == 400
    assert np.flatnonzero(bad[0]).tolist() == [*range(400, 500)]
