"""Commands of iproute2 that a container runs when it starts, such as containerlab's ``exec``: addresses and gateways.

Pure. What else a command does is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Interface

from hpn.testbed.importing.addresses import ipv4, plain_ip
from hpn.testbed.importing.found import FoundNic

_BETWEEN = re.compile(r"[;&|'\"]+")
"""What separates commands of a shell, and the quotes around them."""


def nics_in(commands: Sequence[str]) -> Mapping[str, FoundNic]:
    """Return the first IPv4 address of each interface, and the first gateway of a route in its subnet."""
    parts = [part for command in commands for part in _parts(command)]
    addresses: dict[str, str] = {}
    for words in filter(_adds_address, parts):
        device = _after("dev", words)
        address = next((found for word in words if (found := ipv4(word)) is not None), None)
        if device is not None and address is not None:
            addresses.setdefault(device, address)
    gateways = [plain_ip(_after("via", words)) for words in filter(_adds_route, parts)]
    return {device: FoundNic(address, _gateway(address, gateways)) for device, address in addresses.items()}


def says_nothing_else(command: str) -> bool:
    """Return True if a command only adds an address, or a route through a gateway."""
    return all(_adds_address(words) or _adds_route(words) for words in _parts(command))


def _parts(command: str) -> Iterator[list[str]]:
    """Yield the words of each command in a line."""
    for part in _BETWEEN.split(command):
        if words := [word for word in part.split() if word not in {"sudo", "-4"}]:
            yield words


def _adds_address(words: Sequence[str]) -> bool:
    return _is(words, "address", {"add", "replace"})


def _adds_route(words: Sequence[str]) -> bool:
    return _is(words, "route", {"add", "replace", "change"}) and "via" in words


def _is(words: Sequence[str], what: str, does: set[str]) -> bool:
    """Return True for 'ip ADDRESS add': iproute2 takes any beginning of a word."""
    return len(words) > 2 and words[0] == "ip" and what.startswith(words[1]) and words[2] in does


def _after(key: str, words: Sequence[str]) -> str | None:
    return words[words.index(key) + 1] if key in words[:-1] else None


def _gateway(address: str, gateways: Sequence[str | None]) -> str | None:
    network = IPv4Interface(address).network
    return next((each for each in gateways if each is not None and IPv4Address(each) in network), None)
