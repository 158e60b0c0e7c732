"""NetBox's answers: devices with roles, interfaces with speeds and LAGs, cables of old and new versions."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from tests.importing.reading import left, links, nics, problems, read, roles

ROLES = {
    "leaf1": "leaf",
    "leaf2": "tor-switch",
    "spine1": "Spine",
    "gpu1": "gpu-server",
    "fw1": "firewall",
    "pdu1": "pdu",
}


def _device(name: str, **more: object) -> dict[str, object]:
    number = list(ROLES).index(name) + 1
    role = {"id": number, "name": ROLES[name].title(), "slug": ROLES[name].lower()}
    return {"id": number, "name": name, "device_type": {"id": 1}, "role": role, "custom_fields": {}, **more}


def _interface(label: str, **more: object) -> dict[str, object]:
    node, port = label.split(" ")
    return {"id": 1, "device": {"id": 1, "name": node}, "name": port, "lag": None, "speed": None, **more}


def _end(label: str, kind: str = "dcim.interface") -> dict[str, object]:
    node, port = label.split(" ")
    device = {"id": 1, "name": node} if node != "-" else None
    return {"object_type": kind, "object_id": 1, "object": {"id": 1, "device": device, "name": port}}


def _cable(one: str, two: str, **more: object) -> dict[str, object]:
    ends = {"a_terminations": [_end(one)], "b_terminations": [_end(two)]}
    return {"id": 1, **ends, "status": {"value": "connected", "label": "Connected"}, **more}


def _answer(name: str, objects: Sequence[object]) -> tuple[str, str]:
    return f"{name}.json", json.dumps({"count": len(objects), "next": None, "results": objects}, indent=1)


LAG = {"lag": {"id": 9, "name": "bond0"}}
DEVICES = _answer(
    "devices",
    [_device("leaf1", custom_fields={"bgp_asn": 65001}), *(_device(name) for name in list(ROLES)[1:])],
)
INTERFACES = _answer(
    "interfaces",
    [
        _interface("leaf1 Ethernet1/1", type={"value": "400gbase-x-osfp"}),
        _interface("gpu1 eth0", speed=200_000_000, **LAG),
        _interface("gpu1 eth1", type={"value": "200gbase-x-qsfp56"}, **LAG),
        _interface(
            "leaf2 Ethernet1/1",
            connected_endpoints_type="dcim.interface",
            connected_endpoints=[{"id": 4, "device": {"name": "spine1"}, "name": "Ethernet1/2"}],
        ),
        _interface(
            "spine1 Ethernet1/2",
            connected_endpoints_type="dcim.interface",
            connected_endpoints=[{"id": 4, "device": {"name": "leaf2"}, "name": "Ethernet1/1"}],
        ),
    ],
)
CABLES = _answer(
    "cables",
    [
        _cable("leaf1 Ethernet1/1", "spine1 Ethernet1/1"),
        _cable("leaf1 Ethernet1/2", "gpu1 eth0"),
        _cable("leaf2 Ethernet1/2", "gpu1 eth1"),
        _cable("fw1 eth0", "leaf1 Ethernet1/9"),
        _cable("leaf2 Ethernet1/7", "spine1 Ethernet1/7", status={"value": "planned"}),
        _cable(
            "leaf2 x",
            "- y",
            a_terminations=[_end("leaf2 Ethernet1/1")],
            b_terminations=[_end("pp1 1", "dcim.frontport")],
        ),
        _cable(
            "x x",
            "x x",
            a_terminations=[_end("leaf1 PSU0", "dcim.powerport")],
            b_terminations=[_end("- 1", "dcim.powerfeed")],
        ),
    ],
)
ADDRESSES = _answer(
    "ip",
    [
        {"address": "10.0.0.0/31", "assigned_object": {"device": {"name": "leaf1"}, "name": "Ethernet1/1"}},
        {"address": "10.0.0.1/31", "assigned_object": {"device": {"name": "spine1"}, "name": "Ethernet1/1"}},
        {"address": "10.9.0.5/24", "assigned_object": {"device": {"name": "gpu1"}, "name": "bond0"}},
        {"address": "2001:db8::1/64", "assigned_object": {"device": {"name": "leaf1"}, "name": "Ethernet1/1"}},
        {"address": "10.9.0.9/24", "assigned_object": None},
    ],
)


def test_devices_interfaces_cables_and_addresses_become_a_wiring() -> None:
    result = read(DEVICES, INTERFACES, CABLES, ADDRESSES, leave=["fw*"])
    assert roles(result) == {"leaf1": "tor", "leaf2": "tor", "spine1": "agg", "gpu1": "host"}
    assert links(result) == [
        "leaf1:Ethernet1-1 spine1:Ethernet1-1",
        "leaf1:Ethernet1-2 gpu1:eth0",
        "leaf2:Ethernet1-2 gpu1:eth1",
        "leaf2:Ethernet1-1 spine1:Ethernet1-2",
    ]
    assert [link.rate for link in result.wiring.links] == [400 * 10**9, 200 * 10**9, 200 * 10**9, None]
    assert nics(result) == {"gpu1": {"bond0": ["eth0", "eth1"]}}
    assert result.wiring.nodes["gpu1"].nics["bond0"].ip == "10.9.0.5/24"
    assert result.wiring.links[0].addresses == ["10.0.0.0/31", "10.0.0.1/31"]
    assert result.wiring.nodes["leaf1"].asn == 65001


def test_power_panels_and_planned_cables_are_told() -> None:
    result = read(DEVICES, INTERFACES, CABLES, leave=["fw*"])
    why = {each.why for each in result.left}
    assert {
        "cable is planned",
        "cable to dcim.frontport, no interface",
        "cable to dcim.powerfeed, dcim.powerport, no interface",
    } <= why
    assert left(result)["nodes"] == ("pdu1",)


def test_cables_of_netbox_before_3_3_and_a_mapping_of_lists_are_understood() -> None:
    old = {
        "termination_a_type": "dcim.interface",
        "termination_a": {"device": {"name": "leaf1"}, "name": "e1"},
        "termination_b_type": "dcim.interface",
        "termination_b": {"device": {"name": "spine1"}, "name": "e1"},
        "status": "connected",
    }
    devices = [_device("leaf1", role=None, device_role={"slug": "leaf"}), _device("spine1")]
    text = json.dumps({"devices": devices, "cables": {"results": [old]}})
    assert links(read(("netbox.json", text))) == ["leaf1:e1 spine1:e1"]


def test_cables_alone_need_roles() -> None:
    assert "node leaf1: no role (no devices in these files)" in problems(CABLES, leave=["fw*", "gpu*"])[0]


def test_a_device_that_hpn_cannot_have_is_not_left_in_silence() -> None:
    (found,) = problems(DEVICES, INTERFACES, CABLES)
    assert "node fw1: no role (role 'firewall'); say which (host, tor, agg, core)" in found
    assert found.startswith("devices.json:")


@pytest.mark.parametrize(
    ("cable", "problem"),
    [
        (
            _cable("leaf1 e1", "spine1 e1", b_terminations=[]),
            "cables.json:5: a cable with one end; correct it in NetBox",
        ),
        (
            _cable("leaf1 e1", "spine1 e1", b_terminations=[_end("spine1 e1"), _end("spine1 e2")]),
            "cables.json:5: a cable with several interfaces at one side; enter breakouts as cables of two ends",
        ),
        (_cable("leaf1 e1", "- e1"), "cables.json:5: an end without a device or a name; correct it in NetBox"),
        (
            _cable("leaf1 e1", "spine9 e1"),
            "cables.json:5: spine9:e1: there is no node 'spine9'; did you mean spine1?",
        ),
        (_cable("leaf1 e1", "spine1 e1", a_terminations=7), "a_terminations is 7; write a list"),
    ],
)
def test_a_mistake_has_its_place_its_cause_and_a_way_out(cable: dict[str, object], problem: str) -> None:
    assert problem in problems(DEVICES, _answer("cables", [cable]))[0]


def test_files_without_cables_say_what_to_add() -> None:
    assert problems(DEVICES) == ("devices.json: no cables in these files; add what /api/dcim/cables/?limit=0 answers",)
