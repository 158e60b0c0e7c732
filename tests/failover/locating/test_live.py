"""Answers while streams run: as those afterwards, and not misled by paths that change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hpn.failover.locating.counting import Bin
from hpn.failover.locating.live import LiveLocation
from hpn.failover.locating.rounds import STEP_NS, Round
from tests.failover.locating.spines import ENDS, ROUTES
from tests.failover.locating.test_rounds import UP, answer

HOSTS = {flow: host for flow, (host, _) in enumerate(ROUTES)}
ALL = {flow: links for flow, (_, links) in enumerate(ROUTES)}
OVER_UP = [flow for flow, (_, links) in enumerate(ROUTES) if links[1:3] == ("t-g", "u-g")]
OTHER_SPINE = str.maketrans("gi", "ig")
PACKETS = 100  # a bin


class _Run:
    """Streams by arithmetic: those of ``losing`` lose a share of their packets."""

    def __init__(self) -> None:
        self.live = LiveLocation(ENDS, HOSTS, "likelihood")
        self.live.know(0, ALL)
        self._sent, self._lost = np.zeros(len(ROUTES), np.int64), np.zeros(len(ROUTES), np.int64)
        self.now = 0

    def go(self, bins: int, losing: Sequence[int] = (), share: float = 0.5, *, whole: bool = True) -> list[Round]:
        """Take some bins and return their answers."""
        made = []
        for _ in range(bins):
            self.now += STEP_NS
            self._sent = self._sent + PACKETS
            self._lost = self._lost.copy()
            self._lost[list(losing)] += round(PACKETS * share)
            made.append(Bin(self.now, self._sent, self._lost, whole))
        return list(self.live.take(iter(made)))


def _led_round(paths: Mapping[int, Sequence[str]]) -> dict[int, Sequence[str]]:
    """The paths when spine g is left out."""
    round_it = {0: ROUTES[1][1], 2: ROUTES[3][1], 6: ("c-u", "u-i", "t-i", "a-t")}
    return {**paths, **round_it}


def test_the_answer_is_that_of_the_whole_record() -> None:
    run = _Run()
    assert not any(each.accused for each in run.go(50))
    (told,) = run.go(1, OVER_UP)[-1].accused
    afterwards = answer(5, 10, 0.5)
    assert told.suspect == next(each for each in afterwards.rounds if each.accused).accused[0].suspect
    assert UP in told.suspect.parts


def test_a_record_longer_than_every_window_is_forgotten_from_its_begin() -> None:
    run = _Run()
    run.go(5, OVER_UP)
    assert not run.go(700)[-1].accused
    assert UP in run.go(2, OVER_UP)[-1].accused[0].suspect.parts


def test_an_answer_stands_while_routes_lead_round_what_it_accuses() -> None:
    run = _Run()
    before = run.go(5, OVER_UP)[-1]
    run.live.changed(run.now)
    assert run.go(2) == []  # whose paths they are is not known yet
    run.live.know(run.now - STEP_NS // 2, _led_round(ALL))
    after = run.go(30)
    assert len(after) == 32
    assert UP in before.accused[0].suspect.parts
    assert UP in after[-1].accused[0].suspect.parts


def test_losses_while_a_path_changes_accuse_nobody() -> None:
    run = _Run()
    run.go(20)
    run.live.changed(run.now + 1)
    run.go(3, OVER_UP, 1.0)
    run.live.know(run.now + 1, _led_round(ALL))
    assert not any(each.accused for each in run.go(20))


def test_losses_of_paths_that_did_not_change_meanwhile_count() -> None:
    run = _Run()
    run.go(20)
    run.live.changed(run.now + 1)
    run.go(3, OVER_UP, 0.5)
    run.live.know(run.now + 1, ALL)
    assert any(each.accused and UP in each.accused[0].suspect.parts for each in run.go(1))


def test_a_path_whose_packets_do_not_arrive_is_unknown() -> None:
    run = _Run()
    run.live.changed(0)
    run.live.know(1, {flow: links for flow, links in ALL.items() if flow not in OVER_UP})
    assert not any(each.accused for each in run.go(30, OVER_UP, 1.0))


def test_bins_in_which_the_machine_lost_packets_accuse_nobody() -> None:
    run = _Run()
    assert not any(each.accused for each in run.go(20, OVER_UP, whole=False))
    assert run.live.left_out == 20


def test_losses_told_just_after_a_path_changed_are_those_of_before() -> None:
    run = _Run()
    run.go(20)
    run.live.changed(run.now + 1)
    run.go(6)  # longer than the shortest window
    swapped = {flow: tuple(link.translate(OTHER_SPINE) for link in links) for flow, links in ALL.items()}
    run.live.know(run.now - 1, swapped)
    assert not any(each.accused for each in run.go(2, (0, 2), 1.0))
    assert any(each.accused for each in run.go(2, (0, 2), 1.0))
