"""The catalogue of faults takes no kind that leaves something unsaid which others would have to guess."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from hpn.failover.faults import FAULTS, Fault, lacks, make
from hpn.failover.faults.base import LinkFault
from hpn.testbed.entries import Registry

SAID = ("KIND", "NEEDS", "PART", "PER_MONTH", "REPAIRS_ITSELF", "SESSIONS_DOWN", "STEADY", "TARGET", "TELLS")
DONE = ("act", "edges", "links_hit", "nodes_hit", "shows_in", "silences", "target")


class Forgetful(Fault):
    """Says nothing."""


@dataclass(frozen=True, slots=True)
class Frayed(LinkFault):
    """A cable of which nothing is said but where it is."""

    KIND: ClassVar[str] = "frayed"


_FRAYED: type[Fault] = Frayed  # type: ignore[type-abstract]  # what it lacks is the point


def test_a_fault_must_say_whom_it_tells_what_it_hides_and_how_often_it_comes() -> None:
    unsaid = lacks(Forgetful)  # type: ignore[type-abstract]  # that it is abstract is the point
    assert sorted(unsaid) == sorted((*SAID, *DONE))


def test_the_catalogue_cannot_be_made_with_a_fault_that_leaves_something_unsaid() -> None:
    with pytest.raises(TypeError, match="Frayed does not say its NEEDS, PER_MONTH, SESSIONS_DOWN, STEADY, TELLS, act"):
        Registry[type[Fault]]("fault", lambda fault: fault.KIND, (*FAULTS.values(), _FRAYED), lacks)


@pytest.mark.parametrize("kind", FAULTS)
def test_what_a_fault_says_goes_together(kind: str) -> None:
    fault = FAULTS[kind]
    assert not lacks(fault)
    assert fault.PER_MONTH > 0
    if fault.WANTS_SESSIONS:
        assert not fault.SESSIONS_DOWN, "it would hide itself"


@pytest.mark.parametrize(
    ("kind", "parameters", "alone"),
    [
        ("silent-drop", {}, True),
        ("silent-drop", {"share": 0.01}, False),
        ("silent-drop", {"traffic": "data"}, False),
        ("one-way-loss", {"direction": "up"}, True),
        ("lacp-loss", {"direction": "up"}, True),
        ("arp-loss", {}, False),
        ("bit-corruption", {"share": 0.5}, False),
        ("link-down", {}, False),
    ],
)
def test_timers_alone_notice_what_starves_a_protocol_and_tells_nobody(
    kind: str, parameters: dict[str, int | float | str], alone: bool
) -> None:
    assert make(kind, "p0.s0.h0.r0.0", parameters).timers_alone_notice is alone


@pytest.mark.parametrize(
    ("kind", "target", "alone"),
    [
        ("agg-dataplane-death", "p0.a0.0", False),
        ("tor-control-hang", "p0.s0.t0.0", True),
        ("tor-crash", "p0.s0.t0.0", False),
    ],
)
def test_timers_alone_notice_a_switch_that_dies_behind_its_lights(kind: str, target: str, alone: bool) -> None:
    assert make(kind, target, {}).timers_alone_notice is alone


@pytest.mark.parametrize(
    ("kind", "target", "parameters", "reaches"),
    [
        ("silent-drop", "p0.s0.h0.r0.0", {"share": 0.01}, True),
        ("one-way-loss", "p0.s0.h0.r0.0", {"direction": "up"}, True),
        ("bit-corruption", "p0.s0.h0.r0.0", {"share": 0.5}, True),
        ("agg-dataplane-death", "p0.a0.0", {}, True),
        ("link-down", "p0.s0.h0.r0.0", {}, True),
        ("pause-storm", "p0.s0.h0.r0", {}, True),
        ("lacp-loss", "p0.s0.h0.r0.0", {"direction": "up"}, False),
        ("arp-loss", "p0.s0.h0.r0.0", {}, False),
        ("tor-control-hang", "p0.s0.t0.0", {}, False),
        ("bgp-reset", "p0.s0.t0.0-p0.a0.0", {}, False),
    ],
)
def test_a_fault_of_protocols_alone_loses_no_data_packet_itself(
    kind: str, target: str, parameters: dict[str, int | float | str], reaches: bool
) -> None:
    assert make(kind, target, parameters).reaches_data is reaches
