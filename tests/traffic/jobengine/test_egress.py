"""A port is handed what it carries, queue pairs take turns, and each keeps to its own rate."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hpn.traffic.jobengine.egress import CATCH_UP_NS, Outlet, run_bytes
from hpn.traffic.transport.requester import Run
from hpn.traffic.transport.work import WorkRequest

US, MS = 1_000, 1_000_000
MTU = 4096
RATE_BPS = 200_000_000
TICK_NS = 500 * US
FULL_BYTES = MTU + 14 + 28 + 12 + 4
LARGEST_BYTES = FULL_BYTES + 16 + 4  # an address, an immediate


@dataclass
class Backlog:
    """A queue pair with so many packets to send; each message has 8."""

    packets: int
    rate_bps: float = RATE_BPS
    next_ns: int = 0
    sent: list[tuple[int, int]] = field(default_factory=list)  # when, bytes
    taken: int = 0

    @property
    def sendable(self) -> bool:
        return self.taken < self.packets

    def take(self, most_packets: int, now_ns: int) -> tuple[list[Run], int]:
        assert most_packets > 0
        runs = []
        most = min(most_packets, self.packets - self.taken)
        while most > 0:
            first = self.taken % 8
            count = min(8 - first, most)
            runs.append(Run(WorkRequest(self.taken // 8, 8 * MTU, 0, 1), first, count, self.taken, again=False))
            self.taken += count
            most -= count
        sizes = [run_bytes(run, MTU) for run in runs]
        self.sent += [(now_ns, size) for size in sizes]
        return runs, sum(sizes)

    @property
    def bytes_(self) -> int:
        return sum(size for _, size in self.sent)


def served(
    outlet: Outlet[Backlog], begin_ns: int, end_ns: int, late_ns: list[int] | None = None, charged: int = 0
) -> list[tuple[int, int]]:
    """Tick from begin to end, each tick as late as is said, some bytes of replies in each: when, bytes handed over."""
    handed: list[tuple[int, int]] = []
    late = iter(late_ns or ())
    now = begin_ns
    while now < end_ns:
        if charged:
            outlet.charge(charged, now)
            handed.append((now, charged))
        for _, runs in outlet.serve(now, now + TICK_NS):
            handed += [(now, run_bytes(run, MTU)) for run in runs]
        now += TICK_NS + next(late, 0)
    return handed


def most_debt(handed: list[tuple[int, int]], rate_bps: float) -> float:
    """The most that was handed over beyond what the rate lets through meanwhile, in bytes."""
    debt = most = 0.0
    last_ns = 0
    for at, size in handed:
        debt = max(0.0, debt - (at - last_ns) * rate_bps / 8e9) + size
        last_ns, most = at, max(most, debt)
    return most


def one_turn_more(bytes_: float) -> float:
    """What may be handed over for the sake of ``bytes_``: a packet more than fit, and what headers its messages have.

    How many packets fit is counted in packets without an address or an immediate, which each message of 8 has once.
    """
    messages = bytes_ / FULL_BYTES / 8 + 1
    return bytes_ + FULL_BYTES + messages * (LARGEST_BYTES - FULL_BYTES) + 1


def bytes_in(ns: float, rate_bps: float = RATE_BPS) -> float:
    return ns * rate_bps / 8e9


LATE = st.lists(st.integers(0, 30 * MS), max_size=20)
RATES = st.lists(st.floats(1e5, RATE_BPS), min_size=1, max_size=5)


@given(RATES, LATE, st.integers(0, 3000))
@settings(max_examples=60)
def test_a_port_is_never_handed_more_than_it_carries_beyond_a_tick_and_what_a_late_worker_makes_up_for(
    rates: list[float], late: list[int], charged: int
) -> None:
    outlet = Outlet[Backlog](RATE_BPS, MTU)
    for rate in rates:
        outlet.add(Backlog(10_000, rate), MS)
    handed = served(outlet, MS, 100 * MS, late, charged)
    assert most_debt(handed, RATE_BPS) <= one_turn_more(bytes_in(TICK_NS + CATCH_UP_NS)) + charged


@given(RATES, LATE)
@example(rates=[86013817.0], late=[10304581, 0, 3837, 0, 160, 0, 1765, 0, 0, 3933523, 10316710])
@settings(max_examples=60)
def test_each_queue_pair_keeps_to_the_rate_of_its_congestion_control(rates: list[float], late: list[int]) -> None:
    """In any stretch of time, but for a tick, a packet and what a late worker makes up for."""
    outlet = Outlet[Backlog](RATE_BPS, MTU)
    senders = [Backlog(10_000, rate) for rate in rates]
    for sender in senders:
        outlet.add(sender, MS)
    served(outlet, MS, 100 * MS, late)
    for sender in senders:
        allowed = one_turn_more(bytes_in(TICK_NS + CATCH_UP_NS, sender.rate_bps))
        assert most_debt(sender.sent, sender.rate_bps) <= allowed


@given(st.lists(st.floats(1e6, 40e6), min_size=1, max_size=4))
@settings(max_examples=30)
def test_a_port_that_is_not_full_lets_every_queue_pair_have_its_rate(rates: list[float]) -> None:
    outlet = Outlet[Backlog](RATE_BPS, MTU)
    senders = [Backlog(10_000, rate) for rate in rates]
    for sender in senders:
        outlet.add(sender, MS)
    served(outlet, MS, 501 * MS)
    for sender in senders:
        assert sender.bytes_ == pytest.approx(bytes_in(500 * MS, sender.rate_bps), abs=2 * LARGEST_BYTES)


def stretches(handed: list[tuple[int, int]], first_ns: int, end_ns: int) -> list[int]:
    """Bytes in every 100 ms that begin with a tick."""
    at = np.array([(when - first_ns) // TICK_NS for when, _ in handed])
    ticks = np.bincount(at, [size for _, size in handed], (end_ns - first_ns) // TICK_NS)
    found: list[int] = np.convolve(ticks, np.ones(100 * MS // TICK_NS), "valid").tolist()
    return found


def test_1024_queue_pairs_of_a_port_fill_every_100_ms_of_it_to_a_hundredth() -> None:
    outlet = Outlet[Backlog](RATE_BPS, MTU)
    for _ in range(1024):
        outlet.add(Backlog(100), MS)
    handed = served(outlet, MS, 1001 * MS)
    assert stretches(handed, MS, 1001 * MS) == pytest.approx([bytes_in(100 * MS)] * 1801, rel=0.01)


def test_a_queue_pair_that_is_held_back_keeps_its_rate_in_every_100_ms_to_a_hundredth() -> None:
    rate_bps = 10 * RATE_BPS
    outlet = Outlet[Backlog](rate_bps, MTU)
    senders = [Backlog(10_000, rate_bps / 20) for _ in range(16)]
    for sender in senders:
        outlet.add(sender, MS)
    served(outlet, MS, 1001 * MS)
    for sender in senders:
        expected = bytes_in(100 * MS, sender.rate_bps)
        assert stretches(sender.sent, MS, 1001 * MS) == pytest.approx([expected] * 1801, rel=0.01)


@given(st.integers(2, 9))
def test_queue_pairs_share_a_full_port_alike(count: int) -> None:
    outlet = Outlet[Backlog](RATE_BPS, MTU)
    senders = [Backlog(10_000) for _ in range(count)]
    for sender in senders:
        outlet.add(sender, MS)
    served(outlet, MS, 301 * MS)
    sent = [sender.bytes_ for sender in senders]
    assert sum(sent) == pytest.approx(bytes_in(300 * MS), rel=0.01)
    assert max(sent) - min(sent) <= 4 * LARGEST_BYTES


@pytest.mark.parametrize("charged", [0, 1500])
def test_a_late_worker_makes_up_for_what_it_was_late_by(charged: int) -> None:
    """Also where replies leave by the port as well, which are charged before data has its turn."""
    outlet = Outlet[Backlog](RATE_BPS, MTU)
    outlet.add(Backlog(10_000), MS)
    handed = served(outlet, MS, 301 * MS, [0, 3 * MS] * 300, charged)
    begun = [size for at, size in handed if at > 10 * MS]
    lasted_ns = handed[-1][0] - 10 * MS
    assert sum(begun) == pytest.approx(bytes_in(lasted_ns), rel=0.03)


def test_what_was_idle_has_nothing_to_make_up_for() -> None:
    outlet = Outlet[Backlog](RATE_BPS, MTU)
    outlet.add(Backlog(3), MS)
    served(outlet, MS, 5 * MS)
    for _ in range(5):
        outlet.add(Backlog(1000), 100 * MS)
    handed = served(outlet, 100 * MS, 100 * MS + 1)
    assert sum(size for _, size in handed) <= bytes_in(TICK_NS) + LARGEST_BYTES


def test_replies_take_their_time_of_the_port() -> None:
    outlet = Outlet[Backlog](RATE_BPS, MTU)
    sender = Backlog(10_000)
    outlet.add(sender, MS)
    charged = round(bytes_in(TICK_NS)) // 2
    served(outlet, MS, 101 * MS, charged=charged)
    assert sender.bytes_ == pytest.approx(bytes_in(100 * MS) / 2, rel=0.01)


def test_whoever_waits_already_is_not_put_in_twice_and_leaves_when_asked() -> None:
    outlet = Outlet[Backlog](RATE_BPS, MTU)
    sender = Backlog(10)
    outlet.add(sender, MS)
    outlet.add(sender, MS)
    assert outlet.busy
    assert outlet.remove(sender)
    assert not outlet.remove(sender)
    assert not outlet.busy
    assert served(outlet, MS, 5 * MS) == []


@pytest.mark.parametrize(
    ("run", "bytes_"),
    [
        (Run(WorkRequest(0, 1, 0, None), 0, 1, 0, again=False), 14 + 28 + 12 + 16 + 1 + 4),
        (Run(WorkRequest(0, 1, 0, 7), 0, 1, 0, again=False), 14 + 28 + 12 + 16 + 4 + 1 + 4),
        (Run(WorkRequest(0, 2 * MTU + 5, 0, 7), 0, 2, 0, again=False), 2 * FULL_BYTES + 16),
        (Run(WorkRequest(0, 2 * MTU + 5, 0, 7), 1, 2, 1, again=False), FULL_BYTES + FULL_BYTES - MTU + 5 + 4),
        (Run(WorkRequest(0, 3 * MTU, 0, None), 1, 2, 1, again=False), 2 * FULL_BYTES),
    ],
)
def test_a_run_is_counted_as_a_port_counts_it(run: Run, bytes_: int) -> None:
    assert run_bytes(run, MTU) == bytes_
