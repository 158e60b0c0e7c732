"""Networks as data: every fabric comes back from its own file, structure follows from links, mistakes have a line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.exporting import topology_text
from hpn.testbed.fabric.load import load_fabric, topology_in
from hpn.testbed.fabric.model import Fabric, LinkKind, Role
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.fabric.wired.link_notes import link_notes
from hpn.testbed.files.document import parse
from hpn.testbed.lab.expected_routes import expected_routes
from hpn.testbed.routing.distances import Adjacency
from hpn.testbed.routing.missing_routes import route_notes

from .test_build import possible_specs

_PARTS = ("nodes", "links", "nics", "planes", "stacks", "rails_meet")


def loaded(text: str) -> Fabric:
    return build(topology_in(parse(text, "mine.yaml"), "mine"))


@settings(max_examples=60, deadline=None)
@given(possible_specs)
def test_every_fabric_comes_back_from_its_own_file(spec: object) -> None:
    fabric = build(spec)  # type: ignore[arg-type]
    again = loaded(topology_text(fabric))
    for part in _PARTS:
        assert getattr(again, part) == getattr(fabric, part), part
    assert again.core_ports == fabric.core_ports
    assert again.spec.bgp == fabric.spec.bgp
    assert topology_text(again) == topology_text(loaded(topology_text(again)))


def test_nics_of_more_segments_than_an_octet_holds_keep_their_addresses() -> None:
    """Indexes of switches counted as hosts': the split of 10/8 was another one, and every address with it."""
    fabric = build(FabricSpec(architecture="dcn-plus", nic_ports=1, pods=3, segments=100, hosts=1, aggs=9, cores=1))
    again = loaded(topology_text(fabric))
    assert [(nic.ip, nic.subnet) for nic in again.nics] == [(nic.ip, nic.subnet) for nic in fabric.nics]


_MINE = """
name: mine
architecture: wired
bgp: {{asn: per-switch}}
wiring:
  nodes:
    gpu-a: {{role: host{a}}}
    gpu-b: {{role: host, nics: {{bond0: {{ports: [eth0, eth1]}}}}}}
    leaf1: {{role: leaf, asn: 65001}}
    leaf2: {{role: leaf, asn: 65002}}
    spine1: {{role: spine{spine}}}
  links:
    - {{ends: [leaf1:Ethernet0, gpu-a:eth0]}}
    - {{ends: [gpu-a:eth1, leaf2:Ethernet0]{first}}}
    - {{ends: [gpu-b:eth0, leaf1:Ethernet4]}}
    - {{ends: [gpu-b:eth1, leaf2:Ethernet4]}}
    - {{ends: [spine1:swp1, leaf1:Ethernet48], rate: 800G}}
    - {{ends: [leaf2:Ethernet48, spine1:swp2]{last}}}
{more}
"""
_BOND = ", nics: {bond0: {ports: [eth0, eth1]}}"


def given_ips(text: str, *ips: str) -> str:
    """Return the file with addresses of gpu-a and gpu-b."""
    for host, ip in zip(("gpu-a", "gpu-b"), ips, strict=True):
        plain = f"{host}: {{role: host{_BOND}}}"
        assert plain in text
        text = text.replace(plain, plain.replace("eth1]", f"eth1], ip: {ip}"))
    return text


def mine(a: str = _BOND, spine: str = "", first: str = "", last: str = "", more: str = "") -> str:
    return _MINE.format(a=a, spine=spine, first=first, last=last, more=more)


def test_names_stay_the_users_and_roles_have_their_other_names() -> None:
    fabric = loaded(mine())
    assert [node.name for node in fabric.nodes] == ["gpu-a", "gpu-b", "leaf1", "leaf2", "spine1"]
    assert [node.role for node in fabric.switches] == [Role.TOR, Role.TOR, Role.AGG]
    uplink = fabric.link("leaf1:Ethernet48")
    assert (uplink.name, uplink.kind, uplink.rate_bps) == ("leaf1:Ethernet48-spine1:swp1", LinkKind.FABRIC, 800_000_000)
    assert fabric.link("spine1:swp1") is uplink
    assert fabric.nic("gpu-a.r0").lag == "bond0"
    assert (fabric.node("leaf1").asn, fabric.planes, fabric.rails_meet) == (65001, 1, True)


def test_links_that_hpn_numbers_keep_clear_of_what_the_file_has() -> None:
    """netlab numbers hosts from 172.16.0.0/16; a ToR whose uplink had a host's address never learned the host."""
    text = mine(last=', addresses: ["172.16.0.10/31", "172.16.0.11/31"]')
    fabric = loaded(given_ips(text, "172.16.0.1/29", "172.16.0.2/29"))
    first, given = (fabric.link(f"leaf{number}:Ethernet48") for number in (1, 2))
    assert (first.lower.address, first.upper.address) == ("172.16.0.8/31", "172.16.0.9/31")
    assert (given.lower.address, given.upper.address) == ("172.16.0.10/31", "172.16.0.11/31")


def test_nics_that_hpn_numbers_keep_clear_of_the_files_links() -> None:
    """Links of containerlab files may be 10.0.0.0/31; a leaf with a host's address never reached the host."""
    loopback = ', config: {file: frr.conf, text: "interface lo\\n ip address 10.0.0.1/32\\nrouter bgp 65001"}'
    texts = {
        "10.0": mine(last=', addresses: ["10.1.0.0/31", "10.1.0.1/31"]'),
        "10.1": mine(last=', addresses: ["10.0.0.0/31", "10.0.0.1/31"]'),
        "10.2": mine(last=', addresses: ["10.1.0.0/31", "10.1.0.1/31"]').replace("asn: 65001", f"asn: 65001{loopback}"),
    }
    for start, text in texts.items():
        assert [(nic.ip, nic.gateway, nic.rail_network) for nic in loaded(text).nics] == [
            (f"{start}.0.{host}", f"{start}.0.254", f"{start}.0.0/16") for host in (1, 2)
        ]


@pytest.mark.parametrize(
    ("ips", "links", "told"),
    [
        ((), ', addresses: ["10.0.0.0/8", "10.0.0.1/8"]', "leave hosts no subnet in 10.0.0.0/8; give each NIC an ip"),
        (("172.16.0.1/12", "172.16.0.2/12"), "", "leave links none in 172.16.0.0/12; write those of each link"),
    ],
)
def test_a_file_that_leaves_no_address_to_hpn_is_refused(ips: tuple[str, ...], links: str, told: str) -> None:
    text = mine(last=links)
    with pytest.raises(InputError, match=told):
        loaded(given_ips(text, *ips) if ips else text)


def test_a_nic_goes_by_its_bond_and_by_its_host_where_that_has_one() -> None:
    fabric = loaded(mine())
    assert fabric.nic("gpu-a") == fabric.nic("gpu-a:bond0") == fabric.part("gpu-a:bond0") == fabric.nic("gpu-a.r0")
    assert fabric.part("gpu-a") == fabric.node("gpu-a")
    with pytest.raises(InputError, match="no NIC"):
        load_fabric("tiny").nic("p0.s0.h0")  # it has two


def test_ports_without_a_switch_in_common_above_them_are_planes() -> None:
    text = mine(spine="").replace(
        "leaf2:Ethernet48, spine1:swp2", "leaf2:Ethernet48, spine2:swp1"
    ).replace("    spine1: {role: spine}", "    spine1: {role: spine}\n    spine2: {role: spine}")  # fmt: skip
    fabric = loaded(text)
    assert fabric.planes == 2
    assert {node.name: node.plane for node in fabric.switches} == {"leaf1": 0, "leaf2": 1, "spine1": 0, "spine2": 1}
    assert [[link.plane for link in nic.links] for nic in fabric.nics] == [[0, 1], [0, 1]]


def test_tors_that_share_a_nic_have_lacp_port_ids_apart_also_in_a_ring() -> None:
    names = ["t1", "t2", "t3"]
    nodes = [f"    {name}: {{role: tor}}" for name in names] + ["    s1: {role: agg}"]
    links = [f"    - {{ends: [{name}:up1, s1:d{at}]}}" for at, name in enumerate(names)]
    for at in range(3):
        nodes.append(f"    h{at}: {{role: host, nics: {{bond0: {{ports: [a, b]}}}}}}")
        links += [f"    - {{ends: [h{at}:{port}, {names[(at + way) % 3]}:h{at}]}}" for way, port in enumerate("ab")]
    fabric = loaded("\n".join(["architecture: wired", "wiring:", "  nodes:", *nodes, "  links:", *links]))
    for nic in fabric.nics:
        one, other = (link.upper.port_id for link in nic.links)
        assert one // 300 != other // 300


def test_two_ports_of_a_nic_may_lead_to_one_tor() -> None:
    text = """
architecture: wired
wiring:
  nodes:
    h1: {role: host, nics: {bond0: {ports: [a, b]}}}
    h2: {role: host}
    t1: {role: tor}
  links: [{ends: [h1:a, t1:p1]}, {ends: [h1:b, t1:p2]}, {ends: [h2:a, t1:p3]}]
"""
    fabric = loaded(text)
    assert (fabric.planes, len({link.upper.port_id for link in fabric.links})) == (1, 3)


def test_addresses_of_the_file_are_used() -> None:
    text = mine(
        a=", nics: {bond0: {ports: [eth0, eth1], ip: 192.168.10.11/24}}",
        spine=", router_id: 10.255.0.9",
        last=", addresses: [100.64.0.0/31, 100.64.0.1/31]",
    ).replace(
        "bond0: {ports: [eth0, eth1]}", "bond0: {ports: [eth0, eth1], ip: 192.168.11.12/24, gateway: 192.168.11.1}"
    )
    fabric = loaded(text)
    one, other = fabric.nics
    assert (one.ip, one.gateway, one.subnet) == ("192.168.10.11", "192.168.10.254", "192.168.10.0/24")
    assert (other.gateway, other.rail_network) == ("192.168.11.1", "192.168.10.0/23")
    link = fabric.link("leaf2:Ethernet48")
    assert (link.lower.address, link.upper.address) == ("100.64.0.0/31", "100.64.0.1/31")
    assert fabric.node("spine1").router_id == "10.255.0.9"


def test_a_link_with_a_smaller_mtu_is_named() -> None:
    fabric = loaded(mine(last=", mtu: 1500"))
    assert [link.mtu for link in fabric.links if link.mtu is not None] == [1500]
    assert list(link_notes(fabric)) == [
        f"link leaf2:Ethernet48-spine1:swp2 has mtu 1500, hosts have {fabric.spec.mtu}: it loses larger packets"
    ]
    assert list(link_notes(loaded(mine()))) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (mine(a=""), "mine.yaml:7: gpu-a has 2 links, and nothing says which are one NIC; write nics: {bond0:"),
        (mine(spine=", spare: yes"), "mine.yaml:11: spare of spine1 means nothing for an agg; leave it out"),
        (mine(first=", addresses: [10.0.0.0/31, 10.0.0.1/31]"), "mine.yaml:14: a host's address is its NIC's"),
        (mine(first=", mtu: 1500"), "mine.yaml:14: ports of a LAG have the topology's mtu; leave it out here"),
        (mine(last=", addresses: [10.0.0.0/31, 10.0.9.1/31]"), "are no two addresses of one subnet"),
        (mine(last="}\n    - {ends: [leaf1:Ethernet0, spine1:swp3]"), "leaf1:Ethernet0 has a cable already, links[0]"),
        (mine(first=", name: x", last=", name: x"), "mine.yaml:18: links[1] is called x too"),
        (mine(more="    - {ends: [spine1:swp8, spine1:swp9]}"), "(agg) and spine1 (agg) are linked: hpn joins"),
        (
            mine(more="    - {ends: [leaf1:Ethernet9, leaf2:Ethernet9]}").replace("{asn: per-switch}", "{}")
            .replace(", asn: 65001", "").replace(", asn: 65002", "").replace(", asn: 65100", ""),
            "mine.yaml:19: leaf1 and leaf2 are ToRs of one ASN, and would refuse each other's routes; write bgp:",
        ),
        (mine(more="    - {ends: [gpu-a:eth2, spine1:swp9]}"), "a host and an agg are linked"),
        (mine(more="    - {ends: [leaf1, spine1:swp9]}"), "mine.yaml:19: 'leaf1' has no port; write 'node:port'"),
        (mine(more="    - {ends: [leaf1:e1]}"), "mine.yaml:19: wiring.links[6].ends"),
        (mine(more="    - {ends: [leaf9:e1, spine1:swp9]}"), "there is no node 'leaf9'; did you mean"),
        (mine(more="    - {ends: [leaf1:Ethernet1/1, spine1:swp9]}"), "'Ethernet1/1' of leaf1 cannot be"),
        (mine(more="    - {ends: [leaf1:FourHundredGigE0, spine1:swp9]}"), "at most 15 characters"),
        (mine(more="    - {ends: [leaf1:table, spine1:swp9]}"), "table of leaf1 has no digit"),
        (mine(more="  stacks: [{primary: leaf1, secondary: leaf2}]"), "leaf1 and leaf2 have 0"),
        (mine().replace("bgp: {asn: per-switch}", ""), "leaf1 has an ASN of its own"),
        (mine().replace("role: spine", "role: firewall"), "write one of host, tor, leaf, agg, spine"),
        (mine().replace("    spine1: {role: spine}", "    spine 1: {role: spine}"), "spine 1"),
        (mine().replace("    spine1: {", f"    {'x' * 40}: {{"), "x" * 40),
        (mine(spine="}\n    lonely: {role: tor"), "mine.yaml:12: lonely has no link; add one, or leave the node out"),
        (mine(spine="}\n    all: {role: tor"), "a node cannot be called all"),
        (mine(a=", nics: {bond0: {ports: [eth0, eth7]}}"), "eth7 of gpu-a has no link"),
        (mine(a=", nics: {bond0: {ports: [eth0]}}"), "eth1 of gpu-a is in no NIC"),
        (mine(a=", nics: {b0: {ports: [eth0]}, b1: {ports: [eth0, eth1]}}"), "eth0 of gpu-a is in two NICs"),
        (mine(a=", nics: {b0: {ports: [eth0], rail: 1}, b1: {ports: [eth1]}}"), "2 NICs of gpu-a are of rail 1"),
        (mine(a=", nics: {bond0: {ports: [eth0, eth1], ip: 10.1.1.1/24}}"), "bond0 of gpu-b has no ip and others have"),
        (mine(a=", nics: {bond0: {ports: [eth0, eth1], ip: 10.1.1.300/24}}"), "is no address with a prefix length"),
        (mine(a=", segment: 1" + _BOND), "some hosts have a segment and some have none"),
        (mine(spine=", plane: 1"), "some switches have a plane and some have none"),
        ("architecture: wired", "mine.yaml:1: architecture wired needs a wiring"),
        (mine().replace("architecture: wired", "architecture: hpn"), "wiring means nothing to hpn"),
        (mine(more="segments: 4"), "segments means nothing to wired: the wiring has every node; leave it out"),
        (mine(more="lacp: {tor_system_ids: {leaf7: '02:00:00:00:00:07'}}"), "no ToR 'leaf7' in this fabric"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_its_line_and_the_way_out(text: str, problem: str) -> None:
    with pytest.raises(InputError) as error:
        loaded(text)
    assert problem in str(error.value)


def test_planes_that_links_join_or_a_nic_misses_are_refused() -> None:
    planes = mine(spine=", plane: 0").replace("asn: 65001", "asn: 65001, plane: 0").replace("65002", "65002, plane: 1")
    with pytest.raises(InputError, match="links plane 1 with plane 0, which share nothing"):
        loaded(planes)
    crossed = planes.replace("    - {ends: [leaf2:Ethernet48, spine1:swp2]}\n", "").replace(
        "gpu-b: {role: host, nics: {bond0: {ports: [eth0, eth1]",
        "gpu-b: {role: host, nics: {bond0: {ports: [eth1, eth0]",
    )
    with pytest.raises(InputError, match="bond0 lead to planes 1, 0; a NIC has as many for each, in turn: 0, 1"):
        loaded(crossed)


def test_a_file_loads_by_its_path_and_one_wiring_is_another_experiment_than_another(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(mine())
    assert load_fabric(str(file)).spec.name == "mine"


def two_racks(leaf1: int, leaf2: int, spine: int) -> Fabric:
    nodes = [f"h{at}: {{role: host}}" for at in (1, 2)] + [f"leaf1: {{role: leaf, asn: {leaf1}}}"]
    nodes += [f"leaf2: {{role: leaf, asn: {leaf2}}}", *(f"s{at}: {{role: spine, asn: {spine}}}" for at in (1, 2))]
    links = [f"{{ends: [leaf{leaf}:u{at}, s{at}:d{leaf}]}}" for leaf in (1, 2) for at in (1, 2)]
    links += [f"{{ends: [h{at}:eth0, leaf{at}:p0]}}" for at in (1, 2)]
    head = "architecture: wired\nbgp: {asn: per-switch}\nwiring:\n  nodes:\n    "
    return loaded(head + "\n    ".join(nodes) + "\n  links:\n    - " + "\n    - ".join(links))


def test_a_switch_refuses_a_path_with_its_own_asn_and_the_plan_says_who_has_no_route() -> None:
    ours = two_racks(65001, 65002, 65100)
    assert list(route_notes(ours)) == []
    routes = expected_routes(ours)
    assert len(routes["leaf1"][f"{ours.nic('h2.r0').ip}/32"]) == 2
    assert "leaf1" not in Adjacency(ours, {"leaf1:u1-s1:d1"}).reach({"s1"}).distance, "s1, leaf2, s2 repeats an ASN"
    alike = two_racks(65001, 65001, 65100)
    assert f"{alike.nic('h2.r0').ip}/32" not in expected_routes(alike)["leaf1"]
    assert list(route_notes(alike)) == [
        "leaf1 gets no route to the hosts of leaf2: every path there has its own ASN, 65001, in it",
        "leaf2 gets no route to the hosts of leaf1: every path there has its own ASN, 65001, in it",
    ]
