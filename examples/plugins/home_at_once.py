"""A path policy: as hpn's own, without damping."""

from __future__ import annotations

from dataclasses import replace

from hpn.testbed.routing.pathcontrol.host_agent import HostAgent
from hpn.testbed.routing.pathcontrol.policies import PATH_POLICIES, HostPlace, HostPolicy, PathPolicy


def _agent(place: HostPlace) -> HostPolicy:
    return HostAgent(place.nic, place.ports, replace(place.settings, hold_ms=0), place.port_for, place.seed)


PATH_POLICIES.add(
    PathPolicy("home-at-once", "queue pairs return whenever a plane does, however often it flaps", _agent)
)
