"""A host is lost when one of its NICs answers nobody; the nearest spare takes its place."""

from __future__ import annotations

import pytest

from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import FabricSpec
from hpn.traffic.job.standby import ASKERS, Question, cut_off, questions, replacements


def _fabric(**changes: object) -> Fabric:
    """Two segments of two hosts, h0 and h1, and spares behind them."""
    return build(FabricSpec.model_validate(PRESETS["tiny-spare"].spec.model_dump() | changes))


FABRIC = _fabric()


def _unless(dead: set[str]) -> set[Question]:
    """What is answered when these NICs neither ask nor answer."""
    return {each for each in questions(FABRIC.nics) if not {each.asker.name, each.asked.name} & dead}


@pytest.mark.parametrize(
    ("dead", "lost"),
    [
        (set(), ()),
        ({"p0.s0.h0.r0", "p0.s0.h0.r1"}, ("p0.s0.h0",)),
        ({"p0.s1.h1.r1"}, ("p0.s1.h1",)),
        ({"p0.s0.h0.r0", "p0.s1.h0.r1"}, ("p0.s0.h0", "p0.s1.h0")),
    ],
)
def test_a_host_with_a_nic_that_answers_nobody_is_lost(dead: set[str], lost: tuple[str, ...]) -> None:
    assert cut_off(questions(FABRIC.nics), _unless(dead)) == lost


def test_one_answer_is_enough() -> None:
    asked = questions(FABRIC.nics)
    only = {next(each for each in asked if each.asked.name == nic.name) for nic in FABRIC.nics}
    assert cut_off(asked, only) == ()


def test_who_hears_an_answer_has_not_answered() -> None:
    asked = questions([nic for nic in FABRIC.nics if nic.rail == 0])
    heard = next(each for each in asked if each.asked.host == "p0.s0.h0")
    assert set(cut_off(asked, {heard})) == {host.name for host in FABRIC.hosts} - {"p0.s0.h0"}


def test_nics_ask_those_of_other_hosts_on_their_rail() -> None:
    large = _fabric(hosts=7, spare_hosts=1)
    asked = questions(large.nics)
    assert all(each.asker.rail == each.asked.rail and each.asker.host != each.asked.host for each in asked)
    by_asked = [sum(each.asked is nic for each in asked) for nic in large.nics]
    assert set(by_asked) == {ASKERS}


def test_the_nearest_spare_takes_a_hosts_place_and_none_takes_two() -> None:
    assert replacements(FABRIC, ["p0.s1.h0"], ["p0.s0.h2", "p0.s1.h2"]) == {"p0.s1.h0": "p0.s1.h2"}
    assert replacements(FABRIC, ["p0.s0.h0", "p0.s0.h1"], ["p0.s0.h2", "p0.s1.h2"]) == {
        "p0.s0.h0": "p0.s0.h2",
        "p0.s0.h1": "p0.s1.h2",
    }
    assert replacements(FABRIC, ["p0.s0.h0", "p0.s0.h1"], ["p0.s1.h2"]) == {"p0.s0.h0": "p0.s1.h2"}
    assert replacements(FABRIC, ["p0.s0.h0"], []) == {}
