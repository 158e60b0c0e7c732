"""The window of a multipath sender against one that looks at all packets each time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.traffic.multipath.sack import Sack
from hpn.traffic.multipath.window import Copy, Flight, Window

PATHS, WINDOW, STEPS = 5, 24, 60


class Plain:
    """Packets by PSN: serial, path, whether it was sent again, and its state."""

    def __init__(self) -> None:
        self.packets: dict[int, tuple[int, int, bool, str]] = {}
        self.heard = [-1] * PATHS
        self.serials = 0

    def send(self, start: int, paths: list[int], again: bool) -> None:
        for psn, path in enumerate(paths, start):
            self.packets[psn] = self.serials, path, again, "flight"
            self.serials += 1

    def land(self, new: Iterable[int], newest: int | None) -> Iterable[int]:
        """Return what is overtaken, which is lost then."""
        for psn in new:
            serial, path, again, _ = self.packets[psn]
            if not again or psn == newest:
                self.heard[path] = max(self.heard[path], serial)
            self.set(psn, "arrived")
        return {psn for psn in self.flying() if self.packets[psn][0] < self.heard[self.packets[psn][1]]}

    def set(self, psn: int, state: str) -> None:
        self.packets[psn] = (*self.packets[psn][:3], state)

    def flying(self) -> Iterable[int]:
        return {psn for psn, packet in self.packets.items() if packet[3] == "flight"}


@settings(max_examples=200)
@given(st.integers(0, 2**32), st.integers(0, 1000))
def test_it_finds_what_looking_at_all_packets_finds(seed: int, first: int) -> None:
    draw, window, plain = Random(seed), Window(WINDOW, first), Plain()
    window.set_paths(PATHS)
    acknowledged = sent = first
    there: set[int] = set()  # at the receiver
    for now_ns in range(STEPS):
        if draw.random() < 0.6 and sent - acknowledged < WINDOW:
            count = draw.randint(1, min(6, WINDOW - (sent - acknowledged)))
            _send(window, plain, sent, [draw.randrange(PATHS) for _ in range(count)], now_ns, again=False)
            sent += count
        elif window.lost and draw.random() < 0.5:
            _send(window, plain, min(window.lost), [draw.randrange(PATHS)], now_ns, again=True)
        assert {copy.psn for copy in window.late(now_ns, lambda _: 0)} == plain.flying()
        oldest = dict(window.oldest_ns()).get(0)
        assert oldest == min((window.copy(psn).flight.sent_ns for psn in plain.flying()), default=None)
        waiting = [psn for psn in range(acknowledged, sent) if psn not in there]
        if not waiting or draw.random() < 0.3:
            continue
        there |= {*draw.sample(waiting, draw.randint(1, len(waiting)))}
        upto = next(psn for psn in range(acknowledged, sent + 1) if psn not in there)
        old = draw.random() < 0.2  # an acknowledgement that was overtaken says less of the beginning
        base = draw.randint(acknowledged, upto) if old else upto
        bits = sum(1 << psn - base - 1 for psn in there if psn > base)
        sack = Sack(base - 1, 0, 0, bitmap=bits.to_bytes(-(-bits.bit_length() // 8), "little"))
        reported = {psn for psn in there if psn < base or psn > base}
        new = window.new(base, sack.bitmap, sent)
        expected = {psn for psn in reported if psn >= acknowledged and plain.packets[psn][3] != "arrived"}
        assert {window.first + bit for bit in range(new.bit_length()) if new >> bit & 1} == expected
        if not expected:
            continue
        newest = draw.choice([None, *sorted(expected)])
        landed = window.land(new, None if newest is None else window.copy(newest))
        overtaken = plain.land(expected, newest)
        assert {copy.psn for copy in landed.overtaken} == overtaken
        _lose(window, plain, landed.overtaken)
        if base > acknowledged:
            acknowledged = base
            window.advance(base)
        late = [copy for copy in window.late(now_ns, lambda _: 0) if draw.random() < 0.2]
        _lose(window, plain, late)
        assert window.lost == {psn for psn, packet in plain.packets.items() if packet[3] == "lost"}


def _send(window: Window, plain: Plain, start: int, paths: list[int], now_ns: int, *, again: bool) -> None:
    window.send(Flight(start, paths, 0, now_ns, 0, 0, again=again))
    plain.send(start, paths, again)


def _lose(window: Window, plain: Plain, copies: Sequence[Copy]) -> None:
    firsts = window.lose(copies)
    assert [loss.path for loss in firsts] == sorted({plain.packets[copy.psn][1] for copy in copies})
    for copy in copies:
        plain.set(copy.psn, "lost")
