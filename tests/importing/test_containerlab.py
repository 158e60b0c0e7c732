"""Containerlab topologies: both formats of links, roles by label, group and kind, and what is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.testbed.importing.configs import with_configs
from tests.importing.reading import left, links, nics, problems, read, roles

LAB = """\
name: mylab
topology:
  defaults: {labels: {hpn-asn: 65000}}
  kinds:
    nokia_srlinux: {image: ghcr.io/nokia/srlinux, labels: {hpn-role: leaf}}
    linux: {image: alpine}
  groups:
    spine: {kind: arista_ceos, type: x}
  nodes:
    leaf1: {kind: nokia_srlinux, startup-config: ../outside.cfg}
    leaf2: {kind: nokia_srlinux, labels: {hpn-asn: 65002}}
    spine1: {group: spine}
    gpu1: {kind: linux, labels: {hpn-nics: bond7=eth1+eth2}, binds: ["/etc/passwd:/x"]}
    gpu2: {kind: linux}
    prometheus: {kind: linux}
  links:
    - endpoints: ["leaf1:e1-1", "spine1:ethernet-1/1"]
      ipv4: [10.0.0.0/31, 10.0.0.1/31]
    - type: veth
      endpoints:
        - {node: leaf2, interface: e1-1, ipv4: 10.0.0.2/31}
        - {node: spine1, interface: ethernet-1/2, ipv4: 10.0.0.3/31}
      labels: {hpn-rate: 400G}
      mtu: 9000
    - endpoints: ["gpu1:eth1", "leaf1:e1-2"]
    - endpoints: ["gpu1:eth2", "leaf2:e1-2"]
    - endpoints: ["gpu2:eth1", "leaf2:e1-3"]
    - endpoints: ["mgmt-net:br9", "leaf2:e1-4"]
    - {type: host, endpoint: {node: leaf1, interface: e1-9}, host-interface: y}
"""


def test_nodes_links_labels_and_addresses_are_taken() -> None:
    result = read(("x.clab.yml", LAB))
    assert result.name == "mylab"
    assert roles(result) == {"leaf1": "tor", "leaf2": "tor", "spine1": "agg", "gpu1": "host", "gpu2": "host"}
    assert links(result) == [
        "leaf1:e1-1 spine1:ethernet-1-1",
        "leaf2:e1-1 spine1:ethernet-1-2",
        "gpu1:eth1 leaf1:e1-2",
        "gpu1:eth2 leaf2:e1-2",
        "gpu2:eth1 leaf2:e1-3",
    ]
    assert nics(result) == {"gpu1": {"bond7": ["eth1", "eth2"]}}
    assert [node.asn for node in result.wiring.nodes.values()] == [65000, 65002, 65000, None, None]
    assert result.wiring.links[0].addresses == ["10.0.0.0/31", "10.0.0.1/31"]
    assert (result.wiring.links[1].addresses, result.wiring.links[1].rate) == (
        ["10.0.0.2/31", "10.0.0.3/31"],
        400 * 10**9,
    )


def test_images_binds_and_links_out_of_the_lab_are_told_as_left() -> None:
    found = left(read(("x.clab.yml", LAB)))
    assert found["image"] == ("kind nokia_srlinux", "kind linux")
    assert found["binds"] == ("gpu1",)
    assert found["startup-config"] == ("leaf1",)
    assert found["links"] == ("x.clab.yml:28", "x.clab.yml:29")
    assert found["nodes"] == ("prometheus",)
    assert found["settings of links"] == ("endpoint", "host-interface", "mtu")


STRANGERS = """\
name: fdc
topology:
  nodes:
    spine1: {group: spine, binds: [config/s1-frr.conf:/etc/frr/frr.conf]}
    leaf1: {group: leaf, binds: [config/leaf1:/etc/frr/, "config/leaf1/hosts:/etc/hosts"]}
    leaf2: {group: leaf, exec: [ip addr add 10.0.0.0/31 dev eth1, vtysh -b]}
    h1: {kind: linux, exec: [ip addr add 192.168.1.2/24 dev eth1, ip route replace 0/0 via 192.168.1.1]}
    h2:
      kind: linux
      exec:
        - bash -c 'ip -4 address add dev eth1 192.168.2.2/24 && ip r add 10.0.0.0/8 via 192.168.2.254'
        - ip link set eth1 mtu 9000
    h3: {kind: linux, labels: {hpn-nics: bond0=eth1+eth2}, exec: [ip addr add 192.168.3.2/24 dev bond0]}
  links:
    - endpoints: [leaf1:eth1, spine1:eth1]
    - {endpoints: [leaf2:eth1, spine1:eth2], ipv4: ["", 10.0.0.1/31]}
    - endpoints: [h1:eth1, leaf1:eth2]
    - endpoints: [h2:eth1, leaf2:eth2]
    - endpoints: [h3:eth1, leaf1:eth3]
    - endpoints: [h3:eth2, leaf2:eth3]
"""


def test_addresses_in_commands_and_configurations_in_folders_are_taken() -> None:
    """As public labs have them: martimy/clab-bgp-frr binds folders, and numbers its hosts by exec."""
    result = read(("x.clab.yml", STRANGERS))
    nodes = result.wiring.nodes
    assert [nodes[name].config for name in ("spine1", "leaf1", "leaf2")] == [
        "config/s1-frr.conf",
        "config/leaf1/frr.conf",
        None,
    ]
    assert {name: [(nic.ip, nic.gateway) for nic in nodes[name].nics.values()] for name in ("h1", "h2", "h3")} == {
        "h1": [("192.168.1.2/24", "192.168.1.1")],
        "h2": [("192.168.2.2/24", "192.168.2.254")],
        "h3": [("192.168.3.2/24", None)],
    }
    assert [link.addresses for link in result.wiring.links][:2] == [None, ["10.0.0.0/31", "10.0.0.1/31"]]
    assert left(result) == {"binds": ("leaf1",), "exec": ("leaf2", "h2")}


def test_addresses_of_some_hosts_only_are_left_with_who_has_none() -> None:
    result = read(("x.clab.yml", STRANGERS.replace("exec: [ip addr add 192.168.3.2/24 dev bond0]", "exec: [sleep 1]")))
    assert [nic.ip for node in result.wiring.nodes.values() for nic in node.nics.values()] == [None, None, None]
    assert [(each.what, each.why, each.names) for each in result.left][-1] == (
        "addresses of NICs",
        "h3 has none, so hpn numbers all",
        ("h1", "h2"),
    )


def test_a_linux_node_with_the_image_of_a_router_is_not_taken_for_a_host() -> None:
    lab = (
        "topology:\n  nodes:\n    r1: {kind: linux, image: quay.io/frrouting/frr}\n    h1: {kind: linux}\n"
        "  links:\n    - endpoints: [r1:eth1, h1:eth1]\n"
    )
    assert problems(("x.clab.yml", lab)) == (
        "x.clab.yml:3: node r1: no role (kind 'linux', image 'quay.io/frrouting/frr'); say which (host, tor, agg, "
        "core): --role 'r*=tor', or leave it out: --leave 'r*'",
    )


_NODES = "topology:\n  nodes:\n    leaf1: {group: leaf}\n    h1: {kind: linux}\n"


@pytest.mark.parametrize(
    ("lab", "problem"),
    [
        (
            _NODES + "  links:\n    - endpoints: [leaf1:e1]\n",
            "x.clab.yml:6: a link has two endpoints, this one has 1; write",
        ),
        (
            _NODES + "  links:\n    - endpoints: [leaf1:e1, h2:eth1]\n",
            "x.clab.yml:6: h2:eth1: there is no node 'h2'; did you mean h1?",
        ),
        (
            _NODES + "  links:\n    - endpoints: [leaf1, h1:eth1]\n",
            "x.clab.yml:6: endpoint 'leaf1' has no node or no interface; write node:interface",
        ),
        (
            _NODES + "  links:\n    - {type: wormhole, endpoints: [leaf1:e1, h1:eth1]}\n",
            "x.clab.yml:6: link type 'wormhole' is unknown; containerlab has brief, dummy, host",
        ),
        (
            "topology:\n  nodes:\n    leaf1: {labels: {hpn-role: boss}}\n  links: []\n",
            "x.clab.yml:3: label hpn-role is 'boss'; write host, tor, agg or core",
        ),
        (
            _NODES + "  links:\n    - {endpoints: [leaf1:e1, h1:eth1], labels: {hpn-rate: quick}}\n",
            "x.clab.yml:6: label hpn-rate: 'quick' is not a rate",
        ),
        (_NODES, "x.clab.yml:3: no cable joins two nodes; there is nothing to build"),
        ("topology:\n  links: []\n", "'nodes' is missing in topology"),
        ("topology:\n  nodes: {a: &x {kind: linux}, b: *x}\n", "x.clab.yml:2: '&x' is a YAML anchor; write the value"),
        (
            "topology:\n  nodes:\n    br0: {kind: bridge}\n    h1: {kind: linux}\n  links:\n"
            "    - endpoints: [br0:a, h1:b]\n",
            "x.clab.yml:3: node br0: no role (kind 'bridge'); say which",
        ),
    ],
)
def test_a_mistake_has_its_place_its_cause_and_a_way_out(lab: str, problem: str) -> None:
    assert problem in problems(("x.clab.yml", lab))[0]


def test_configurations_of_routing_daemons_come_along_and_others_do_not(tmp_path: Path) -> None:
    lab = _NODES.replace(
        "{group: leaf}", "{group: leaf, binds: ['leaf1/frr.conf:/etc/frr/frr.conf:ro', 'd:/etc/frr/daemons']}"
    )
    lab += "    r2: {group: leaf, binds: ['/etc/frr/frr.conf:/etc/frr/frr.conf']}\n"
    lab += "    r3: {group: leaf, binds: ['r3/frr.conf:/etc/frr/frr.conf']}\n"
    lab += "  links:\n    - endpoints: [leaf1:e1, h1:eth1]\n    - endpoints: [r2:e1, h1:eth2]\n"
    lab += "    - endpoints: [r3:e1, h1:eth3]\n"
    result = read(("x.clab.yml", lab), nic=["eth*"])
    assert result.wiring.nodes["leaf1"].config == "leaf1/frr.conf"
    assert left(result)["binds"] == ("leaf1",)
    folder = tmp_path / "lab"
    (folder / "leaf1").mkdir(parents=True)
    (folder / "leaf1" / "frr.conf").write_text("router bgp 65001\n")
    placed = with_configs(result, folder, tmp_path)
    assert {name: node.config for name, node in placed.wiring.nodes.items() if node.config} == {
        "leaf1": "lab/leaf1/frr.conf"
    }
    assert [each.names for each in placed.left if each.what == "configurations"] == [
        ("r2 /etc/frr/frr.conf",),
        ("r3 r3/frr.conf",),
    ]
    assert "copy them there" in placed.left[-2].why
