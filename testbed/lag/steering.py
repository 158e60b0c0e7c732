"""LAG steering by destination: packets to some addresses leave by another member port than the LAG's choice.

There is one nftables chain at the egress of each member (netdev egress, Linux 5.16). It comes after the choice of port
by either datapath, Linux bonding's or ours, and before the port's token bucket. Each other member has a set of
addresses there. The rules never change, only the sets' contents, and one transaction makes all changes at a time. A
redirected frame passes the other member's chain too: addresses must not be steered in a circle.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel import ns
from hpn.testbed.kernel.nftables.nft import Nft
from hpn.testbed.routing.pathcontrol.actions import Steer

BEFORE_ALL = -300
"""Priority: other chains at a port's egress see only frames that really leave by it."""

_FEATURES = """
table netdev probe {{
  set s {{ type {kind}; }}
  chain c {{ type filter hook egress device "lo" priority {priority}; {key} @s fwd to "lo"; }}
}}
"""
_WAY_OUT = "Linux 5.16 or newer with nftables' netdev egress hook, nft_fwd_netdev"


class Steering:
    """The steering of one NIC; ``nft`` is shared by all NICs of the host."""

    def __init__(self, nft: Nft, lag: str, ports: Sequence[str]) -> None:
        """Describe the steering; ``ports`` are the member ports in the order of their links."""
        self._nft = nft
        self._table = f"steer_{lag}"
        self._ports = tuple(ports)
        self._steered: dict[tuple[str, str], str] = {}  # port and address: the port to use instead
        self._stands = False

    def setup(self) -> None:
        """Create chains and empty sets; no-op for a NIC of one port. NftError when the kernel refuses."""
        if len(self._ports) > 1:
            self._nft.run(table(self._table, self._ports))
            self._stands = True

    def apply(self, changes: Iterable[Steer]) -> None:
        """Apply the changes in one transaction: a packet meets the old sets or the new ones."""
        lines = []
        for (start, end, verb), addresses in self._grouped(changes).items():
            name = _set_name(self._ports, start, end)
            lines.append(f"{verb} element netdev {self._table} {name} {{ {', '.join(addresses)} }}")
        if lines:
            self._nft.run("\n".join(lines))

    def port_for(self, port: str, dst_ip: str) -> str:
        """Return the egress port of a packet that the LAG sends to ``port``."""
        return self._steered.get((port, dst_ip), port)

    @property
    def steered(self) -> Mapping[tuple[str, str], str]:
        """Requested steering, as ``standing``, which reads the kernel and is slower."""
        return self._steered

    def standing(self) -> Mapping[tuple[str, str], str]:
        """Return the kernel's steering: port and address to the port used instead. NftError when the table is gone."""
        if not self._stands:
            return {}
        sets = elements(self._nft.run(f"list table netdev {self._table}"))
        return {
            (start, ip): end
            for start, end in pairs(self._ports)
            for ip in sets.get(_set_name(self._ports, start, end), ())
        }

    def close(self) -> None:
        """Remove the steering."""
        if self._stands:
            self._nft.run(f"delete table netdev {self._table}")
            self._stands = False
        self._steered.clear()

    def _grouped(self, changes: Iterable[Steer]) -> Mapping[tuple[str, str, str], list[str]]:
        """Record the changes; return the addresses to delete and add by from, to and verb."""
        gone: dict[tuple[str, str, str], list[str]] = {}
        come: dict[tuple[str, str, str], list[str]] = {}
        for change in changes:
            at = change.from_port, change.dst_ip
            before = self._steered.pop(at, None)
            if before is not None:
                gone.setdefault((change.from_port, before, "delete"), []).append(change.dst_ip)
            if change.to_port is not None:
                self._steered[at] = change.to_port
                come.setdefault((change.from_port, change.to_port, "add"), []).append(change.dst_ip)
        return gone | come


def check() -> None:
    """Raise MachineError, with a remedy, when this kernel cannot steer.

    Needs the right to create network namespaces.
    """
    check_egress("no steering by destination", "path_control: {policy: off}", "ipv4_addr", "ip daddr")


def check_egress(what: str, otherwise: str, kind: str, key: str) -> None:
    """Raise MachineError, that there is ``what`` in this kernel, when it cannot forward at egress by a set.

    The set is of type ``kind`` and looked up by ``key``. ``otherwise``: what to write to do without.
    """
    probe = ns.create("egress-probe")
    try:
        nft = Nft(probe)
        try:
            nft.run(_FEATURES.format(kind=kind, key=key, priority=BEFORE_ALL))
        finally:
            nft.close()
    except OSError as error:
        text = f"{what} in this kernel ({str(error).splitlines()[0]}); it needs {_WAY_OUT}, or {otherwise}"
        raise MachineError(text) from error
    finally:
        os.close(probe.fd)


def table(name: str, ports: Sequence[str]) -> str:
    """Return the table for these member ports, with empty sets. Pure."""
    sets = "".join(f"set {_set_name(ports, *pair)} {{ type ipv4_addr; }}\n" for pair in pairs(ports))
    chains = "".join(
        f'chain p{index} {{ type filter hook egress device "{port}" priority {BEFORE_ALL};\n'
        + "".join(
            f'ip daddr @{_set_name(ports, start, end)} fwd to "{end}"\n' for start, end in pairs(ports) if start == port
        )
        + "}\n"
        for index, port in enumerate(ports)
    )
    return f"table netdev {name} {{\n{sets}{chains}}}\n"


def pairs(ports: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each member port with each other."""
    return ((start, end) for start in ports for end in ports if start != end)


def elements(listed: str) -> Mapping[str, Sequence[str]]:
    """Parse nft's listing of a table: the addresses in each non-empty set."""
    sets = re.findall(r"set (\w+) \{[^{}]*elements = \{([^}]*)\}", listed)
    return {name: re.findall(r"\d+\.\d+\.\d+\.\d+", within) for name, within in sets}


def _set_name(ports: Sequence[str], start: str, end: str) -> str:
    return f"from{ports.index(start)}to{ports.index(end)}"
