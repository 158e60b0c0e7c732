"""Ranks of a worker: what follows from packets of their messages, and when it is told."""

from __future__ import annotations

import numpy as np

from hpn.traffic.collectives.program import Piece, Program, Receive, Span
from hpn.traffic.jobengine.ranks import Ranks

MTU = 4096


def test_a_span_is_told_of_when_it_ends_though_its_iteration_goes_on() -> None:
    first, second = (Receive(k, (), 1, k, Piece(0, k, 2 * MTU), reduce=False) for k in range(2))
    program = Program(0, MTU, 2, (first, second), (Span("a", "x", (0,)), Span("b", "x", (1,))))
    told: list[tuple[int, int, int]] = []
    ranks = Ranks(
        [program], lambda *_: 0, lambda rank, ended: told.extend((rank, each.span, each.iteration) for each in ended)
    )
    ranks.start(0)
    word = np.ones(1, np.uint64)
    expected: list[tuple[int, int, int]] = []
    for tag in range(2):
        ranks.arrived(0, 1, tag, 0, word, 5)
        assert told == expected
        ranks.arrived(0, 1, tag, MTU, word, 5)
        expected.append((0, tag, 0))
        assert told == expected
    assert [machine.iteration for machine in ranks.machines] == [1]
