"""Direct networks as labs: every packet takes a minimal path that the model knows, and goes round a cut link."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from hpn.testbed.fabric.model import Fabric, Node
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.kernel.rtnetlink.rtnl import PROTO_HOST_ROUTE
from hpn.testbed.lab.expected_state import deviations
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.state import state
from hpn.testbed.routing.distances import Adjacency
from hpn.testbed.routing.trace import Flow
from hpn.traffic.fluid.forwarding import Forwarding
from tests.lab.running import cut, mend, ping, running, whole_again

pytestmark = pytest.mark.kernel

SPORTS = range(50_000, 50_006)


def paths_are_the_models(lab: Lab, down: Collection[str] = ()) -> int:
    """Compare the paths from one NIC to all others with the model's; the number of links that they cross."""
    fabric, forwarding = lab.fabric, Forwarding(lab.fabric, down)
    source, *others = fabric.nics
    reach = Adjacency(fabric, down).joined(source.links[0].upper.node)
    crossed: set[str] = set()
    for nic in others:
        for sport in SPORTS:
            found = lab.path(Flow(source.name, nic.name, sport))
            assert found.dropped is None, found
            routed = forwarding.walk([source], [nic], [0], [sport])
            assert found.links == tuple(fabric.links[link // 2].name for link in routed.links[0] if link >= 0)
            assert len(found.links) == reach[nic.links[0].upper.node] + 2, "a minimal path"
            crossed.update(found.links)
    return len(crossed)


@pytest.mark.parametrize("preset", ["tiny-torus", "tiny-ub-mesh", "tiny-dragonfly"])
async def test_packets_of_a_direct_network_take_minimal_paths_and_go_round_a_cut_link(preset: str) -> None:
    async with running(PRESETS[preset].spec) as lab:
        before = state(lab)
        assert deviations(lab) == ()
        source, *_, last = lab.fabric.nics
        assert "ttl=" in ping(lab, source.host, last.ip)
        healthy = paths_are_the_models(lab)
        link = next(each for each in lab.fabric.links if each.is_routed)
        cut(lab, link)
        wanted = Forwarding(lab.fabric, [link.name])
        await lab.wait_for(lambda: _routed_as(lab, wanted), 10)
        assert "ttl=" in ping(lab, source.host, last.ip)
        assert paths_are_the_models(lab, [link.name]) <= healthy + 2
        mend(lab, link)
        await whole_again(lab, before)


def _routed_as(lab: Lab, wanted: Forwarding) -> bool:
    """Return True if every switch's kernel has the model's next hops for every NIC of others."""
    return all(_hops(lab, node.name) == _hops_of(lab.fabric, node, wanted) for node in lab.fabric.switches)


def _hops(lab: Lab, switch: str) -> dict[str, set[int]]:
    of_nics = {f"{nic.ip}/32" for nic in lab.fabric.nics}
    routes = (route for route in lab.requests(switch).routes() if route.prefix in of_nics)
    return {route.prefix: set(route.oifs) for route in routes if route.protocol != PROTO_HOST_ROUTE}


def _hops_of(fabric: Fabric, node: Node, wanted: Forwarding) -> dict[str, set[int]]:
    others = (nic for nic in fabric.nics if node.name not in wanted.owners(nic))
    return {
        f"{nic.ip}/32": {link.end_at(node.name).ifindex for link in wanted._links(node, wanted.owners(nic))}
        for nic in others
    }
