"""Labels of containerlab's nodes and links that hpn reads: ``hpn-asn``, ``hpn-nics`` and others. Pure.

Changes when another label is read. A value that means nothing is noted as a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from hpn.testbed.fabric.values import parse_rate
from hpn.testbed.files.document import shorten
from hpn.testbed.importing.addresses import plain_ip
from hpn.testbed.importing.found import Place
from hpn.testbed.importing.mistakes import ImportMistakes


def asn_of(text: str | None, place: Place, mistakes: ImportMistakes) -> int | None:
    """Return the AS number in hpn-asn."""
    if text is None:
        return None
    if not re.fullmatch(r"[1-9][0-9]{0,9}", text, re.ASCII) or int(text) > 2**32 - 2:
        mistakes.add(place, f"label hpn-asn is {shorten(text)}; write an AS number, such as 65001")
        return None
    return int(text)


def router_id_of(text: str | None, place: Place, mistakes: ImportMistakes) -> str | None:
    """Return the address in hpn-router-id."""
    found = plain_ip(text)
    if text is not None and found is None:
        mistakes.add(place, f"label hpn-router-id is {shorten(text)}; write an IPv4 address, such as 10.0.0.1")
    return found


def rate_of(value: object, place: Place, mistakes: ImportMistakes) -> int | None:
    """Return the rate in hpn-rate, in bit/s."""
    if value is None:
        return None
    try:
        return parse_rate(value)
    except ValueError as error:
        mistakes.add(place, f"label hpn-rate: {error}")
        return None


def lags_of(text: str, place: Place, mistakes: ImportMistakes) -> Mapping[str, str]:
    """Return the LAG of each port in 'bond0=eth1+eth2 bond1=eth3'."""
    lag_of: dict[str, str] = {}
    for part in text.split():
        lag, equals, ports = part.partition("=")
        if not equals or not lag or not all(ports.split("+")):
            mistakes.add(place, f"label hpn-nics has {shorten(part)}; write LAG=PORT+PORT, such as bond0=eth1+eth2")
        lag_of |= dict.fromkeys(ports.split("+"), lag)
    return lag_of
