"""Netlab's transformed topology: a small one by hand; ``tests/judges/test_netlab.py`` has netlab's own."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tests.importing.reading import left, links, nics, problems, read, roles


def _node(role: str, asn: int | None = None, interfaces: Sequence[object] = ()) -> dict[str, object]:
    bgp = {"as": asn, "router_id": f"10.0.0.{asn - 65000}"} if asn is not None else None
    return {"role": role, "device": "frr", "bgp": bgp, "interfaces": interfaces}


def _transformed() -> dict[str, object]:
    """The keys of a transformed topology that matter, with an MLAG pair as netlab 26.10 writes it."""
    host = [
        {
            "type": "lag",
            "ifname": "bond1",
            "ipv4": "172.16.0.5/24",
            "gateway": {"ipv4": "172.16.0.1/24"},
            "lag": {"ifindex": 1},
        },
        {"type": "p2p", "ifname": "eth1", "linkindex": 4, "lag": {"_parentindex": 1}},
        {"type": "p2p", "ifname": "eth2", "linkindex": 5, "lag": {"_parentindex": 1}},
    ]
    return {
        "name": "pair",
        "defaults": {},
        "groups": {"leaf": {"members": ["l1", "l2"]}, "spine": {"members": ["s1"]}, "as65001": {"members": ["l1"]}},
        "nodes": {
            "l1": _node("router", 65001),
            "l2": _node("router", 65002),
            "s1": _node("router", 65100),
            "h1": _node("host", None, host),
        },
        "links": [
            {
                "linkindex": 1,
                "bandwidth": 100_000_000,
                "interfaces": [
                    {"node": "l1", "ifname": "swp1", "ipv4": "10.1.0.1/30"},
                    {"node": "s1", "ifname": "swp1", "ipv4": "10.1.0.2/30"},
                ],
            },
            {
                "linkindex": 2,
                "interfaces": [
                    {"node": "l2", "ifname": "swp1", "ipv4": True},
                    {"node": "s1", "ifname": "swp2", "ipv4": True},
                ],
            },
            {
                "linkindex": 3,
                "lag": {"mlag": {"peergroup": 1}},
                "interfaces": [{"node": "l1", "ifname": "swp2"}, {"node": "l2", "ifname": "swp2"}],
            },
            {
                "linkindex": 4,
                "lag": {"_parentindex": 9},
                "interfaces": [{"node": "h1", "ifname": "eth1"}, {"node": "l1", "ifname": "swp3"}],
            },
            {
                "linkindex": 5,
                "lag": {"_parentindex": 9},
                "interfaces": [{"node": "h1", "ifname": "eth2"}, {"node": "l2", "ifname": "swp3"}],
            },
            {"linkindex": 6, "interfaces": [{"node": "l1", "ifname": "swp9"}]},
        ],
    }


def test_a_dual_homed_host_of_an_mlag_pair_is_one_nic() -> None:
    result = read(("netlab.json", json.dumps(_transformed())))
    assert roles(result) == {"l1": "tor", "l2": "tor", "s1": "agg", "h1": "host"}
    assert nics(result) == {"h1": {"bond1": ["eth1", "eth2"]}}
    nic = result.wiring.nodes["h1"].nics["bond1"]
    assert (nic.ip, nic.gateway) == ("172.16.0.5/24", "172.16.0.1")
    assert [(n.asn, n.router_id) for n in result.wiring.nodes.values()][:2] == [
        (65001, "10.0.0.1"),
        (65002, "10.0.0.2"),
    ]
    assert links(result) == ["l1:swp1 s1:swp1", "l2:swp1 s1:swp2", "h1:eth1 l1:swp3", "h1:eth2 l2:swp3"]
    assert [link.rate for link in result.wiring.links] == [100 * 10**9, None, None, None]
    assert [link.addresses for link in result.wiring.links][:2] == [["10.1.0.1/30", "10.1.0.2/30"], None]
    assert left(result) == {"links": ("l1 - l2",), "stub links": ("l1",), "sections": ("defaults",)}


def test_a_network_with_three_nodes_on_a_link_is_refused_with_its_line() -> None:
    data = _transformed()
    data["links"] = [{"linkindex": 1, "interfaces": [{"node": n, "ifname": "e1"} for n in ("l1", "l2", "s1")]}]
    text = json.dumps(data, indent=1)
    line = text.splitlines().index(' "links": [') + 2
    assert problems(("x.json", text)) == (
        f"x.json:{line}: a link of 3 (l1, l2, s1); hpn has cables with two ends: write links of two nodes each, and "
        "netlab create again",
    )


def test_its_yaml_and_a_second_file_are_refused() -> None:
    assert problems(("x.yml", "links:\n- linkindex: 1\n")) == (
        "x.yml:1: netlab's JSON is needed here; write it: netlab create -o json=FILE",
    )
    text = json.dumps(_transformed())
    assert problems(("a.json", text), ("b.json", text)) == (
        "b.json: a second topology; netlab has one file per network, import one",
    )
