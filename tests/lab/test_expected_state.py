"""What the fabric decides, held against a lab and against itself: pure, and one lab per architecture's kernel."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.lab.breaking.impair import Delay, Slow
from hpn.testbed.lab.expected_state import contradictions, deviations, expected
from hpn.testbed.lag.host_nft import NFT
from tests.lab.running import running, tiny

TINY = build(PRESETS["tiny"].spec)


def test_no_preset_contradicts_itself() -> None:
    assert {name: contradictions(build(preset.spec)) for name, preset in PRESETS.items() if name != "pod"} == {
        name: () for name in PRESETS if name != "pod"
    }


def test_a_fabric_of_one_seed_is_told_from_one_of_many() -> None:
    same = replace(TINY, nodes=tuple(replace(n, ecmp_seed=5) if n.is_switch else n for n in TINY.nodes))
    switches = len(TINY.switches)
    (told,) = contradictions(same)
    assert told.endswith(f"is 5 as on {switches - 1} other switches, should be its own")


def test_a_port_id_without_its_offset_is_told() -> None:
    def bare(fabric: Fabric, tor: str) -> Fabric:
        links = {
            link.name: replace(link, upper=replace(link.upper, port_id=link.upper.port_id % 300))
            if link.upper.node == tor
            else link
            for link in fabric.links
        }
        nics = tuple(replace(nic, links=tuple(links[link.name] for link in nic.links)) for nic in fabric.nics)
        return replace(fabric, links=tuple(links.values()), nics=nics)

    told = contradictions(bare(TINY, "p0.s0.t0.1"))
    assert told
    assert all(line.endswith("should be above 600") for line in told)


def test_what_is_expected_names_every_port_and_switch_once() -> None:
    found = expected(TINY, NFT)
    access = sum(len(nic.links) for nic in TINY.nics)
    assert len(found) == 2 * len(TINY.links) + 2 * access + len(TINY.switches)
    assert found["LACP partner of p0.s0.h0:r0p1"].endswith(f"port {TINY.nics[0].links[1].upper.port_id}")


@pytest.mark.kernel
@pytest.mark.parametrize("preset", ["tiny", "tiny-stacked", "tiny-dcn-plus"])
async def test_a_healthy_lab_is_what_its_fabric_decides(preset: str) -> None:
    async with running(PRESETS[preset].spec) as lab:
        assert deviations(lab) == ()


@pytest.mark.kernel
async def test_a_slow_and_a_delayed_port_are_named_and_forgotten_when_lifted() -> None:
    async with running(tiny()) as lab:
        link = lab.fabric.nics[0].links[0]
        lab.impairments.on_departure("slow", link, link.lower, Slow(0.5))
        (line,) = deviations(lab)
        assert line.startswith(
            f"rate of {link.lower.label}: is 100000000 bit/s, control first, should be 200000000 bit/s"
        )
        await lab.impairments.lift("slow")
        try:
            lab.impairments.on_departure("late", link, link.lower, Delay(1_000_000))
        except OSError:
            return  # no netem in this kernel
        (line,) = deviations(lab)
        assert "bit/s, with delay, should be" in line
        await lab.impairments.lift("late")
        assert deviations(lab) == ()
