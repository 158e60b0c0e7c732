"""What the lab's processes waited for a CPU between two moments, from samples of the scheduler's counters."""

from __future__ import annotations

import pytest

from hpn.failover.analysis.cpu_waits import Waits, waits_of
from hpn.failover.analysis.hostload import OwnTime, Sample

MS = 10**6


def sample(at_ms: int, **delays_ms: float) -> Sample:
    own = {int(pid[1:]): OwnTime(0, round(delay * MS)) for pid, delay in delays_ms.items()}
    return Sample(at_ms * MS, 0, 0, 0, 0, None, own)


def test_waits_of_the_processes_asked_for_add_up_from_sample_to_sample() -> None:
    samples = [sample(0, p1=5, p2=1, p3=100), sample(100, p1=7, p2=4, p3=900), sample(200, p1=7, p2=5, p3=999)]
    assert waits_of(samples, {1, 2}) == Waits((0, 100 * MS, 200 * MS), (0, 5 * MS, 6 * MS))


def test_a_process_counts_while_it_is_in_both_samples() -> None:
    """One that has died, and one that was started since, with all that it waited before."""
    samples = [sample(0, p1=5), sample(100, p1=6, p2=50), sample(200, p2=53)]
    assert waits_of(samples, {1, 2}).waited_ns == (0, 1 * MS, 4 * MS)


@pytest.mark.parametrize(
    ("start_ms", "end_ms", "waited_ms"),
    [(100, 200, 3), (150, 160, 3), (99, 200, 5), (100, 201, 10), (-50, 900, 12), (350, 360, 0), (400, 500, 0)],
)
def test_the_most_is_from_the_reading_before_to_the_reading_behind(start_ms: int, end_ms: int, waited_ms: int) -> None:
    waits = Waits(tuple(at * MS for at in (0, 100, 200, 300)), tuple(ms * MS for ms in (0, 2, 5, 12)))
    assert waits.most_ms(start_ms * MS, end_ms * MS) == waited_ms


def test_without_readings_nothing_was_waited() -> None:
    assert waits_of([], {1}).most_ms(0, 10**12) == Waits().most_ms(0, 10**12) == 0.0


@pytest.mark.parametrize("course", [((0, 1), (0,)), ((1, 0), (0, 0))])
def test_a_damaged_course_is_refused(course: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    with pytest.raises(ValueError, match="in order of time"):
        Waits(*course)
