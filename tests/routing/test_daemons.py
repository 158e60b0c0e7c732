"""The registry of BGP daemons."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.entries import Registry
from testbed.errors import MachineError
from testbed.fabric.build import build
from testbed.fabric.daemons import RULES
from testbed.fabric.spec import BgpSpec, FabricSpec
from testbed.kernel import programs
from testbed.lab.service.preflight import check
from testbed.routing.bgp import lacks
from testbed.routing.bird.daemon import BIRD
from testbed.routing.daemons import DAEMONS


def test_what_a_topology_may_name_can_be_run() -> None:
    assert list(DAEMONS) == list(RULES)


def test_a_daemon_of_which_nobody_knows_what_it_can_carry_is_no_entry() -> None:
    with pytest.raises(TypeError, match=r"does not say its rules in testbed\.fabric\.daemons"):
        Registry("BGP daemon", lambda kind: kind.name, (replace(BIRD, name="gobgp"),), lacks)


@pytest.mark.parametrize(
    ("daemon", "way_out"), [("bird", "apt install bird2"), ("frr", "apt install frr, or write bgp: {daemon: bird}")]
)
def test_a_lab_is_refused_where_its_daemon_is_missing(
    monkeypatch: pytest.MonkeyPatch, daemon: str, way_out: str
) -> None:
    monkeypatch.setattr(programs, "find", lambda _program: None)
    with pytest.raises(MachineError, match=f"is missing: {way_out}$"):
        check(build(FabricSpec(bgp=BgpSpec(daemon=daemon))))
