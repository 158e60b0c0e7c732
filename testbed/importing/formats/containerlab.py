"""Containerlab topologies (``*.clab.yml``): nodes by kind, group and labels; links in both formats. Pure.

Roles are in the label ``hpn-role``, in the group, or follow from ``kind: linux`` (a host). Other labels that hpn reads:
``hpn-asn``, ``hpn-router-id``, ``hpn-spare``, ``hpn-nics`` (``bond0=eth1+eth2``) of nodes; ``hpn-rate`` and
``hpn-primary`` of links. Addresses and gateways may be in ``exec``. Format: containerlab's manual, topo-def-file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from pydantic import BaseModel, ConfigDict, Field

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.wired.config_words import kind_of
from hpn.testbed.fabric.wired.wiring_spec import RoleName
from hpn.testbed.files.check import check
from hpn.testbed.files.document import Document, parse, shorten
from hpn.testbed.importing.formats.containerlab_labels import asn_of, lags_of, rate_of, router_id_of
from hpn.testbed.importing.formats.iproute import nics_in, says_nothing_else
from hpn.testbed.importing.found import Cable, End, Found, FoundNic, FoundNode, Left, Place
from hpn.testbed.importing.importer import Importer, SourceText
from hpn.testbed.importing.mistakes import ImportMistakes
from hpn.testbed.importing.rolewords import one_role, role_of

_IN_FOLDER = {"/etc/frr": "frr.conf", "/etc/bird": "bird.conf"}
_OUTSIDE = frozenset({"host", "mgmt-net", "macvlan"})
"""Names that stand for no node in an endpoint of the short format."""
_ONE_END = frozenset({*_OUTSIDE, "vxlan", "vxlan-stitch", "dummy"})
_TWO_ENDS = frozenset({"veth", "veth-stitch", "brief"})
_ROUTERS = re.compile(r"frr|bird|quagga|gobgp|bgpd|vyos|sonic|crpd|cumulus", re.IGNORECASE)
_USED = frozenset({"kind", "group", "labels"})
_WHY = {
    "image": "hpn runs no images: switches are BIRD or FRR, hosts are namespaces",
    "binds": "hpn reads frr.conf and bird.conf of switches only",
    "exec": "hpn reads addresses and gateways only",
    "startup-config": "files are not read: hpn writes the configuration of its switches",
}
_OF_LINKS = frozenset({"type", "endpoints", "ipv4"})
_TOPOLOGY = re.compile(r"^topology:\s*$", re.MULTILINE)
_MOST_CHARACTERS = 4 * 10**6
"""Parsing takes about 2 s for each million."""
_NOT_OURS = "a setting of containers; hpn runs none"


class _Loose(BaseModel):
    """Ignores the keys that hpn has no use for; they are listed as left."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)


class _Settings(_Loose):
    kind: str | None = None
    group: str | None = None
    image: str | None = None
    labels: dict[str, str | int | float | bool | None] | None = None
    binds: list[str] | None = None
    exec: list[str] | None = None


class _Link(_Loose):
    type: str = Field(default="brief", examples=["veth"])
    endpoints: list[object] = Field(default_factory=list)
    labels: dict[str, str | int | float | bool | None] | None = None
    ipv4: list[str] | None = None


class _Topology(_Loose):
    defaults: _Settings | None = None
    kinds: dict[str, _Settings | None] | None = None
    groups: dict[str, _Settings | None] | None = None
    nodes: dict[str, _Settings | None] = Field(examples=["{leaf1: {kind: linux}}"])
    links: list[_Link] | None = None


class _File(_Loose):
    name: str | None = None
    topology: _Topology = Field(examples=["{nodes: {}, links: []}"])


@dataclass(frozen=True, slots=True)
class _Node:
    """A node with what it has from its group, its kind and the defaults, in this order."""

    kind: str
    groups: tuple[str, ...]
    image: str
    labels: Mapping[str, object]
    binds: tuple[str, ...]
    commands: tuple[str, ...]


def read(sources: Sequence[SourceText]) -> Found:
    """Return the network of one file. InputError with every mistake."""
    if len(sources) != 1:
        raise InputError(f"{sources[1].name}: a second topology; containerlab has one file per network, import one")
    if len(sources[0].text) > _MOST_CHARACTERS:
        most = f"{_MOST_CHARACTERS / 1e6:.0f} MB"
        raise InputError(f"{sources[0].name}: larger than {most}; a network of that size is better a CSV of cables")
    document = parse(sources[0].text, sources[0].name)
    file = check(document, _File)
    reader = _Reader(document, file.topology)
    nodes = tuple(reader.node(name) for name in file.topology.nodes)
    for number, link in enumerate(file.topology.links or ()):
        reader.link(link, Place(document, ("topology", "links", number)))
    reader.mistakes.check()
    left = tuple(_left(file.topology, reader.outside))
    return Found(nodes, tuple(reader.cables), left, (), file.name)


def _settings(name: str, topology: _Topology) -> _Node:
    """Return the settings that apply to a node."""
    own = topology.nodes[name] or _Settings()
    defaults = topology.defaults or _Settings()
    group_name = own.group or defaults.group or ""
    group = (topology.groups or {}).get(group_name) or _Settings()
    kind = own.kind or group.kind or defaults.kind or ""
    of_kind = (topology.kinds or {}).get(kind) or _Settings()
    layers = (defaults, of_kind, group, own)
    labels: dict[str, object] = {}
    for layer in layers:
        labels |= layer.labels or {}
    image = next((layer.image for layer in reversed(layers) if layer.image), "")
    groups = tuple(each.strip() for each in group_name.split(",") if each.strip())
    binds = tuple(bind for layer in layers for bind in layer.binds or ())
    commands = tuple(command for layer in layers for command in layer.exec or ())
    return _Node(kind, groups, image, labels, binds, commands)


class _Reader:
    """Nodes and cables of one topology, and the LAGs that labels of nodes name."""

    def __init__(self, document: Document, topology: _Topology) -> None:
        self.document = document
        self.topology = topology
        self.mistakes = ImportMistakes()
        self.cables: list[Cable] = []
        self.outside: list[str] = []
        self._lag_of: dict[tuple[str, str], str] = {}
        self._nics: dict[str, Mapping[str, FoundNic]] = {}

    def node(self, name: str) -> FoundNode:
        """Return one node and remember its LAGs."""
        place = Place(self.document, ("topology", "nodes", name))
        node = _settings(name, self.topology)
        labels = {key: str(value) for key, value in node.labels.items() if key.startswith("hpn-")}
        lags = lags_of(labels.get("hpn-nics", ""), place, self.mistakes)
        self._lag_of |= {(name, port): lag for port, lag in lags.items()}
        self._nics[name] = nics_in(node.commands)
        return FoundNode(
            name,
            place,
            role=_role(node, labels, place, self.mistakes),
            kind=_about(node),
            asn=asn_of(labels.get("hpn-asn"), place, self.mistakes),
            router_id=router_id_of(labels.get("hpn-router-id"), place, self.mistakes),
            config=_config(node.binds),
            spare=labels.get("hpn-spare", "no").lower() in {"yes", "true"},
            nics={**{lag: FoundNic() for lag in lags.values()}, **self._nics[name]},
        )

    def link(self, link: _Link, place: Place) -> None:
        """Add one link to the cables, or to those whose other end is outside of the lab."""
        if link.type not in _TWO_ENDS | _ONE_END:
            kinds = ", ".join(sorted(_TWO_ENDS | _ONE_END))
            self.mistakes.add(place, f"link type {shorten(link.type)} is unknown; containerlab has {kinds}")
            return
        if link.type in _ONE_END:
            self.outside.append(str(place))
            return
        if len(link.endpoints) != 2:
            text = f"a link has two endpoints, this one has {len(link.endpoints)}"
            self.mistakes.add(place, f"{text}; write endpoints: [leaf1:e1-1, spine1:e1-1]")
            return
        ends = [self._end(link, side, place) for side in (0, 1)]
        if any(end is not None and end.node in _OUTSIDE for end in ends):
            self.outside.append(str(place))
        elif ends[0] is not None and ends[1] is not None:
            labels = link.labels or {}
            rate = rate_of(labels.get("hpn-rate"), place, self.mistakes)
            primary = labels.get("hpn-primary")
            self.cables.append(Cable((ends[0], ends[1]), place, rate, None if primary is None else str(primary)))

    def _end(self, link: _Link, side: int, place: Place) -> End | None:
        given = link.endpoints[side]
        found = _endpoint(given)
        node, port = found.get("node"), found.get("interface")
        if not (isinstance(node, str) and node and isinstance(port, str) and port):
            hint = "write node:interface, or node: and interface: below type: veth"
            self.mistakes.add(place, f"endpoint {shorten(given)} has no node or no interface; {hint}")
            return None
        listed = link.ipv4[side] if link.ipv4 and len(link.ipv4) > side else None
        address = found.get("ipv4", listed)
        ip = address if isinstance(address, str) and address else self._nics.get(node, {}).get(port, FoundNic()).ip
        return End(node, port, ip, None, self._lag_of.get((node, port)))


def _config(binds: Sequence[str]) -> str | None:
    """Return the configuration of a routing daemon in a bind: leaf1/frr.conf:/etc/frr/frr.conf, or leaf1:/etc/frr."""
    for source, target, *_ in (bind.split(":") for bind in binds if ":" in bind):
        if (kind := kind_of(source)) is not None and kind == PurePath(target).name:
            return source
        if (file := _IN_FOLDER.get(target.rstrip("/"))) is not None:
            return (PurePath(source) / file).as_posix()
    return None


def _endpoint(given: object) -> Mapping[str, object]:
    """Return the keys of an endpoint in either format."""
    if isinstance(given, str):
        node, _, port = given.partition(":")
        return {"node": node, "interface": port}
    return given if isinstance(given, dict) else {}


def _about(node: _Node) -> str:
    """Describe a node for messages about its role."""
    about = [f"kind {shorten(node.kind)}" if node.kind else "no kind"]
    about += [f"group {shorten(','.join(node.groups))}"] if node.groups else []
    about += [f"image {shorten(node.image, 60)}"] if node.kind == "linux" and node.image else []
    return ", ".join(about)


def _role(node: _Node, labels: Mapping[str, str], place: Place, mistakes: ImportMistakes) -> RoleName | None:
    """Return the role by label, group or kind; None where none of them tells."""
    if "hpn-role" in labels:
        role = role_of(labels["hpn-role"])
        if role is None:
            mistakes.add(place, f"label hpn-role is {shorten(labels['hpn-role'])}; write host, tor, agg or core")
        return role
    if node.groups:
        return one_role(node.groups)
    return "host" if node.kind == "linux" and not _ROUTERS.search(node.image) else None


def _left(topology: _Topology, outside: Sequence[str]) -> Iterator[Left]:
    """Yield the settings of nodes and links that have no meaning here, by key."""
    of_key: dict[str, list[str]] = {}
    for where, several in (("kind", topology.kinds), ("group", topology.groups), ("", topology.nodes)):
        for name, settings in (several or {}).items():
            for key in _keys(settings):
                of_key.setdefault(key, []).append(f"{where} {name}".strip())
    for key in _keys(topology.defaults):
        of_key.setdefault(key, []).append("defaults")
    for key, names in of_key.items():
        yield Left(key, _WHY.get(key, _NOT_OURS), tuple(names))
    links = {key for link in topology.links or () for key in _keys(link) if key not in _OF_LINKS}
    if links:
        yield Left("settings of links", "hpn has none of these", tuple(sorted(links)))
    if outside:
        yield Left("links", "their other end is outside of the lab", tuple(outside))


def _keys(settings: _Settings | _Link | None) -> list[str]:
    """Return the keys that are set and not used."""
    given = (settings.model_fields_set | (settings.model_extra or {}).keys()) if settings is not None else set()
    used = {"binds"} if _has_only_configs(settings) else set()
    if isinstance(settings, _Settings) and all(map(says_nothing_else, settings.exec or ())):
        used.add("exec")
    return sorted(given - _USED - used)


def _has_only_configs(settings: _Settings | _Link | None) -> bool:
    """Return True if every bind is a configuration that hpn reads."""
    binds = (settings.binds or []) if isinstance(settings, _Settings) else []
    return all(_config([bind]) is not None for bind in binds)


def _recognises(source: SourceText) -> bool:
    if source.name.lower().endswith((".clab.yml", ".clab.yaml")):
        return True
    return source.name.lower().endswith((".yml", ".yaml")) and bool(_TOPOLOGY.search(source.text))


IMPORTER = Importer(
    "containerlab",
    "a topology of containerlab (*.clab.yml); roles in the label hpn-role or in group",
    _recognises,
    read,
)
