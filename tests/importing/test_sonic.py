"""SONiC's config_db.json: neighbours, roles by type, port channels and subnets."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.importing.reading import left, links, nics, problems, read, roles

SPEEDS = {"Ethernet0": "400000", "Ethernet8": "200000"}


def _switch(name: str, kind: str, neighbours: Mapping[str, tuple[str, str]], **tables: object) -> tuple[str, str]:
    data = {
        "DEVICE_METADATA": {"localhost": {"hostname": name, "bgp_asn": f"650{name[-1]}0", "type": kind}},
        "PORT": {port: {"alias": f"Eth{port[8:]}", "lanes": "1", "speed": s} for port, s in SPEEDS.items()},
        "LOOPBACK_INTERFACE": {"Loopback0": {}, f"Loopback0|10.1.0.{name[-1]}/32": {}},
        "DEVICE_NEIGHBOR": {port: {"name": far, "port": at} for port, (far, at) in neighbours.items()},
        **tables,
    }
    return f"{name}.json", json.dumps(data, indent=2)


SERVER = {"gpu1": {"type": "Server"}}
LEAF1 = _switch(
    "leaf1",
    "LeafRouter",
    {"Ethernet0": ("spine3", "Eth0"), "Ethernet8": ("gpu1", "eth0")},
    DEVICE_NEIGHBOR_METADATA=SERVER,
    PORTCHANNEL={"PortChannel1": {"min_links": "1"}},
    PORTCHANNEL_MEMBER={"PortChannel1|Ethernet8": {}},
    PORT_QOS_MAP={"Ethernet0": {"pfc_enable": "3,4"}},
    DSCP_TO_TC_MAP={"AZURE": {"3": "3"}},
    FEATURE={},
)
LEAF2 = _switch(
    "leaf2",
    "LeafRouter",
    {"Ethernet8": ("gpu1", "eth1")},
    DEVICE_NEIGHBOR_METADATA=SERVER,
    INTERFACE={"Ethernet0": {}, "Ethernet0|10.0.0.2/31": {}},
    PORTCHANNEL={"PortChannel1": {"members": ["Ethernet8"]}},
)
SPINE3 = _switch(
    "spine3",
    "SpineRouter",
    {"Ethernet0": ("leaf1", "Ethernet0")},
    INTERFACE={"Ethernet8|10.0.0.3/31": {}},
    PORT={port: {"alias": f"Eth{port[8:]}", "speed": "400000"} for port in ("Ethernet0", "Ethernet8")},
)


def test_two_tiers_with_a_dual_homed_server_are_taken() -> None:
    result = read(LEAF1, LEAF2, SPINE3)
    assert roles(result) == {"leaf1": "tor", "leaf2": "tor", "spine3": "agg", "gpu1": "host"}
    assert nics(result) == {"gpu1": {"bond0": ["eth0", "eth1"]}}
    assert links(result) == [
        "leaf1:Ethernet0 spine3:Ethernet0",
        "leaf1:Ethernet8 gpu1:eth0",
        "leaf2:Ethernet8 gpu1:eth1",
        "leaf2:Ethernet0 spine3:Ethernet8",
    ]
    assert [link.rate for link in result.wiring.links][:2] == [400 * 10**9, 200 * 10**9]
    assert [(n.asn, n.router_id) for n in result.wiring.nodes.values()][:1] == [(65010, "10.1.0.1")]
    assert left(result)["tables"] == ("FEATURE",)
    assert result.left[0].names == ("DSCP_TO_TC_MAP", "PORT_QOS_MAP")
    assert "not used yet" in result.left[0].why


def test_a_cable_that_only_addresses_tell_is_noted() -> None:
    assert read(LEAF1, LEAF2, SPINE3).notes == (
        "no switch is a ToRRouter, so LeafRouter is a tor and SpineRouter an agg",
        "cables that no DEVICE_NEIGHBOR names, but addresses of one subnet at both ends: 1",
    )


def test_ends_with_different_speeds_are_no_cable() -> None:
    (found,) = problems(
        LEAF1, _switch("spine3", "SpineRouter", {}, PORT={"Ethernet0": {"alias": "Eth0", "speed": "100000"}})
    )
    line = LEAF1[1].splitlines().index('  "DEVICE_NEIGHBOR": {') + 2
    assert found == (
        f"leaf1.json:{line}: the ends of a cable have different speeds, leaf1:Ethernet0 400G and "
        "spine3:Ethernet0 100G; correct one"
    )


def test_where_there_is_a_tor_leaf_routers_are_the_tier_above() -> None:
    tor = _switch("t1", "ToRRouter", {"Ethernet0": ("l2", "Ethernet0")})
    leaf = _switch("l2", "LeafRouter", {"Ethernet8": ("s3", "Ethernet8")})
    assert roles(read(tor, leaf, _switch("s3", "SpineRouter", {}))) == {"t1": "tor", "l2": "agg", "s3": "core"}


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (
            (LEAF1, LEAF1),
            "leaf1.json:4: switch 'leaf1' is there already (leaf1.json:4); rename one",
        ),
        (
            (_switch("a1", "LeafRouter", {"Ethernet0": ("b2", "Ethernet99")}), _switch("b2", "SpineRouter", {})),
            "b2 has no port 'Ethernet99' (PORT in b2.json); correct one",
        ),
        (
            (_switch("a1", "LeafRouter", {"Ethernet0": ("fw", "p1")}),),
            "node fw: no role (no file, no type in DEVICE_NEIGHBOR_METADATA); say which",
        ),
        ((("a.json", '{"DEVICE_METADATA": {}}'),), "a.json:1: the switch has no name; add localhost: hostname"),
        ((("a.json", '{"DEVICE_METADATA": {"localhost": 5}}'),), "a.json:1: DEVICE_METADATA.localhost is 5; write"),
        ((("a.json", '{"DEVICE_METADATA": {,}}'),), "a.json:1: not JSON: Expecting property name"),
    ],
)
def test_a_mistake_has_its_place_its_cause_and_a_way_out(files: tuple[tuple[str, str], ...], problem: str) -> None:
    assert problem in problems(*files)[0]


def test_neighbours_that_disagree_are_two_cables_in_one_port() -> None:
    found = problems(
        _switch("a1", "LeafRouter", {"Ethernet0": ("s3", "Ethernet0")}),
        _switch("b2", "LeafRouter", {"Ethernet0": ("s3", "Ethernet8")}),
        _switch("s3", "SpineRouter", {"Ethernet0": ("b2", "Ethernet0")}),
    )
    assert any("port s3:Ethernet0 has a cable already (a1.json:" in each for each in found)
