"""Answers over time: when a fault is told, how long an answer stands, and what counts as wrong."""

from __future__ import annotations

import numpy as np
import pytest

from hpn.failover.analysis.metrics.series import StreamSeries
from hpn.failover.analysis.paths import PathAt
from hpn.failover.analysis.series import Bins, SeriesFlow
from hpn.failover.locating.answer import Located, located
from hpn.failover.locating.known import KnownPaths, Standing
from hpn.failover.locating.observed import Observed
from hpn.failover.locating.parts import Part, PartKind, suspects_of, ways_of
from hpn.failover.locating.rerouted import REROUTED
from hpn.failover.locating.rounds import rounds, score, still_there, truths
from hpn.failover.locating.seen import Accused
from tests.failover.locating.spines import BIN, ENDS, ROUTES, S

UP = Part(PartKind.DIRECTION, "t-g", True)
SECONDS = 20


def answer(lost_from: float, lost_until: float, share: float, moves_at: float | None = None) -> Located:
    """Of 10 packets a bin on each path, of which those over UP lose a share for some seconds.

    ``moves_at``: second from which its flows take the other spine.
    """
    bins = Bins(0, BIN, SECONDS * 100)
    shape = len(ROUTES), bins.count
    sent = np.full(shape, 10, np.uint32)
    lost = np.zeros(shape, np.uint32)
    paths = []
    for flow, (_, links) in enumerate(ROUTES):
        paths.append(PathAt(0, flow, "begin", 50_000, 0, 0, links))
        if links[1:3] != ("t-g", "u-g"):
            continue
        end = lost_until if moves_at is None else moves_at
        lost[flow, int(lost_from * 100) : int(end * 100)] = round(10 * share)
        if moves_at is not None:
            paths.append(PathAt(int(moves_at * S), flow, "looked", 50_000, 0, 0, (links[0], "t-i", "u-i", links[3])))
    flows = tuple(SeriesFlow(at, f"f{at}", host, "c", 256) for at, (host, _) in enumerate(ROUTES))
    series = StreamSeries(bins, flows, sent, sent - lost, np.zeros(shape, np.uint32))
    fault = Standing("hole", "one-way-loss t-g", int(lost_from * S), int(lost_until * S), (UP,))
    hosts = {at: host for at, (host, _) in enumerate(ROUTES)}
    return located(KnownPaths(ENDS, hosts, tuple(paths), (fault,)), series, "likelihood")


def test_a_fault_is_told_within_two_answers_and_over_soon_after_its_repair() -> None:
    found = answer(5, 10, 0.5)
    ((_, score),) = found.scores
    assert (score.first_ns, score.stable_ns, score.wrong) == (S // 10, S // 10, 0)
    assert score.lost == 2 * 500 * 5, "two paths, half of ten packets a bin for five seconds"
    told = [each.at_ns / S for each in found.rounds if each.accused]
    assert told[0] == pytest.approx(5.1)
    assert told[-1] < 10.6
    assert found.false_alarms == 0


def test_an_answer_stands_when_routes_lead_round_the_fault() -> None:
    found = answer(5, 15, 1.0, moves_at=7)
    ((_, score),) = found.scores
    assert (score.stable_ns, score.wrong) == (S // 10, 0)
    assert found.rounds[-1].accused, "nobody has crossed it since"
    assert found.false_alarms == 0, "it names what did fail"


@pytest.mark.parametrize(
    ("part", "is_right"),
    [
        (UP, True),
        (Part(PartKind.DIRECTION, "u-g", False), True),  # on the same paths: nobody can tell it from UP
        (Part(PartKind.DIRECTION, "t-g", False), False),
        (Part(PartKind.LINK, "u-i"), False),
        (Part(PartKind.NODE, "t"), False),
    ],
)
def test_an_answer_is_right_if_its_first_suspect_holds_the_fault(part: Part, is_right: bool) -> None:
    found = answer(5, 10, 0.5)
    got = score(found.rounds, truths(found.seen, (part,)), 5 * S, 10 * S)
    assert (got.first_ns is not None, got.wrong == 0) == (is_right, is_right)


def test_losses_of_one_packet_accuse_nobody() -> None:
    found = answer(5, 5.01, 0.1)
    assert not any(each.accused for each in found.rounds)


def test_an_older_fault_of_one_percent_is_not_named_again_when_lacp_leads_round_a_newer_one() -> None:
    """A link to a host loses 1 % until it is mended; then one to another host loses all until its port is taken out."""
    bins = Bins(0, BIN, SECONDS * 100)
    sent = np.full((len(ROUTES), bins.count), 4, np.uint32)
    lost = np.zeros_like(sent)
    old, new = Part(PartKind.DIRECTION, "b-t", True), Part(PartKind.DIRECTION, "a-t", False)
    for flow in (2, 3, 5):  # from b
        lost[flow, 200 + flow : 1000 : 75] = 1
    for flow in (5, 6):  # to a
        lost[flow, 1200:1450] = 4
    paths = [PathAt(0, flow, "begin", 50_000, 0, 0, links) for flow, (_, links) in enumerate(ROUTES)]
    paths += [PathAt(int(14.5 * S), flow, REROUTED, 50_000, 0, 0) for flow in (5, 6)]
    flows = tuple(SeriesFlow(at, f"f{at}", host, "c", 256) for at, (host, _) in enumerate(ROUTES))
    faults = (
        Standing("old", "one-way-loss b-t", 2 * S, 10 * S, (old,)),
        Standing("new", "one-way-loss a-t", 12 * S, 17 * S, (new,)),
    )
    hosts = {at: host for at, (host, _) in enumerate(ROUTES)}
    series = StreamSeries(bins, flows, sent, sent - lost, np.zeros_like(sent))
    found = located(KnownPaths(ENDS, hosts, tuple(paths), faults), series, "likelihood")
    (_, first), (_, second) = found.scores
    assert first.stable_ns is not None
    assert second.wrong == 0
    assert second.stable_ns == S // 10
    after = [each for each in found.rounds if each.at_ns > int(14.6 * S)]
    assert all(new in each.accused[0].suspect.parts for each in after), "nobody has crossed it since"


def test_losses_of_a_newer_fault_on_the_same_paths_do_not_keep_an_older_one_alive() -> None:
    bins = Bins(0, BIN, SECONDS * 100)
    sent = np.full((len(ROUTES), bins.count), 4)
    lost = np.zeros_like(sent)
    for flow in (2, 3, 5):  # from b, until 10 s
        lost[flow, flow:1000:25] = 1
    for flow in range(4):  # to c, from then on
        lost[flow, 1000 + flow :: 3] = 1
    seen = Observed.of(bins, suspects_of(ENDS, [ways_of(ENDS, *route) for route in ROUTES]), list(sent), list(lost))
    parts = Part(PartKind.DIRECTION, "b-t", True), Part(PartKind.DIRECTION, "c-u", False)
    old, new = (seen.suspects.of(part) for part in parts)
    assert old is not None
    assert new is not None
    accused = Accused(old, 0.01, 1.0), Accused(new, 0.08, 1.0)
    assert still_there(seen, accused, range(0, 1000, 10)) == accused[:1], "nothing was lost on the way to c yet"
    assert still_there(seen, accused, range(0, bins.count, 10)) == accused[1:]
    answers = [still_there(seen, accused, range(0, end, 10)) for end in range(1000, bins.count, 10)]
    assert accused[::-1] in answers, "who has most likely ended is named last"


def test_how_long_a_window_was_healthy_before_a_fault_does_not_matter_to_its_end() -> None:
    bins = Bins(0, BIN, SECONDS * 100)
    sent = np.full((len(ROUTES), bins.count), 4)
    lost = np.zeros_like(sent)
    for flow in (2, 3, 5):  # from b, between 8 s and 10 s
        lost[flow, 800 + flow : 1000 : 25] = 1
    seen = Observed.of(bins, suspects_of(ENDS, [ways_of(ENDS, *route) for route in ROUTES]), list(sent), list(lost))
    part = seen.suspects.of(Part(PartKind.DIRECTION, "b-t", True))
    assert part is not None

    def over_at(begin: int) -> int:
        ends = range(1010, bins.count, 10)
        losses = seen.between(begin, bins.count)
        shares = {end: losses.lost.sum() / seen.between(begin, end).sent[[2, 3, 5]].sum() for end in ends}
        return next(
            end for end in ends if not still_there(seen, [Accused(part, shares[end], 1.0)], range(begin, end, 10))
        )

    assert over_at(0) == pytest.approx(over_at(800), abs=20)


def test_losses_that_nobody_could_explain_are_left_out_once_they_are_over() -> None:
    """One path alone loses everything for 5 s: several parts may be at fault. A second later a link loses a tenth."""
    bins = Bins(0, BIN, SECONDS * 100)
    sent = np.full((len(ROUTES), bins.count), 4)
    lost = np.zeros_like(sent)
    lost[0, 200:700] = 4
    for flow in (2, 3, 5):  # from b
        lost[flow, 800 + flow :: 3] = 1
    seen = Observed.of(bins, suspects_of(ENDS, [ways_of(ENDS, *route) for route in ROUTES]), list(sent), list(lost))
    told = [each for each in rounds(seen, "likelihood") if each.at_ns > 8.5 * S]
    assert all(Part(PartKind.DIRECTION, "b-t", True) in each.accused[0].suspect.parts for each in told)
    assert all(len(each.accused) == 1 for each in told)


def test_a_fault_that_has_just_begun_shows_among_bad_observations_of_healthy_paths() -> None:
    """And losses of two links are weighed together from the first on, not in the shortest window that names one."""
    bins = Bins(0, BIN, SECONDS * 100)
    dice = np.random.default_rng(3)
    sent = np.full((len(ROUTES), bins.count), 10)
    noise, real = 0.01, 0.5
    lost = dice.binomial(sent, noise)
    for flow in (2, 3, 5):  # from b
        lost[flow, 1500:] = dice.binomial(10, real, bins.count - 1500)
    suspects = suspects_of(ENDS, [ways_of(ENDS, *route) for route in ROUTES])
    seen = Observed.of(bins, suspects, list(sent), list(lost), healthy=noise)
    found = list(rounds(seen, "likelihood"))
    first = next(each for each in found if each.accused)
    assert first.at_ns <= 15.2 * S
    assert Part(PartKind.DIRECTION, "b-t", True) in first.accused[0].suspect.parts
