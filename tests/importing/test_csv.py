"""A CSV of cables: what is taken, and every mistake with its place."""

from __future__ import annotations

import pytest

from tests.importing.reading import left, links, nics, problems, read, roles

HEAD = "a_node,a_port,b_node,b_port,rate\n"
CABLES = HEAD + (
    "leaf1,Ethernet1/1,spine1,1/1/1,400G\n"
    "leaf2,Ethernet1/1,spine1,1/1/2,400G\n"
    "gpu1,eth1,leaf1,Ethernet1/2,200G\n"
    "gpu1,eth2,leaf2,Ethernet1/2,200G\n"
)
ROLES = ("leaf*=tor", "spine*=agg", "gpu*=host")


def test_cables_with_roles_and_nics_from_the_command_line_are_a_wiring() -> None:
    result = read(("x.csv", CABLES), role=ROLES, nic=["eth1+eth2"])
    assert roles(result) == {"leaf1": "tor", "spine1": "agg", "leaf2": "tor", "gpu1": "host"}
    assert links(result) == [
        "leaf1:Ethernet1-1 spine1:p1-1-1",
        "leaf2:Ethernet1-1 spine1:p1-1-2",
        "gpu1:eth1 leaf1:Ethernet1-2",
        "gpu1:eth2 leaf2:Ethernet1-2",
    ]
    assert [link.rate for link in result.wiring.links] == [400 * 10**9] * 2 + [200 * 10**9] * 2
    assert nics(result) == {"gpu1": {"bond0": ["eth1", "eth2"]}}
    assert ("spine1", "1/1/1", "p1-1-1") in [(each.node, each.old, each.new) for each in result.renamed]


def test_a_pattern_makes_each_port_a_nic() -> None:
    assert nics(read(("x.csv", CABLES), role=ROLES, nic=["eth*"])) == {"gpu1": {"bond0": ["eth1"], "bond1": ["eth2"]}}


def test_columns_of_other_tools_semicolons_and_comments_are_understood() -> None:
    text = (
        "Source;Source Port;Destination;Destination Port;Colour\n"
        "# in rack 4\n"
        '"gpu1";eth0;leaf1;swp1;red\n\n'
        "leaf1;swp2;spine1;swp1;blue\n"
    )
    result = read(("x.csv", text), role=ROLES)
    assert links(result) == ["gpu1:eth0 leaf1:swp1", "leaf1:swp2 spine1:swp1"]
    assert left(result) == {"columns": ("'Colour'",)}


def test_roles_and_lags_of_columns_need_no_options() -> None:
    text = (
        "a_node,a_port,b_node,b_port,a_role,b_role,a_nic\n"
        "gpu1,eth0,x1,p0,gpu server,leaf,bond4\ngpu1,eth1,x2,p0,,leaf,bond4\nx1,p9,y,p1,,spine,\n"
    )
    result = read(("x.csv", text))
    assert roles(result) == {"gpu1": "host", "x1": "tor", "x2": "tor", "y": "agg"}
    assert nics(result) == {"gpu1": {"bond4": ["eth0", "eth1"]}}


def test_nodes_without_a_role_are_told_once_for_each_kind_of_name() -> None:
    assert problems(("x.csv", CABLES)) == (
        "x.csv:2: node leaf1, leaf2: no role; say which (host, tor, agg, core): --role 'leaf*=tor', or leave it out: "
        "--leave 'leaf*'",
        "x.csv:2: node spine1: no role; say which (host, tor, agg, core): --role 'spine*=agg', or leave it out: "
        "--leave 'spine*'",
        "x.csv:4: node gpu1: no role; say which (host, tor, agg, core): --role 'gpu*=host', or leave it out: "
        "--leave 'gpu*'",
    )


def test_several_ports_of_a_host_need_a_word_on_their_nics() -> None:
    assert problems(("x.csv", CABLES), role=ROLES) == (
        "x.csv:4: host gpu1: nothing bundles its ports eth1, eth2; say which are one NIC: --nic eth1+eth2, or that "
        "each is one: --nic 'eth*'",
    )


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ("gpu1,eth1,,,\n", "x.csv:2: b_node, b_port is empty; a cable has two ends, each a node and a port"),
        (
            "gpu1,eth1,leaf1,p1,\ngpu2,eth1,leaf1,p1,\n",
            "x.csv:3: port leaf1:p1 has a cable already (x.csv:2); correct one of them",
        ),
        ("gpu1,eth1,gpu1,eth2,\n", "x.csv:2: gpu1:eth1 - gpu1:eth2 has both ends at one node; correct one"),
        ("gpu1,eth1,leaf1,p1,fast\n", "x.csv:2: rate: 'fast' is not a rate; write one such as 200G"),
        ("gpu 1,eth1,leaf1,p1,\n", "x.csv:2: 'gpu 1' cannot be the name of a node here: letters, digits"),
        (f"gpu{'1' * 40},eth1,leaf1,p1,\n", "at most 32, first a letter or digit; rename it there"),
        ('gpu1,"eth1,leaf1,p1,\n', "x.csv:2: unexpected end of data; correct the quotes of this row"),
        ("gpu1,eth1,spine1,p1,\n", "x.csv:2: gpu1:eth1 - spine1:p1 joins host and agg; cables join neighbouring tiers"),
        (
            "gpu1,eth1,leaf1,p1,\nleaf1,p2,spine1,p1,\nleaf1,p3,leaf2,p3,\n",
            "x.csv:4: leaf1:p3 - leaf2:p3 joins tor and tor; cables join neighbouring tiers",
        ),
    ],
)
def test_a_mistake_has_its_place_its_cause_and_a_way_out(rows: str, problem: str) -> None:
    known = [each for each in ROLES if each.partition("*")[0] in rows]
    (found,) = problems(("x.csv", HEAD + rows), role=known)
    assert problem in found


def test_a_lag_of_nine_ports_is_no_nic() -> None:
    rows = "".join(f"gpu1,e{n},leaf{n},p1,200G,lag1\n" for n in range(9))
    found = problems(("x.csv", HEAD.replace("\n", ",a_nic\n") + rows), role=["gpu*=host", "leaf*=tor"])
    assert found == (
        "x.csv:2: host gpu1: its LAG 'lag1' has 9 ports; a NIC has at most 8: bundle others with --nic, such as "
        "--nic e0+e1",
    )


def test_a_file_without_the_columns_says_how_to_begin() -> None:
    assert problems(("x.csv", "gpu1,eth1,leaf1,p1\n")) == (
        "x.csv:1: no single column for a_node, a_port, b_node, b_port; begin with a line a_node,a_port,b_node,b_port "
        "and name the columns so",
    )


def test_what_is_left_out_on_purpose_is_told_with_its_cables() -> None:
    text = CABLES + "mgmt1,p1,leaf1,eth0,\nleaf1,p7,leaf2,p7,\n"
    result = read(("x.csv", text), role=ROLES, nic=["eth1+eth2"], leave=["mgmt*", "leaf1:p7"])
    assert "mgmt1" not in result.wiring.nodes
    assert left(result) == {
        "nodes": ("mgmt1",),
        "cables": ("mgmt1:p1 - leaf1:eth0", "leaf1:p7 - leaf2:p7"),
    }


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"leave": ["nobody*"]}, "--leave 'nobody*' matches no node and no 'node:port'; check the pattern"),
        ({"role": ["x*=tor"]}, "--role 'x*'=tor matches no node; check the pattern"),
        ({"role": ["leaf*=router"]}, "--role 'leaf*=router': write PATTERN=ROLE, such as 'leaf*=tor'; roles are host"),
        ({"nic": ["a+b+c"]}, "--nic 'a+b+c': a NIC has one port or two; write eth1+eth2, or eth1"),
    ],
)
def test_an_option_that_does_nothing_is_a_mistake(options: dict[str, list[str]], problem: str) -> None:
    (found,) = problems(("x.csv", CABLES), **options)
    assert problem in found


def test_thousands_of_mistakes_become_a_page() -> None:
    rows = "".join(f"a{n},p,b{n},\n" for n in range(3000))
    found = problems(("x.csv", HEAD + rows))
    assert len(found) == 21
    assert found[-1] == "... and 2,980 more mistakes; correct these first"
