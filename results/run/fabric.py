"""``fabric.json``: the complete fabric of a run, so that a reader of the folder needs neither drill nor presets.

Changes when a fabric has something more. NICs refer to their links by name; otherwise the file has the fabric's own
dataclasses, and reading returns what was written. Files are untrusted input: a reference to a missing name is damage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from pydantic import TypeAdapter

from hpn.results.run.files import damaged, parse
from hpn.testbed.fabric.bonding import Bonding
from hpn.testbed.fabric.model import Fabric, Link, LinkKind, Nic, Node, Role, Stack
from hpn.testbed.fabric.profiles import LAB
from hpn.testbed.fabric.spec import CorePorts, FabricSpec
from hpn.testbed.files.document import shorten

_LONGEST = 128
"""Maximum characters of a name; the kernel's interface names have 15."""


@dataclass(frozen=True, slots=True)
class _Nic:
    """A ``testbed.fabric.model.Nic`` with the names of its links."""

    name: str
    host: str
    rail: int
    lag: str
    lag_ifindex: int
    inner: str
    inner_ifindex: int
    mac: str
    ip: str
    prefix_len: int
    gateway: str
    gateway_mac: str
    rail_network: str
    links: tuple[str, ...]
    bonding: Bonding | None = None


@dataclass(frozen=True, slots=True)
class _Fabric:
    """The file."""

    planes: int
    rails_meet: bool
    core_ports: CorePorts
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    nics: tuple[_Nic, ...]
    stacks: tuple[Stack, ...]
    spec: FabricSpec


_FILE = TypeAdapter(_Fabric)
_OF_NIC = tuple(field.name for field in fields(_Nic) if field.name != "links")


def fabric_json(fabric: Fabric) -> bytes:
    """Return the fabric as the content of the file."""
    nics = tuple(
        _Nic(**{name: getattr(nic, name) for name in _OF_NIC}, links=tuple(link.name for link in nic.links))
        for nic in fabric.nics
    )
    found = _Fabric(
        planes=fabric.planes,
        rails_meet=fabric.rails_meet,
        core_ports=fabric.core_ports,
        nodes=fabric.nodes,
        links=fabric.links,
        nics=nics,
        stacks=fabric.stacks,
        spec=fabric.spec,
    )
    left_out: dict[str, Mapping[str, bool | set[str] | Mapping[str, bool]]] = {"spec": _left_out(fabric.spec)}
    if all(nic.bonding is None for nic in fabric.nics):
        left_out["nics"] = {"__all__": {"bonding": True}}
    if all(link.mtu is None for link in fabric.links):
        left_out["links"] = {"__all__": {"mtu": True}}
    return _FILE.dump_json(found, exclude=left_out)


def _left_out(spec: FabricSpec) -> Mapping[str, bool | set[str]]:
    """Return the keys that fabrics of an older hpn do not have, where they change nothing."""
    found: dict[str, bool | set[str]] = {"wiring": True}  # the file has the nodes and links themselves
    if spec.switch is None:
        found["switch"] = True
    for key in ("dimensions", "global_links"):
        if key not in spec.model_fields_set:
            found[key] = True
    if not spec.bgp.valleys:
        found["bgp"] = {"asn"}
    if spec.profile == LAB:
        found["profile"] = True
    if unset := {key for key in ("host_rate", "miimon_ms") if getattr(spec.lacp, key) is None}:
        found["lacp"] = unset
    return found


def fabric_from(path: Path, content: bytes) -> Fabric:
    """Return the fabric in the file at ``path``. InputError when it holds none."""
    found = parse(path, _FILE, content)
    problem = next(_impossible(found), None)
    if problem is not None:
        raise damaged(path, problem)
    links = {link.name: link for link in found.links}
    return Fabric(
        spec=found.spec,
        nodes=found.nodes,
        links=found.links,
        nics=tuple(
            Nic(**{name: getattr(nic, name) for name in _OF_NIC}, links=tuple(links[name] for name in nic.links))
            for nic in found.nics
        ),
        planes=found.planes,
        stacks=found.stacks,
        rails_meet=found.rails_meet,
        core_ports=found.core_ports,
    )


def _impossible(found: _Fabric) -> Iterator[str]:
    """Yield contradictions that no fabric can have; the caller needs only the first."""
    nodes, links = {node.name for node in found.nodes}, {link.name: link for link in found.links}
    for what, names in (("node", found.nodes), ("link", found.links), ("NIC", found.nics)):
        yield from _names(what, [each.name for each in names])
    if not 0 <= found.planes <= max(len(found.links), 1):
        yield f"{found.planes} planes share {len(found.links)} links"
    for node in found.nodes:
        if node.role is not Role.HOST and not (node.plane is not None and 0 <= node.plane < max(found.planes, 1)):
            yield f"switch {shorten(node.name)} has plane {node.plane}"
    for link in found.links:
        if {link.lower.node, link.upper.node} - nodes or link.lower.node == link.upper.node:
            yield f"link {shorten(link.name)} does not join two nodes"
        if not (0 <= link.plane < max(found.planes, 1) and link.rate_bps > 0):
            yield f"link {shorten(link.name)} has plane {link.plane} and {link.rate_bps} bit/s"
    owned: set[str] = set()
    for nic in found.nics:
        mine = [links.get(name) for name in nic.links]
        if not mine or not all(
            link is not None and link.kind is LinkKind.ACCESS and link.lower.node == nic.host for link in mine
        ):
            yield f"NIC {shorten(nic.name)} has links that are not its host's"
        if owned.intersection(nic.links):
            yield f"NIC {shorten(nic.name)} shares a link with another"
        owned.update(nic.links)
    if not owned.issuperset(link.name for link in found.links if link.kind is LinkKind.ACCESS):
        yield "an access link has no NIC"
    for stack in found.stacks:
        if not {stack.primary, stack.secondary} <= nodes or stack.peer_link not in links:
            yield f"a stack of {shorten(stack.primary)} has parts that are not there"


def _names(what: str, names: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if not 0 < len(name) <= _LONGEST or not name.isprintable():
            yield f"a {what} is called {shorten(name)}"
        if name in seen:
            yield f"two {what}s are called {shorten(name)}"
        seen.add(name)
