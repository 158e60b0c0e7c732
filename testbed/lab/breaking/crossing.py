"""Two cables with their far ends exchanged: each port receives what the far end of the other cable sends.

The kernel cannot give a veth another peer. So frames are exchanged where they arrive, at both ends of both links:

    port p --nft--> patch ===veth=== patch --nft, marked--> hop ===veth=== hop --tc--> received by port q

The mark keeps a frame from being exchanged twice; it does not leave the namespace. The last hop has q's MAC address, as
the kernel compares a frame's destination with the interface that it comes out of. Everything that reads frames of one
ethertype, the LAG, the routing and other impairments come later. Sockets for all ethertypes (tcpdump) see a frame at
both ports. Carrier stays with the veth: a port that is put down takes the carrier of its own peer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from hpn.testbed.fabric.addresses import switch_port_mac
from hpn.testbed.fabric.model import Fabric, Link, Port
from hpn.testbed.kernel.nftables.nft import Nft
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.kernel.rtnetlink.redirect import received_by

_TABLE = "hpn_crossing"
_MARK = 0x68706E
_FIRST = -250  # before losses and corruption (testbed.lab.breaking.impair_ingress), which are of the port


@dataclass(frozen=True, slots=True)
class _Device:
    """One interface of a crossing."""

    name: str
    ifindex: int
    node: str
    mac: str


@dataclass(frozen=True, slots=True)
class _Way:
    """The way of frames that arrive at ``start`` and have to be received by ``end``."""

    start: Port
    end: Port
    out: _Device  # in the node of ``start``, its peer is ``into``
    into: _Device
    hop: _Device
    last: _Device


class Crossings:
    """Exchanged cables of one lab. OSError if the kernel refuses one."""

    def __init__(self, fabric: Fabric, spaces: Mapping[str, NetNs], requests: Callable[[str], Netlink]) -> None:
        """Create them; ``requests`` returns a node's netlink socket."""
        self._fabric = fabric
        self._spaces = spaces
        self._requests = requests
        self._nft: dict[str, Nft] = {}
        self._standing: dict[tuple[str, str], tuple[_Way, ...]] = {}  # links, and their ways

    @property
    def links(self) -> tuple[tuple[str, str], ...]:
        """Pairs of links whose far ends are exchanged now."""
        return tuple(self._standing)

    def prepare(self, one: Link, other: Link) -> None:
        """Open what a crossing of these links needs, so that it takes no time later."""
        for port in (one.lower, one.upper, other.lower, other.upper):
            self._requests(port.node)
            if port.node not in self._nft:
                self._nft[port.node] = Nft(self._spaces[port.node])

    def cross(self, one: Link, other: Link) -> None:
        """Exchange the far ends of two links."""
        self.prepare(one, other)
        ways = tuple(_ways(self._fabric, one, other))
        for request in _veths(self._fabric, ways, self._spaces):
            self._requests(one.lower.node).run([request])
        for device in [each for way in ways for each in (way.out, way.last)]:
            self._requests(device.node).run([rtnl.set_link(device.ifindex, up=True)])
        for way in ways:
            self._requests(way.end.node).run(received_by(way.last.ifindex, way.end.ifindex))
        self._standing[one.name, other.name] = ways
        for node in dict.fromkeys(port.node for way in ways for port in (way.start, way.end)):
            self._write(node)

    def uncross(self, one: Link, other: Link) -> None:
        """Plug both cables back; no-op if they are not exchanged."""
        ways = self._standing.pop((one.name, other.name), ())
        for node in dict.fromkeys(port.node for way in ways for port in (way.start, way.end)):
            self._write(node)
        patched: set[int] = set()
        for way in ways:
            gone = [way.last.ifindex]
            if way.into.ifindex not in patched:  # both ways between two ports share one pair
                gone.append(way.into.ifindex)
            patched |= {way.into.ifindex, way.out.ifindex}
            self._requests(way.end.node).run([rtnl.delete_link(ifindex) for ifindex in gone])

    def _write(self, node: str) -> None:
        """Write the rules of a node in one transaction."""
        lines = [f"add table netdev {_TABLE}", f"delete table netdev {_TABLE}"]
        ways = [way for standing in self._standing.values() for way in standing]
        for way in ways:
            if way.start.node == node:
                rule = f'meta mark != {_MARK} fwd to "{way.out.name}"'
                lines += _chain(way.start.name, way.start.ifindex, rule)
            if way.end.node == node:
                lines += _chain(way.into.name, way.into.ifindex, f'meta mark set {_MARK} fwd to "{way.hop.name}"')
        self._nft[node].run("\n".join(lines))


def probe(space: NetNs) -> str | None:
    """Return why this kernel cannot exchange cables, None if it can: tries every kind of rule in ``space``."""
    requests, nft = Netlink(space), Nft(space)
    try:
        pair = rtnl.add_veth("probe0", 900, space, "probe1", 901, space, mac=_mac(900), peer_mac=_mac(901), mtu=1500)
        requests.run([pair, rtnl.set_link(901, up=True), *received_by(901, 900)])
        rule = f'meta mark != {_MARK} meta mark set {_MARK} fwd to "probe1"'
        nft.run("\n".join([f"add table netdev {_TABLE}", *_chain("probe0", 900, rule)]))
    except OSError as error:
        return str(error).splitlines()[0]
    finally:
        nft.close()
        requests.close()
    return None


def _chain(interface: str, ifindex: int, rule: str) -> list[str]:
    name = f"netdev {_TABLE} port{ifindex}"
    hook = f'type filter hook ingress device "{interface}" priority {_FIRST}; policy accept;'
    return [f"add table netdev {_TABLE}", f"add chain {name} {{ {hook} }}", f"add rule {name} {rule}"]


def _ways(fabric: Fabric, one: Link, other: Link) -> Iterator[_Way]:
    """Yield the four ways, with interfaces whose numbers and names no other of the lab has."""
    for ours, theirs in ((one.lower, other.lower), (one.upper, other.upper)):
        here, there = _device(fabric, ours, "x"), _device(fabric, theirs, "x")
        hops = [(_device(fabric, end, "y"), _last(fabric, end)) for end in (ours, theirs)]
        yield _Way(ours, theirs, here, there, *hops[1])
        yield _Way(theirs, ours, there, here, *hops[0])


def _veths(fabric: Fabric, ways: tuple[_Way, ...], spaces: Mapping[str, NetNs]) -> Iterator[bytes]:
    for way in ways:
        if way.out.ifindex < way.into.ifindex:
            yield _veth(way.into, way.out, fabric.spec.mtu, spaces)
        yield _veth(way.hop, way.last, fabric.spec.mtu, spaces)


def _veth(first: _Device, second: _Device, mtu: int, spaces: Mapping[str, NetNs]) -> bytes:
    return rtnl.add_veth(
        first.name, first.ifindex, spaces[first.node], second.name, second.ifindex, spaces[second.node],
        mac=first.mac, peer_mac=second.mac, mtu=mtu,
    )  # fmt: skip


def _device(fabric: Fabric, port: Port, kind: str) -> _Device:
    number = _free(fabric, port, "xyz".index(kind))
    return _Device(f"{kind}{port.ifindex}", number, port.node, _mac(number))


def _last(fabric: Fabric, port: Port) -> _Device:
    return _Device(f"z{port.ifindex}", _free(fabric, port, 2), port.node, port.mac)


def _free(fabric: Fabric, port: Port, which: int) -> int:
    """Return an interface number beyond those of the fabric, three a port."""
    most = max(max(link.lower.ifindex, link.upper.ifindex) for link in fabric.links)
    most = max([most, *(max(nic.lag_ifindex, nic.inner_ifindex) for nic in fabric.nics)])
    return most + 1 + 3 * port.ifindex + which


def _mac(ifindex: int) -> str:
    return switch_port_mac(ifindex)
