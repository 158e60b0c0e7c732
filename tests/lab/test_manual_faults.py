"""hpn break and hpn mend: every part of a lab by its name, again and again, in any order."""

from __future__ import annotations

import pytest

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.service.inspect import report
from hpn.testbed.lab.service.manual_faults import break_part, broken, mend_all, mend_part
from hpn.testbed.lab.state import state
from tests.lab.running import has_carrier, running, tiny, whole_again

PODS = tiny(pods=2, segments=1, hosts=1, rails=1, aggs=1, cores=2)
HOST, NIC, LINK, TOR, UPLINK = "p0.s0.h0", "p0.s0.h0.r0", "p0.s0.h0.r0.0", "p0.s0.t0.0", "p0.s0.t0.0-p0.a0.0"


def _dark(lab: Lab) -> set[str]:
    return {link.name for link in lab.fabric.links if not lab.link_up(link.name)}


def _links(lab: Lab, name: str) -> set[str]:
    """The links that a part of the lab consists of, or has."""
    if name in lab.fabric.link_by_name:
        return {name}
    links = lab.fabric.nic(name).links if name in lab.fabric.nic_by_name else lab.fabric.links_of(name)
    return {link.name for link in links}


@pytest.mark.kernel
async def test_every_part_breaks_by_its_name_and_is_mended_however_often_one_asks() -> None:
    async with running(PODS) as lab:
        before = state(lab)
        for name in (LINK, UPLINK, NIC, HOST, TOR, "p0.a0.0", "c0.0"):
            dark = _links(lab, name)
            await mend_part(lab, name)  # nothing is broken yet
            break_part(lab, name)
            break_part(lab, name)
            await lab.wait_for(lambda dark=dark: _dark(lab) == dark, 10)  # type: ignore[misc]  # a default argument
            assert report(lab, "")
            await mend_part(lab, name)
            await mend_part(lab, name)
            await lab.wait_for(lambda: not _dark(lab), 10)
            await whole_again(lab, before)


@pytest.mark.kernel
@pytest.mark.parametrize(("part", "whole"), [(LINK, HOST), (NIC, HOST), (LINK, NIC), (LINK, TOR), (UPLINK, TOR)])
async def test_what_was_broken_by_its_own_name_stays_broken_until_it_is_mended(part: str, whole: str) -> None:
    async with running(PODS) as lab:
        before = state(lab)
        own, both = _links(lab, part), _links(lab, part) | _links(lab, whole)
        for first, second in ((part, whole), (whole, part)):
            break_part(lab, first)
            break_part(lab, second)
            await lab.wait_for(lambda: _dark(lab) == both, 10)
            await mend_part(lab, whole)
            await lab.wait_for(lambda: _dark(lab) == own, 10)
            await mend_part(lab, part)
            await whole_again(lab, before)
        break_part(lab, part)
        break_part(lab, whole)
        await mend_part(lab, part)
        assert not any(has_carrier(lab, link) for link in both)
        await mend_part(lab, whole)
        await whole_again(lab, before)


@pytest.mark.kernel
async def test_the_list_has_what_is_broken_and_by_which_name_and_all_of_it_is_mended_at_once() -> None:
    async with running(PODS) as lab:
        before = state(lab)
        assert broken(lab) == []
        for name in (LINK, HOST, TOR):
            break_part(lab, name)
        found = {each.part: each for each in broken(lab)}
        assert {name: (each.how, each.by_hand) for name, each in found.items()} == {
            LINK: ("no carrier", True),
            HOST: ("no carrier", True),
            TOR: ("crashed", True),
        }
        assert all(set(each.links) == _links(lab, name) for name, each in found.items())
        assert report(lab, "broken") == [
            {"part": each.part, "how": each.how, "by_hand": True, "links": list(each.links)} for each in broken(lab)
        ]
        lab.breakage.ports_down([(lab.fabric.link("p0.a0.0-c0.0"), "p0.a0.0")], by="p0.a0.0")  # as a stack's ToR does
        (shut,) = (each for each in broken(lab) if not each.by_hand)
        assert (shut.part, shut.how, shut.links) == ("p0.a0.0", "shut its ports", ("p0.a0.0-c0.0",))
        change = await mend_all(lab)
        assert set(change.up) == _links(lab, HOST) | _links(lab, TOR) | {TOR}
        assert (change.down, change.still_down) == ((), ("p0.a0.0-c0.0",))
        assert broken(lab) == [shut]
        lab.breakage.ports_up([(lab.fabric.link("p0.a0.0-c0.0"), "p0.a0.0")], by="p0.a0.0")
        await whole_again(lab, before)


def test_a_name_that_nothing_has_is_told_with_the_nearest_ones() -> None:
    with pytest.raises(InputError, match=r"no node, NIC or link 'p0.s0.h9' in this fabric; did you mean p0.s0.h0"):
        build(PODS).part("p0.s0.h9")
