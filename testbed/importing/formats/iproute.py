"""Commands of iproute2 that a container runs when it starts, such as containerlab's ``exec``: addresses and gateways.

Pure. What else a command does is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv4Interface

from hpn.testbed.importing.addresses import ipv4, plain_ip
from hpn.testbed.importing.found import FoundNic

_ADDRESS = re.compile(r"\bip\s+(?:-4\s+)?a(?:d|dd|ddr|ddress)?\s+(?:add|replace)\s+(?P<words>[^;&|'\"]+)")
_ROUTE = re.compile(
    r"\bip\s+(?:-4\s+)?r(?:o|oute)?\s+(?:add|replace|change)\s+[^;&|'\"]*?\bvia\s+(?P<gateway>[0-9.]{7,15})(?![0-9.])"
)


def nics_in(commands: Sequence[str]) -> Mapping[str, FoundNic]:
    """Return the first IPv4 address of each interface, and the first gateway of a route in its subnet."""
    addresses: dict[str, str] = {}
    for command in commands:
        for match in _ADDRESS.finditer(command):
            words = match["words"].split()
            device = words[words.index("dev") + 1] if "dev" in words[:-1] else None
            address = next((found for word in words if (found := ipv4(word)) is not None), None)
            if device is not None and address is not None:
                addresses.setdefault(device, address)
    gateways = [plain_ip(match["gateway"]) for command in commands for match in _ROUTE.finditer(command)]
    return {device: FoundNic(address, _gateway(address, gateways)) for device, address in addresses.items()}


def says_nothing_else(command: str) -> bool:
    """Return True if a command only adds an address or a route through a gateway."""
    whole = command.strip()
    return any(pattern.match(whole) is not None for pattern in (_ADDRESS, _ROUTE)) and not re.search(r"[;&|]", whole)


def _gateway(address: str, gateways: Sequence[str | None]) -> str | None:
    network = IPv4Interface(address).network
    return next((each for each in gateways if each is not None and IPv4Address(each) in network), None)
