"""The LAG steers by destination: what leaves by a member port for some addresses leaves by another member instead.

One nftables chain on the way out of each member (netdev egress, Linux 5.16), which comes after the choice of port by
either datapath, Linux bonding's or ours, and before the port's token bucket. Beside it a set of addresses for each
other member; the rules never change, only what is in the sets, and one transaction carries out all that is wanted at a
time. A frame that is handed over passes the other member's chain too: addresses must not be steered in a circle.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel import ns
from hpn.testbed.kernel.nftables.nft import Nft
from hpn.testbed.routing.pathcontrol.actions import Steer

_BEFORE_ALL = -300
"""Priority: whatever else looks at what leaves a port sees only what does leave by it."""

_FEATURES = f"""
table netdev probe {{
  set s {{ type ipv4_addr; }}
  chain c {{ type filter hook egress device "lo" priority {_BEFORE_ALL}; ip daddr @s fwd to "lo"; }}
}}
"""
_WAY_OUT = "Linux 5.16 or newer with nftables' netdev egress hook, nft_fwd_netdev, or path_control: {policy: off}"


class Steering:
    """The steering of one NIC; ``nft`` is shared by all NICs of the host."""

    def __init__(self, nft: Nft, lag: str, ports: Sequence[str]) -> None:
        """``ports``: the member ports in the order of their links."""
        self._nft = nft
        self._table = f"steer_{lag}"
        self._ports = tuple(ports)
        self._steered: dict[tuple[str, str], str] = {}  # port and address: the port to use instead
        self._stands = False

    def setup(self) -> None:
        """Make chains and empty sets; nothing for a NIC of one port. NftError when the kernel refuses."""
        if len(self._ports) > 1:
            self._nft.run(table(self._table, self._ports))
            self._stands = True

    def apply(self, changes: Iterable[Steer]) -> None:
        """Carry out these in one transaction: a packet meets the sets as they were or as they will be."""
        lines = []
        for (start, end, verb), addresses in self._grouped(changes).items():
            name = _set_name(self._ports, start, end)
            lines.append(f"{verb} element netdev {self._table} {name} {{ {', '.join(addresses)} }}")
        if lines:
            self._nft.run("\n".join(lines))

    def port_for(self, port: str, dst_ip: str) -> str:
        """The port by which a packet leaves that the LAG sends to ``port``."""
        return self._steered.get((port, dst_ip), port)

    @property
    def steered(self) -> Mapping[tuple[str, str], str]:
        """What was asked of the kernel, as ``standing``, which asks the kernel itself and takes longer."""
        return self._steered

    def standing(self) -> Mapping[tuple[str, str], str]:
        """What the kernel steers: port and address to the port used instead. NftError when the table is gone."""
        if not self._stands:
            return {}
        sets = elements(self._nft.run(f"list table netdev {self._table}"))
        return {
            (start, ip): end
            for start, end in pairs(self._ports)
            for ip in sets.get(_set_name(self._ports, start, end), ())
        }

    def close(self) -> None:
        """Steer no more."""
        if self._stands:
            self._nft.run(f"delete table netdev {self._table}")
            self._stands = False
        self._steered.clear()

    def _grouped(self, changes: Iterable[Steer]) -> Mapping[tuple[str, str, str], list[str]]:
        """Note the changes, and say what is to be deleted and added: from, to and verb with the addresses."""
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
    """MachineError, naming the way out, when this kernel cannot steer.

    Needs the right to make network namespaces.
    """
    probe = ns.create("steer-probe")
    try:
        nft = Nft(probe)
        try:
            nft.run(_FEATURES)
        finally:
            nft.close()
    except OSError as error:
        text = f"no steering by destination in this kernel ({str(error).splitlines()[0]}); it needs {_WAY_OUT}"
        raise MachineError(text) from error
    finally:
        os.close(probe.fd)


def table(name: str, ports: Sequence[str]) -> str:
    """The table for these member ports, with nothing in its sets. Pure."""
    sets = "".join(f"set {_set_name(ports, *pair)} {{ type ipv4_addr; }}\n" for pair in pairs(ports))
    chains = "".join(
        f'chain p{index} {{ type filter hook egress device "{port}" priority {_BEFORE_ALL};\n'
        + "".join(
            f'ip daddr @{_set_name(ports, start, end)} fwd to "{end}"\n' for start, end in pairs(ports) if start == port
        )
        + "}\n"
        for index, port in enumerate(ports)
    )
    return f"table netdev {name} {{\n{sets}{chains}}}\n"


def pairs(ports: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each member port with each other."""
    return ((start, end) for start in ports for end in ports if start != end)


def elements(listed: str) -> Mapping[str, Sequence[str]]:
    """The addresses in each set that has any, in what nft says of a table."""
    sets = re.findall(r"set (\w+) \{[^{}]*elements = \{([^}]*)\}", listed)
    return {name: re.findall(r"\d+\.\d+\.\d+\.\d+", within) for name, within in sets}


def _set_name(ports: Sequence[str], start: str, end: str) -> str:
    return f"from{ports.index(start)}to{ports.index(end)}"
