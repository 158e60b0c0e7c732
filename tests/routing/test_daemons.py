"""The registry of BGP daemons."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.rules import contradictions
from hpn.testbed.fabric.spec import BgpSpec, FabricSpec
from hpn.testbed.kernel.process import programs
from hpn.testbed.lab.service.preflight import check
from hpn.testbed.routing.bird.daemon import BIRD
from hpn.testbed.routing.daemons import DAEMONS


def test_a_daemon_that_is_added_can_be_named_and_says_what_it_cannot_carry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it cannot carry is part of its entry: there is no second list."""
    wanted = FabricSpec(bgp=BgpSpec(daemon="gobgp"))
    assert contradictions(wanted) == [
        (("bgp", "daemon"), "bgp.daemon is 'gobgp'; write one of bird, frr, or load its plug-in: hpn --plugin FOLDER"),
    ]
    never = replace(BIRD, name="gobgp", contradictions=lambda _spec: [(("segments",), "too many for it")])
    monkeypatch.setitem(DAEMONS._entries, "gobgp", never)
    assert contradictions(wanted) == [(("segments",), "too many for it")]


@pytest.mark.parametrize(
    ("daemon", "way_out"), [("bird", "apt install bird2"), ("frr", "apt install frr, or write bgp: {daemon: bird}")]
)
def test_a_lab_is_refused_where_its_daemon_is_missing(
    monkeypatch: pytest.MonkeyPatch, daemon: str, way_out: str
) -> None:
    monkeypatch.setattr(programs, "find", lambda _program: None)
    with pytest.raises(MachineError, match=f"is missing: {way_out}$"):
        check(build(FabricSpec(bgp=BgpSpec(daemon=daemon))))
