"""Keys below a topology's ``wiring:``: nodes, their ports and the links between them, by names of the file.

Only ``role`` and ``ends`` must be written. What is left out follows from the links (``structure``) or is numbered in
the order of the file (``testbed.fabric.draft``).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from hpn.testbed.fabric.values import MOST_PORTS, Mac, Rate, Strict

NODE_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$"
PORT_NAME = r"^[A-Za-z][A-Za-z0-9_.-]{0,14}$"
"""Linux allows 15 characters. What BIRD, tc and our own texts use as separators is left out."""

ROLE_NAMES = {"leaf": "tor", "spine": "agg", "superspine": "core", "super-spine": "core"}
"""Other names of roles, as files of other tools have them."""

RoleName = Literal["host", "tor", "agg", "core"]
_Role = Annotated[
    Literal["host", "tor", "leaf", "agg", "spine", "core", "superspine", "super-spine"],
    AfterValidator(lambda given: ROLE_NAMES.get(given, given)),
]
_Number = Annotated[int, Field(ge=0, le=4096)]
_Address = Annotated[str, Field(pattern=r"^[0-9.]+/[0-9]+$", examples=["10.0.0.1/31"])]
_Ip = Annotated[str, Field(pattern=r"^[0-9.]+$", examples=["10.0.0.1"])]
_End = Annotated[str, Field(examples=["leaf1:Ethernet0"], max_length=64)]


class WiredNic(Strict):
    """One NIC of a host: the LAG over ``ports``, in the order of the planes if there are several."""

    ports: list[str] = Field(min_length=1, max_length=MOST_PORTS, description="the host's interfaces, one to eight")
    rail: _Number | None = Field(default=None, description="left out: 0 for the host's first NIC, 1 for its second")
    ip: _Address | None = Field(default=None, description="with its prefix length; left out: numbered in 10.0.0.0/8")
    gateway: _Ip | None = Field(default=None, description="shared by the ToRs; left out: the subnet's last address")


class ConfigFile(Strict):
    """A node's own configuration: the name of a file or folder as the topology file has it, and what it holds."""

    file: str = Field(max_length=256)
    text: str = Field(default="", max_length=1_000_000)
    parts: dict[str, str] = Field(default_factory=dict, description="texts of a folder")


class WiredNode(Strict):
    """One node. Numbers that are left out follow from the links."""

    role: _Role = Field(description="host, tor (leaf), agg (spine) or core (superspine)", examples=["tor"])
    pod: _Number | None = None
    segment: _Number | None = Field(default=None, description="hosts and ToRs: hosts on the same ToRs are a segment")
    rail: _Number | None = Field(default=None, description="ToRs and Aggs that serve one rail only")
    plane: _Number | None = Field(default=None, description="switches: planes have no switch in common")
    index: _Number | None = Field(default=None, description="number among its like")
    spare: bool = Field(default=False, description="hosts: takes over from a dead one of its segment")
    asn: int | None = Field(default=None, ge=1, le=2**32 - 2, description="switches; needs bgp: {asn: per-switch}")
    router_id: _Ip | None = Field(default=None, description="switches: BGP router ID")
    system_id: Mac | None = Field(default=None, description="ToRs: LACP system ID; left out: lacp.system_id")
    config: str | ConfigFile | None = Field(
        default=None,
        description="of its own: frr.conf, bird.conf; hosts: interfaces, netplan's YAML, a folder; path from here",
        examples=["leaf1/frr.conf"],
    )
    nics: dict[str, WiredNic] = Field(
        default_factory=dict, description="hosts: by LAG interface, such as bond0; left out: one NIC over its one port"
    )


class WiredLink(Strict):
    """One cable."""

    ends: list[_End] = Field(
        min_length=2, max_length=2, description="'node:port', twice", examples=["[h1:eth0, leaf1:Ethernet0]"]
    )
    rate: Rate | None = Field(
        default=None, description="left out: nic_port_rate at a host, core_rate at a Core, else uplink_rate"
    )
    name: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,95}$", description="left out: ends")
    addresses: list[_Address] | None = Field(
        default=None, min_length=2, max_length=2, description="between switches, in the order of ends; left out: a /31"
    )
    mtu: int | None = Field(
        default=None, ge=576, le=65_535, description="between switches: bytes of an IP packet; left out: the topology's"
    )


class WiredStack(Strict):
    """Two ToRs that are one LACP speaker; the link between them is their peer link."""

    primary: str = Field(examples=["leaf1"])
    secondary: str = Field(examples=["leaf2"])


class WiringSpec(Strict):
    """A network as data. The order of nodes and links numbers what the file does not."""

    nodes: dict[Annotated[str, Field(pattern=NODE_NAME)], WiredNode] = Field(min_length=1)
    links: list[WiredLink] = Field(min_length=1)
    stacks: list[WiredStack] = Field(default_factory=list)
    rails_meet: bool | None = Field(default=None, description="left out: yes if a switch leads from rail to rail")
