"""SimAI's topologies: GPUs of a server become a host, tiers follow from the distance to GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.presets import PRESETS
from tests.importing.reading import left, nics, problems, read, roles


def _dual_plane(gpus: int = 8, per_server: int = 4, aggs: int = 2) -> str:
    """The shape of gen_Topo_Template.py's HPN with two planes: a ToR for each rail and plane."""
    servers = gpus // per_server
    first_tor = gpus + servers
    first_agg = first_tor + 2 * per_server
    last = first_agg + 2 * aggs
    links = list(_links(gpus, per_server, first_tor, first_agg, aggs))
    head = f"{last} {per_server} {servers} {last - first_tor} {len(links)} H100"
    return "\n".join([head, " ".join(map(str, range(gpus, last))) + " ", *links, ""])


def _links(gpus: int, per_server: int, first_tor: int, first_agg: int, aggs: int) -> Iterator[str]:
    for gpu in range(gpus):
        yield f"{gpu} {gpus + gpu // per_server} 2880Gbps 0.000025ms 0"
        for plane in (0, 1):
            yield f"{gpu} {first_tor + plane * per_server + gpu % per_server} 200Gbps 0.0005ms 0"
    for plane in (0, 1):
        for rail in range(per_server):
            for agg in range(aggs):
                yield f"{first_tor + plane * per_server + rail} {first_agg + plane * aggs + agg} 400Gbps 0.0005ms 0"


def test_a_server_is_a_host_with_a_nic_for_each_gpu() -> None:
    result = read(("HPN_8g.topo", _dual_plane()))
    assert list(roles(result).values()).count("host") == 2
    assert list(roles(result).values()).count("tor") == 8
    assert list(roles(result).values()).count("agg") == 4
    assert nics(result)["server1"] == {f"bond{n}": [f"gpu{n}p0", f"gpu{n}p1"] for n in range(4)}
    assert [link.rate for link in result.wiring.links] == [200 * 10**9] * 16 + [400 * 10**9] * 16
    assert left(result)["NVLink switches"] == ("2 switches", "8 links")
    assert len({end for link in result.wiring.links for end in link.ends}) == 64


def _rail_optimised(segments: int, servers: int, per_server: int, aggs: int) -> str:
    """The shape of its Spectrum-X: a ToR for each segment and rail, all of them below all of the switches above."""
    gpus = segments * servers * per_server
    first_tor = gpus + segments * servers
    first_agg = first_tor + segments * per_server
    links = []
    for gpu in range(gpus):
        links.append(f"{gpu} {gpus + gpu // per_server} 2880Gbps 0.000025ms 0")
        tor = gpu // (servers * per_server) * per_server + gpu % per_server
        links.append(f"{gpu} {first_tor + tor} 400Gbps 0.0005ms 0")
    pairs = [(tor, agg) for tor in range(first_tor, first_agg) for agg in range(first_agg, first_agg + aggs)]
    links += [f"{tor} {agg} 400Gbps 0.0005ms 0" for tor, agg in pairs]
    last = first_agg + aggs
    head = f"{last} {per_server} {segments * servers} {last - first_tor} {len(links)} H100"
    return "\n".join([head, " ".join(map(str, range(gpus, last))) + " ", *links, ""])


def test_a_rail_optimised_network_of_simai_is_our_preset_link_by_link() -> None:
    """Names differ, so nodes are told by their place among their like."""
    ours = build(PRESETS["tiny-superpod"].spec)
    theirs = read(("Spectrum-X.topo", _rail_optimised(2, 2, 4, 2))).wiring
    order = [[name for name, node in theirs.nodes.items() if node.role == role] for role in ("host", "tor", "agg")]
    places = [[node.name for node in ours.nodes if node.role == role] for role in ("host", "tor", "agg")]
    assert [len(names) for names in order] == [len(names) for names in places] == [4, 8, 2]
    ours_by_theirs = dict(
        zip((n for names in order for n in names), (n for names in places for n in names), strict=True)
    )
    found = Counter(
        (frozenset(ours_by_theirs[end.partition(":")[0]] for end in link.ends), link.rate) for link in theirs.links
    )
    rate = ours.spec.scale
    assert found == Counter(
        (frozenset((link.lower.node, link.upper.node)), link.rate_bps * rate) for link in ours.links
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("22 4 2 12 32 H100\n8 9\n", "x.topo:2: 2 switches are listed, the first line says 14; list their numbers"),
        ("14 4 2 12 32 H100\n", "x.topo:1: no GPUs are left beside 14 switches; the first line is NODES"),
        (_dual_plane() + "0 99 1Gbps 0ms 0\n", "x.topo:43: there is no node 99: the first line says 22; correct one"),
        (_dual_plane() + "0 13\n", "x.topo:43: '0 13' is no link; write SOURCE DESTINATION BANDWIDTH LATENCY"),
        (_dual_plane() + "0 13 fast 0ms 0\n", "x.topo:43: bandwidth: 'fast' is not a rate; write one such as 200G"),
    ],
)
def test_a_mistake_has_its_place_its_cause_and_a_way_out(text: str, problem: str) -> None:
    assert problem in problems(("x.topo", text))[0]
