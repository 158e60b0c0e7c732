"""R-Pingmesh's trap: the LAG of a NIC decides which port a probe leaves by, so half of the probes miss the one meant.

Source ports that cover the fabric are chosen by the port that they leave by, and paths are traced, never assumed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from hpn.failover.locating.likelihood import likelihood
from hpn.failover.locating.parts import Way, ends_of, suspects_of, ways_of
from hpn.failover.locating.seen import Seen
from hpn.scenarios.model.router import Lag, ModelRouter
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.presets import PRESETS
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.flows.paths import CHOICES
from hpn.traffic.flows.patterns import flows_for
from hpn.traffic.fluid.forwarding import Forwarding
from tests.strangers import draw

FABRICS = {
    "tiny": PRESETS["tiny"].spec,
    "small": PRESETS["small"].spec,
    "clos": draw.spec_of({"preset": "tiny", "architecture": "dual-tor-clos"}),
    "dcn-plus": PRESETS["tiny-dcn-plus"].spec,
}
PACKETS = 400


class Probes:
    """Probes of a choice of source ports; the k-th of a NIC is meant to leave by its port k, modulo their number."""

    def __init__(self, fabric: Fabric, choice: str) -> None:
        flows = flows_for(fabric, "probes", load=0.01, queue_pairs=4, path_mtu=256)
        router = ModelRouter(fabric, Lag(fabric), Forwarding(fabric))
        router.look_up_all(flows)
        self.fabric = fabric
        self.flows: Sequence[FlowSpec] = CHOICES[choice].choose(flows, router, (), fabric.spec.seed).flows
        self.paths = [router.links(flow.src_nic, flow.dst_nic, flow.sport) for flow in self.flows]
        turns: Counter[str] = Counter()
        self.meant = []
        for flow in self.flows:
            links = fabric.nic(flow.src_nic).links
            self.meant.append(links[turns[flow.src_nic] % len(links)].name)
            turns[flow.src_nic] += 1

    @property
    def missing(self) -> float:
        """Share of the probes that leave by another port than they were meant to."""
        wrong = sum(path[0] != meant for path, meant in zip(self.paths, self.meant, strict=True))
        return wrong / len(self.flows)

    def accused(self, link: str, *, as_meant: bool) -> str:
        """Return who is named first when what a NIC sends by ``link`` is lost, by true paths or by those meant."""
        lost = np.array([PACKETS * (path[0] == link) for path in self.paths])
        believed = [self._ways(at, as_meant) for at in range(len(self.flows))]
        suspects = suspects_of(ends_of(self.fabric), believed)
        found = likelihood(Seen(suspects, np.full(len(lost), PACKETS), lost))
        return str(found[0].suspect) if found else ""

    def _ways(self, at: int, as_meant: bool) -> tuple[Way, ...]:
        links = (self.meant[at], *self.paths[at][1:]) if as_meant else self.paths[at]
        host = self.fabric.nic(self.flows[at].src_nic).host
        first = (links[0], True)
        return (first, *ways_of(ends_of(self.fabric), host, self.paths[at])[1:])


@pytest.mark.parametrize("name", FABRICS)
def test_half_of_the_probes_with_hashed_source_ports_miss_the_port_and_none_of_those_that_cover(name: str) -> None:
    fabric = build(FABRICS[name])
    assert Probes(fabric, "drawn").missing == pytest.approx(0.5, abs=0.15)
    assert Probes(fabric, "covering").missing == 0


@pytest.mark.parametrize("name", FABRICS)
def test_every_port_of_every_nic_is_met_both_ways(name: str) -> None:
    fabric = build(FABRICS[name])
    met = Counter(way for path in Probes(fabric, "covering").paths for way in (path[0], path[-1]))
    assert {link.name for nic in fabric.nics for link in nic.links} == set(met)


@pytest.mark.parametrize("name", FABRICS)
def test_a_port_that_loses_everything_is_named_by_true_paths_only(name: str) -> None:
    """By ports that were meant each port of the NIC seems to lose half, and the host or a ToR is blamed."""
    fabric = build(FABRICS[name])
    covering, drawn = Probes(fabric, "covering"), Probes(fabric, "drawn")
    links = [nic.links[index].name for nic in fabric.nics[:4] for index in range(2)]
    assert all(covering.accused(link, as_meant=True).startswith(f"{link} upwards") for link in links)
    assert all(link in drawn.accused(link, as_meant=False) for link in links)
    wrong = [link for link in links if not drawn.accused(link, as_meant=True).startswith(f"{link} upwards")]
    assert len(wrong) >= len(links) / 2
