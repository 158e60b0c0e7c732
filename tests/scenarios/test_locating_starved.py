"""Probes that a starved machine holds up look lost: they accuse nobody, and the answer says why. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hpn.failover.analysis.hostload import HostLoad, OwnTime, Sample, summarise
from hpn.failover.locating.counting import Bin
from hpn.failover.locating.live import LiveLocation
from hpn.failover.locating.parts import Suspects
from hpn.failover.locating.rounds import STEP_NS, Round
from hpn.results.text.live_location import LiveText
from hpn.scenarios.run.locating.follower import doubted
from hpn.traffic.flows.probe_load import ProbeLoad
from tests.failover.locating.spines import ENDS
from tests.failover.locating.test_live import ALL, HOSTS, OVER_UP
from tests.failover.locating.test_rounds import UP

S = 10**9
STARVED = (10 * S, 14 * S)
PACKETS = 100
CPUS, TICKS_PER_S = 2, 200


class _Machine:
    """Two cores: half idle, but in the seconds of ``STARVED`` another program has them and probes wait."""

    def __init__(self, begin_ns: int, end_ns: int) -> None:
        self.samples: list[Sample] = []
        idle = psi = run = delay = 0.0
        for at_ns in range(begin_ns, end_ns, STEP_NS):
            starved = STARVED[0] <= at_ns < STARVED[1]
            idle += 0 if starved else TICKS_PER_S / 2 * STEP_NS / S
            psi += (0.9 if starved else 0.02) * STEP_NS / 1e3
            run += (0.05 if starved else 0.2) * STEP_NS
            delay += (0.85 if starved else 0.004) * STEP_NS
            own = {1: OwnTime(int(run), int(delay))}
            ticks = int((at_ns - begin_ns) / S * TICKS_PER_S)
            self.samples.append(Sample(at_ns, 0, int(idle), 0, ticks, int(psi), own))

    def load(self, begin_ns: int, end_ns: int) -> HostLoad | None:
        return summarise([each for each in self.samples if begin_ns <= each.at_ns <= end_ns], CPUS)


def _answers(losing: Sequence[tuple[int, int]], machine: _Machine | None) -> list[Round]:
    """Answers to streams that lose half of the packets over a link in these intervals."""
    live = LiveLocation(ENDS, HOSTS, "likelihood")
    live.know(0, ALL)
    sent, lost, bins = np.zeros(len(ALL), np.int64), np.zeros(len(ALL), np.int64), []
    for end_ns in range(STEP_NS, 25 * S, STEP_NS):
        sent, lost = sent + PACKETS, lost.copy()
        if any(begin < end_ns <= end for begin, end in losing):
            lost[OVER_UP] += PACKETS // 2
        bins.append(Bin(end_ns, sent, lost, whole=True))
    return list(live.take(doubted(iter(bins), None if machine is None else machine.load)))


def _accused(found: Sequence[Round]) -> set[object]:
    return {part for each in found for one in each.accused for part in one.suspect.parts}


def test_losses_of_a_starved_machine_accuse_nobody_and_the_answer_says_why() -> None:
    held_up = [(STARVED[0] + S // 5, STARVED[1])]
    found = _answers(held_up, _Machine(0, 30 * S))
    assert not _accused(found)
    doubts = [each for each in found if each.doubt]
    assert {"our processes waited for a CPU" in each.doubt for each in doubts} == {True}
    assert STARVED[0] - S <= doubts[0].at_ns <= STARVED[0] + S // 5
    assert STARVED[1] <= doubts[-1].at_ns <= STARVED[1] + 2 * S
    assert UP in _accused(_answers(held_up, None)), "nobody looked at the machine"


def test_a_fault_before_or_after_the_starved_time_is_named() -> None:
    machine = _Machine(0, 30 * S)
    late = _answers([(18 * S, 25 * S)], machine)
    assert UP in _accused(late)
    assert all(each.at_ns >= 18 * S for each in late if each.accused)
    early = _answers([(5 * S, 25 * S)], machine)
    stands = [each for each in early if each.doubt]
    assert stands
    assert all(UP in _accused([each]) for each in stands), "what was known before stands"


def test_a_machine_without_load_is_in_no_doubt() -> None:
    assert not any(each.doubt for each in _answers([], _Machine(0, 30 * S)) if each.at_ns < STARVED[0] - S)
    assert not any(each.doubt for each in _answers([], None))


def test_the_line_and_the_document_say_so() -> None:
    text = LiveText("small")
    list(text.probes(ProbeLoad(1, 1.0, 0.1, "a"), Suspects((), (), np.zeros((0, 0), np.bool_), ()), S))
    (line,) = text.answer(Round(4 * S, S, (), "it waited"))
    assert line.strip() == "3.0 s  inconclusive: it waited; losses of this time count for nobody"
    answer = text.answer_document(Round(4 * S, S, (), "it waited"))["answer"]
    assert isinstance(answer, dict)
    assert answer["doubt"] == "it waited"
