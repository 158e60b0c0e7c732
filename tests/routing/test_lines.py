"""Lines out of a pipe, however it cuts them."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hpn.testbed.routing.child import Lines

LOG = b"bird: /run/x.conf:3:1 syntax error\n\nup0: BGP session established\nlast words\n\n"


@given(st.lists(st.integers(0, len(LOG)), max_size=12))
def test_the_same_lines_whatever_the_pieces(cuts: list[int]) -> None:
    lines = Lines()
    edges = [0, *sorted(cuts), len(LOG)]
    assert [line for a, b in pairwise(edges) for line in lines.feed(LOG[a:b])] == LOG.decode().split("\n")[:-1]
    assert lines.last == "last words"


@given(st.binary(max_size=300))
def test_any_bytes_are_survived(data: bytes) -> None:
    lines = Lines()
    lines.feed(data)
    assert lines.feed(b"\nup\n")[-1] == "up"


def test_an_endless_line_does_not_fill_memory() -> None:
    lines = Lines()
    for _ in range(100):
        lines.feed(b"x" * 10_000)
    assert len(lines._rest) <= 4096
    assert lines.feed(b"\n") == ["x" * 4096]
