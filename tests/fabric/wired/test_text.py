"""The lines of a wiring load as the same wiring, whatever is in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.testbed.fabric.values import parse_rate
from hpn.testbed.fabric.wired.text import rate_text, wiring_lines
from hpn.testbed.fabric.wired.wiring_spec import WiringSpec
from hpn.testbed.files.document import parse

WIRING = WiringSpec.model_validate(
    {
        "nodes": {
            "gpu1": {"role": "host", "nics": {"bond0": {"ports": ["eth0", "eth1"], "ip": "10.0.0.1/24"}}},
            "leaf1": {"role": "leaf", "asn": 65001},
            "no": {"role": "tor"},
            "12": {"role": "spine", "router_id": "10.9.9.9"},
        },
        "links": [
            {"ends": ["gpu1:eth0", "leaf1:Ethernet0"], "rate": "200G"},
            {"ends": ["gpu1:eth1", "no:Ethernet0"], "rate": 1_500_000},
            {"ends": ["leaf1:up_1", "12:e1-1"], "addresses": ["10.1.0.0/31", "10.1.0.1/31"], "name": "a:b-c"},
            {"ends": ["leaf1:peer", "no:peer"]},
        ],
        "stacks": [{"primary": "leaf1", "secondary": "no"}],
    }
)


def test_a_node_and_a_link_are_a_line_each_without_defaults() -> None:
    assert list(wiring_lines(WIRING)) == [
        "wiring:",
        "  nodes:",
        '    gpu1: {role: host, nics: {bond0: {ports: [eth0, eth1], ip: "10.0.0.1/24"}}}',
        "    leaf1: {role: tor, asn: 65001}",
        '    "no": {role: tor}',
        '    "12": {role: agg, router_id: "10.9.9.9"}',
        "  links:",
        "    - {ends: [gpu1:eth0, leaf1:Ethernet0], rate: 200G}",
        "    - {ends: [gpu1:eth1, no:Ethernet0], rate: 1500K}",
        '    - {ends: [leaf1:up_1, "12:e1-1"], name: a:b-c, addresses: ["10.1.0.0/31", "10.1.0.1/31"]}',
        "    - {ends: [leaf1:peer, no:peer]}",
        "  stacks:",
        '    - {primary: leaf1, secondary: "no"}',
    ]


def test_the_lines_are_the_same_wiring_again() -> None:
    data = parse("\n".join(wiring_lines(WIRING)), "x").data
    assert WiringSpec.model_validate(data["wiring"], strict=True) == WIRING


@given(st.integers(1, 10**15))
def test_a_rate_is_exact(rate_bps: int) -> None:
    assert parse_rate(rate_text(rate_bps)) == rate_bps


@pytest.mark.parametrize(("rate_bps", "text"), [(400 * 10**9, "400G"), (10**12, "1T"), (5, "5"), (2_500_000, "2500K")])
def test_a_rate_has_the_largest_unit_that_is_exact(rate_bps: int, text: str) -> None:
    assert rate_text(rate_bps) == text
