"""Netlab's transformed topology (``netlab create -o json=FILE``). Pure.

Taken are nodes, links with both interfaces, LAGs of the module lag, AS numbers, router IDs, addresses and bandwidths.
Roles are in groups (leaf, spine), or netlab's own role of a host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pydantic import BaseModel, ConfigDict, Field

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.wired.wiring_spec import RoleName
from hpn.testbed.files.check import check
from hpn.testbed.files.document import Document, shorten
from hpn.testbed.importing.addresses import ipv4, plain_ip
from hpn.testbed.importing.found import Cable, End, Found, FoundNic, FoundNode, Left, Place
from hpn.testbed.importing.importer import Importer, SourceText
from hpn.testbed.importing.json_document import document_of, is_json
from hpn.testbed.importing.mistakes import ImportMistakes
from hpn.testbed.importing.rolewords import one_role, role_of

_KBPS = 1000
_TRANSFORMED = re.compile(r"""["']?linkindex["']?:""")
_WHY_MLAG = "peer link of an MLAG pair: hpn's dual-ToR needs none; say stacks: in the topology for a stacked pair"


class _Loose(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class _Lag(_Loose):
    ifindex: int | None = None
    parent: int | None = Field(default=None, alias="_parentindex")
    mlag: object = None


class _Gateway(_Loose):
    ipv4: str | None = None


class _Interface(_Loose):
    """An interface of a node: ``linkindex`` is None on a LAG; ``ipv4`` is true where it is unnumbered."""

    ifname: str
    type: str = ""
    linkindex: int | None = None
    ipv4: str | bool | None = None
    gateway: _Gateway | None = None
    lag: _Lag | None = None


class _Bgp(_Loose):
    as_number: int | None = Field(default=None, alias="as", ge=1, le=2**32 - 2)
    router_id: str | None = None


class _Node(_Loose):
    role: str | None = None
    device: str | None = None
    bgp: _Bgp | None = None
    router_id: str | None = None
    interfaces: list[_Interface] = Field(default_factory=list)


class _LinkEnd(_Loose):
    node: str
    ifname: str
    ipv4: str | bool | None = None


class _Link(_Loose):
    linkindex: int = 0
    type: str = ""
    bandwidth: float | None = Field(default=None, gt=0, description="kbit/s")
    interfaces: list[_LinkEnd] = Field(default_factory=list)
    lag: _Lag | None = None


class _Group(_Loose):
    members: list[str] = Field(default_factory=list)


class _File(_Loose):
    name: str | None = None
    nodes: dict[str, _Node]
    links: list[_Link]
    groups: dict[str, _Group] = Field(default_factory=dict)


def read(sources: Sequence[SourceText]) -> Found:
    """Return the network of one file. InputError with every mistake."""
    if len(sources) != 1:
        raise InputError(f"{sources[1].name}: a second topology; netlab has one file per network, import one")
    if not is_json(sources[0]):  # its YAML has tags of Python objects
        raise InputError(f"{sources[0].name}:1: netlab's JSON is needed here; write it: netlab create -o json=FILE")
    document = document_of(sources[0])
    file = check(document, _File)
    groups: dict[str, list[str]] = {}
    for name, group in file.groups.items():
        for member in group.members:
            groups.setdefault(member, []).append(name)
    nodes = tuple(_node(name, node, groups.get(name, []), document) for name, node in file.nodes.items())
    mistakes = ImportMistakes()
    cables = tuple(_cables(file, document, mistakes))
    mistakes.check()
    return Found(nodes, cables, tuple(_left(file, document)), tuple(_notes(file)), file.name)


def _node(name: str, node: _Node, groups: Sequence[str], document: Document) -> FoundNode:
    bgp = node.bgp or _Bgp()
    about = [f"device {shorten(node.device)}"] if node.device else []
    own = [each for each in groups if not re.fullmatch(r"as\d+|netlab_.*", each)]
    about += [f"groups {shorten(', '.join(own))}"] if own else []
    return FoundNode(
        name,
        Place(document, ("nodes", name)),
        role=_role(node, groups),
        kind=", ".join(about),
        asn=bgp.as_number,
        router_id=plain_ip(bgp.router_id or node.router_id),
        nics={each.ifname: _nic(each) for each in node.interfaces if each.type == "lag"},
    )


def _role(node: _Node, groups: Sequence[str]) -> RoleName | None:
    if any(role_of(each) for each in groups):
        return one_role(groups)
    return "host" if node.role == "host" else None


def _nic(lag: _Interface) -> FoundNic:
    address = ipv4(lag.ipv4 if isinstance(lag.ipv4, str) else None)
    gateway = lag.gateway.ipv4 if address and lag.gateway else None
    return FoundNic(address, plain_ip(gateway.partition("/")[0] if gateway else None))


def _cables(file: _File, document: Document, mistakes: ImportMistakes) -> Iterator[Cable]:
    """Yield a cable for each link between two nodes; LAGs themselves are no cables, their members are."""
    lag_of = {
        (name, each.linkindex): lag
        for name, node in file.nodes.items()
        for each in node.interfaces
        if each.linkindex is not None and (lag := _lag_name(node, each)) is not None
    }
    for number, link in enumerate(file.links):
        if link.type in {"lag", "loopback"} or _is_peer_link(link):
            continue
        place = Place(document, ("links", number))
        if len(link.interfaces) < 2:
            continue
        if len(link.interfaces) > 2:
            names = ", ".join(end.node for end in link.interfaces)
            what = f"a link of {len(link.interfaces)} ({names}); hpn has cables with two ends"
            mistakes.add(place, f"{what}: write links of two nodes each, and netlab create again")
            continue
        one, two = (_end(each, lag_of.get((each.node, link.linkindex))) for each in link.interfaces)
        rate = None if link.bandwidth is None else int(link.bandwidth * _KBPS)
        yield Cable((one, two), place, rate)


def _lag_name(node: _Node, member: _Interface) -> str | None:
    """Return the LAG interface that this interface is a member of."""
    index = member.lag.parent if member.lag is not None else None
    if index is None:
        return None
    lags = (each for each in node.interfaces if each.type == "lag" and each.lag and each.lag.ifindex == index)
    return next((each.ifname for each in lags), None)


def _is_peer_link(link: _Link) -> bool:
    return link.lag is not None and link.lag.mlag is not None


def _end(end: _LinkEnd, nic: str | None) -> End:
    return End(end.node, end.ifname, end.ipv4 if isinstance(end.ipv4, str) else None, None, nic)


def _left(file: _File, document: Document) -> Iterator[Left]:
    peers = [number for number, link in enumerate(file.links) if _is_peer_link(link)]
    if peers:
        names = tuple(" - ".join(end.node for end in file.links[number].interfaces) for number in peers)
        yield Left("links", _WHY_MLAG, names, Place(document, ("links", peers[0])))
    stubs = tuple(each.node for link in file.links if len(link.interfaces) == 1 for each in link.interfaces)
    if stubs:
        yield Left("stub links", "nothing is at their other end", stubs)
    svis = tuple(
        f"{n}:{each.ifname}" for n, node in file.nodes.items() for each in node.interfaces if each.type == "svi"
    )
    if svis:
        yield Left("VLAN interfaces", "ToRs of hpn route to hosts; their addresses are numbered by hpn", svis)
    others = sorted(document.data.keys() - {"name", "nodes", "links", "groups"})
    if others:
        yield Left("sections", "settings of netlab and its modules; hpn has its own", tuple(others))


def _notes(file: _File) -> Iterator[str]:
    if any(each.type == "lag" for node in file.nodes.values() for each in node.interfaces):
        yield "LAGs of hosts are those of netlab's module lag; between switches, each member is a routed link"


def _recognises(source: SourceText) -> bool:
    is_file = source.name.lower().endswith((".yml", ".yaml", ".json"))
    return is_file and bool(_TRANSFORMED.search(source.text))


IMPORTER = Importer(
    "netlab",
    "a transformed topology of netlab: netlab create -o json=FILE; roles by groups such as leaf and spine",
    _recognises,
    read,
)
