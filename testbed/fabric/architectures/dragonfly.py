"""Dragonfly: groups of switches, all joined within a group, and one link between any two groups (Kim et al., 2008).

Technology-Driven, Highly-Scalable Dragonfly Topology, ISCA 2008, doi 10.1109/ISCA.2008.19. A pod is a group of a
(``segments``) switches, each with p ``hosts`` and h ``global_links``. There are a x h + 1 groups, the most. That paper
balances a = 2p = 2h. Links between groups are laid out in turn: the k-th of group i leads to group i + k + 1.

Paths are minimal: local, global, local. The paper's choice between these and Valiant's is not modelled.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from hpn.testbed.fabric.architectures.architecture import Architecture, Preset, Problem
from hpn.testbed.fabric.architectures.direct import MEANINGLESS, PER_SWITCH, Pair, built, counted, pair
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec

_NAME = "dragonfly"


def dragonfly_pairs(switches: int, global_links: int) -> Iterator[Pair]:
    """Yield the pairs of joined switches, for groups of ``switches`` with ``global_links`` each."""
    groups = switches * global_links + 1
    for group in range(groups):
        first = group * switches
        yield from combinations(range(first, first + switches), 2)
        for link in range(groups - 1):
            far = (group + link + 1) % groups
            if group < far:
                back = groups - 2 - link  # number of this link at the far group
                yield pair(first + link // global_links, far * switches + back // global_links)


def _build(spec: FabricSpec) -> Fabric:
    return built(spec, dragonfly_pairs(spec.segments, spec.global_links))


def _contradictions(spec: FabricSpec) -> Iterator[Problem]:
    """Yield another number of groups than the links between them make."""
    links = spec.segments * spec.global_links
    why = f"{spec.segments} switches with {spec.global_links} global_links join a group with {links} others"
    yield from counted(spec, links + 1, spec.segments, why)


ARCHITECTURE = Architecture(
    _NAME,
    "groups of switches, all joined within a group, one link between any two groups",
    MEANINGLESS,
    _build,
    _contradictions,
    cores=False,
    core_ports="hash",
    direct=True,
    own_keys=("global_links",),
    presets=(
        Preset(
            "12 hosts on 4 groups of 3 switches, one link between any two groups: Dragonfly in 24 nodes",
            FabricSpec(name="tiny-dragonfly", architecture=_NAME, pods=4, segments=3, hosts=1, bgp=PER_SWITCH),
        ),
    ),
)
