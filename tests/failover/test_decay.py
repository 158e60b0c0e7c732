"""A link that decays: the course of its errors, what correction hides, when the port gives up, what files may say."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.failover.analysis.model import EdgeKind
from hpn.failover.faults import MS, Curve, Errors, LinkDecay, LinkDown, PlannedFault, make
from hpn.failover.faults.compose import clash
from hpn.failover.inject.lab_actions import LabActions
from hpn.scenarios.drill.load import drill_from
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Port
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.files.document import parse
from hpn.testbed.lab.breaking.impair import Arriving, Corrupt, Drop, Impairments

FABRIC = build(PRESETS["tiny"].spec)
LINK = "p0.s0.h0.r0.0"
S = 1000 * MS


@given(
    st.floats(1e-6, 0.4), st.floats(0.41, 1.0), st.integers(100 * MS, 60 * S), st.sampled_from(Curve), st.floats(0, 1)
)
def test_errors_rise_from_the_one_share_to_the_other_and_no_further(
    start: float, end: float, over_ns: int, curve: Curve, fec: float
) -> None:
    fault = LinkDecay(LINK, start, end, over_ns, curve, fec)
    assert fault.share_at(0) == pytest.approx(start)
    assert fault.share_at(over_ns) == fault.share_at(9 * over_ns) == pytest.approx(end)
    rises = fault.rises
    assert [each.share for each in rises] == sorted(each.share for each in rises)
    assert [each.after_ns for each in rises] == sorted(each.after_ns for each in rises)
    assert all(fec <= each.share * 1.000001 and each.share <= end for each in rises)
    begun_ns = fault.reaches(fec)
    assert (begun_ns is None) == (fec > end) == (not rises)
    if begun_ns:
        assert fault.share_at(begun_ns) == pytest.approx(fec, rel=1e-3)


def test_a_port_gives_up_at_its_threshold_and_one_repair_undoes_both() -> None:
    fault = LinkDecay(LINK, 0.0001, 0.01, 2 * S, shutdown=0.001)  # half way from 1e-4 to 1e-2
    assert [(edge.at_ns, edge.kind, edge.part) for edge in fault.edges(S, 3 * S)] == [
        (S, EdgeKind.FAILURE, None),
        (2 * S, EdgeKind.FAILURE, LinkDown(LINK)),
        (4 * S, EdgeKind.REPAIR, None),
    ]
    assert [edge.at_ns for edge in LinkDecay(LINK, 0.0001, 0.01, 2 * S).edges(S, 3 * S)] == [S, 4 * S]


def test_a_decay_that_shuts_its_port_hides_what_comes_after_and_before_that_nothing() -> None:
    decay = PlannedFault("decay", LinkDecay(LINK, 0.0001, 0.01, 2 * S, shutdown=0.001), S, 8 * S)
    loss = make("one-way-loss", LINK, {"direction": "up"})
    assert clash(decay, PlannedFault("before", loss, S, S // 2), FABRIC) == ""
    assert "leaves nothing" in clash(decay, PlannedFault("after", loss, 4 * S, S), FABRIC)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ("from: 1 %, to: 120 %", r"to"),
        ("from: 1 %, to: 0.5 %", r"'to' \(0\.500000%\) is not above 'from' \(1\.000000%\)"),
        ("from: 1 %, to: 5 %, shutdown: 0.5 %", "so the port never runs"),
        ("from: 0 %, to: 5 %", "from"),
    ],
)
def test_a_decay_that_cannot_be_is_refused_with_file_and_line(keys: str, told: str) -> None:
    with pytest.raises(InputError, match=rf"decay\.yaml:7: .*{told}"):
        _loaded(keys)


def _loaded(keys: str) -> LinkDecay:
    text = f"""drill: decay
summary: x
topology: tiny
timeline:
  healthy: 1 s
  faults:
    - {{fault: link-decay, target: {LINK}, at: 1 s, for: 3 s, over: 2 s, {keys}}}
expect:
  - state_restored: yes
"""
    (planned,) = drill_from(parse(text, "decay.yaml"), Path()).timeline.faults
    assert isinstance(planned.fault, LinkDecay)
    return planned.fault


def test_a_drill_file_gives_every_setting() -> None:
    fault = _loaded("from: 0.01 %, to: 20 %, curve: linear, fec: 1 %, shutdown: 30 %, errors: corrupted")
    assert fault == LinkDecay(LINK, 0.0001, 0.2, 2 * S, Curve.LINEAR, 0.01, 0.3, Errors.CORRUPTED)


class Noted(Impairments):
    """Writes down what it is told, and does nothing."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Arriving]] = []
        self.lifted: list[Hashable] = []

    def open(self, nodes: Iterable[str]) -> None:
        pass

    def on_arrival(self, key: Hashable, port: Port, what: Arriving) -> None:
        self.told.append((port.node, what))

    async def lift(self, key: Hashable) -> None:
        self.lifted.append(key)


@pytest.mark.parametrize(("errors", "kind"), [(Errors.LOST, Drop), (Errors.CORRUPTED, Corrupt)])
async def test_both_ends_get_each_step_until_the_repair(errors: Errors, kind: type) -> None:
    noted, stub = Noted(), cast("Any", None)  # no other lever is pulled
    fault = LinkDecay(LINK, 0.001, 0.5, 100 * MS, errors=errors)
    action = fault.act(LabActions(FABRIC, stub, stub, noted, stub))
    action.do()
    async with asyncio.timeout(10):
        while len(noted.told) < 6:
            await asyncio.sleep(0.01)
    await action.undo()
    told = len(noted.told)
    await asyncio.sleep(0.1)
    assert len(noted.told) == told < 2 * len(fault.rises), "the other steps are called off"
    assert noted.lifted == [fault]
    assert [node for node, _ in noted.told[:2]] == ["p0.s0.h0", "p0.s0.t0.0"]
    assert all(isinstance(what, kind) for _, what in noted.told)
    shares = [what.share for _, what in noted.told[::2] if isinstance(what, Drop | Corrupt)]
    assert shares == [each.share for each in fault.rises][: len(shares)]
