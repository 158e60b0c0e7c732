"""NICs of imported hosts: which of a host's ports are one LAG. Pure.

The command line decides, then the file. Several ports of a host without either are a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from hpn.testbed.fabric.values import MOST_PORTS
from hpn.testbed.fabric.wired.wiring_spec import WiredNic
from hpn.testbed.files.document import shorten
from hpn.testbed.importing.addresses import ipv4
from hpn.testbed.importing.found import End, FoundNic, FoundNode
from hpn.testbed.importing.mistakes import ImportMistakes, listed
from hpn.testbed.importing.portnames import linux_name
from hpn.testbed.importing.wishes import Wishes

_LONGEST = 15


@dataclass(frozen=True, slots=True)
class HostPort:
    """A cabled port of a host: its end in the file, its far end, and its name in the wiring."""

    end: End
    far: End
    name: str


@dataclass(frozen=True, slots=True)
class _Group:
    ports: tuple[HostPort, ...]
    name: str | None = None  # of the LAG, in the file


def nics_of(
    host: FoundNode, ports: Sequence[HostPort], wishes: Wishes, mistakes: ImportMistakes
) -> Mapping[str, WiredNic]:
    """Return a host's NICs by LAG interface; empty when its only port is its only NIC, or with mistakes."""
    groups = _groups(host, ports, wishes, mistakes)
    if len(ports) == 1 and groups and groups[0].name is None and _known(host, groups[0]).ip is None:
        return {}
    large = next((group for group in groups if len(group.ports) > MOST_PORTS), None)
    if large is not None:
        what = (
            f"its LAG {shorten(large.name)} has {len(large.ports)} ports; a NIC has at most {MOST_PORTS}: bundle others"
        )
        mistakes.add_for(host.name, host.place, "host", f"{what} with --nic, such as --nic {_pair(large)}")
        return {}
    names = _lag_names(host, groups, {each.name for each in ports})
    return {name: _nic(host, group) for name, group in zip(names, groups, strict=True)}


def _groups(host: FoundNode, ports: Sequence[HostPort], wishes: Wishes, mistakes: ImportMistakes) -> list[_Group]:
    rest = list(ports)
    groups = [group for wish in wishes.nics for group in _wished(wish, rest)]
    by_lag: dict[str, list[HostPort]] = {}
    for port in rest:
        if port.end.nic is not None:
            by_lag.setdefault(port.end.nic, []).append(port)
    groups += [_Group(tuple(members), lag) for lag, members in by_lag.items()]
    alone = [port for port in rest if port.end.nic is None]
    if alone and len(ports) > 1 and not by_lag:
        _add_unbundled(host, [port.end.port for port in alone], mistakes)
    groups += [_Group((port,)) for port in alone]
    return sorted(groups, key=lambda group: ports.index(group.ports[0]))


def _add_unbundled(host: FoundNode, ports: Sequence[str], mistakes: ImportMistakes) -> None:
    pair = shorten("+".join(ports[:2]), quoted=False)
    each = shorten(ports[0].rstrip("0123456789/"), quoted=False)
    ways = f"say which are one NIC: --nic {pair}, or that each is one: --nic '{each}*'"
    mistakes.add_for(host.name, host.place, "host", f"nothing bundles its ports {listed(ports, 9)}; {ways}")


def _pair(group: _Group) -> str:
    return shorten("+".join(port.end.port for port in group.ports[:2]), quoted=False)


def _wished(wish: tuple[str, ...], rest: list[HostPort]) -> list[_Group]:
    """Return the groups of one option and take their ports from ``rest``."""
    if len(wish) == 1:
        found = [_Group((port,)) for port in rest if fnmatchcase(port.end.port, wish[0])]
    else:
        by_name = {port.end.port: port for port in rest}
        both = all(name in by_name for name in wish)
        found = [_Group(tuple(by_name[name] for name in wish))] if both else []
    for group in found:
        for port in group.ports:
            rest.remove(port)
    return found


def _lag_names(host: FoundNode, groups: Sequence[_Group], taken: set[str]) -> list[str]:
    """Return a name for each LAG: the host's own where Linux can have it, else bond0, bond1, ..."""
    own = [g.name if g.name and g.name in host.nics and _fits(g.name) else None for g in groups]
    used = {*taken, *(name for name in own if name is not None)}
    numbered = (name for n in range(len(groups) + len(used) + 1) if (name := f"bond{n}") not in used)
    return [name if name is not None and name not in taken else next(numbered) for name in own]


def _fits(lag: str) -> bool:
    """Return True if Linux can have the name, and also one with a letter more, for the far end of the LAG's veth."""
    return linux_name(lag) == lag and len(lag) < _LONGEST


def _nic(host: FoundNode, group: _Group) -> WiredNic:
    names = [port.name for port in group.ports]
    known = _known(host, group)
    return WiredNic(ports=names, ip=known.ip, gateway=known.gateway)


def _known(host: FoundNode, group: _Group) -> FoundNic:
    """Return the addresses that the file gives the LAG, or the only port of a NIC."""
    first = group.ports[0]
    known = host.nics.get(group.name or first.end.port, FoundNic())
    address = ipv4(first.end.address)
    if known.ip is None and len(group.ports) == 1 and address is not None:
        return FoundNic(address, (ipv4(first.far.address) or "").partition("/")[0] or None)
    return known
