"""The registry of BGP daemons."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.entries import Registry
from testbed.fabric.daemons import RULES
from testbed.routing.bgp import lacks
from testbed.routing.bird.daemon import BIRD
from testbed.routing.daemons import DAEMONS


def test_what_a_topology_may_name_can_be_run() -> None:
    assert list(DAEMONS) == list(RULES)


def test_a_daemon_of_which_nobody_knows_what_it_can_carry_is_no_entry() -> None:
    with pytest.raises(TypeError, match=r"does not say its rules in testbed\.fabric\.daemons"):
        Registry("BGP daemon", lambda kind: kind.name, (replace(BIRD, name="gobgp"),), lacks)
