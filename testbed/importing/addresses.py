"""Addresses of imported cables between switches: taken where both ends are of one IPv4 subnet. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv4Interface, NetmaskValueError

from hpn.testbed.importing.found import Cable, Left


@dataclass(frozen=True, slots=True)
class LinkAddresses:
    """Addresses by the number of the cable, in the order of its ends; and what was not taken."""

    by_cable: Mapping[int, list[str]]
    left: tuple[Left, ...]


def link_addresses(cables: Sequence[Cable], roles: Mapping[str, str | None]) -> LinkAddresses:
    """Return the addresses of cables between switches."""
    taken: dict[int, list[str]] = {}
    odd = []
    for number, cable in enumerate(cables):
        given = [end.address for end in cable.ends]
        if any(roles.get(end.node) == "host" for end in cable.ends) or given == [None, None]:
            continue
        pair = _pair(given)
        if pair is None:
            odd.append(cable.shown)
        else:
            taken[number] = pair
    why = "not two addresses of one IPv4 subnet; numbered by hpn"
    return LinkAddresses(taken, (Left("addresses of links", why, tuple(odd)),) if odd else ())


def ipv4(text: str | None) -> str | None:
    """Return an IPv4 address with its prefix length; None if ``text`` is no such thing."""
    try:
        return str(IPv4Interface(text)) if text and "/" in text else None
    except (AddressValueError, NetmaskValueError, ValueError):
        return None


def plain_ip(text: str | None) -> str | None:
    """Return an IPv4 address without a prefix length; None if ``text`` is no such thing."""
    try:
        return str(IPv4Address(text)) if text else None
    except AddressValueError:
        return None


def _pair(given: Sequence[str | None]) -> list[str] | None:
    found = [address for each in given if (address := ipv4(each)) is not None]
    if len(found) != 2 or found[0] == found[1]:
        return None
    return found if IPv4Interface(found[0]).network == IPv4Interface(found[1]).network else None
