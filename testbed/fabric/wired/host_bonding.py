"""Words of a bond as options of a LAG, with the driver's own defaults for what a file leaves out. Pure.

Changes when another option of Linux bonding is honoured. Values are those of Documentation/networking/bonding.rst.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import AddressValueError, IPv4Address, IPv4Interface

from hpn.testbed.fabric.addresses import interface_in
from hpn.testbed.fabric.bonding import AD_SELECT, HASH_POLICIES, Bonding
from hpn.testbed.fabric.spec import LacpRate
from hpn.testbed.fabric.wired.host_words import BondWords, Said
from hpn.testbed.files.document import shorten

_MODES = ("balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb")
_DRIVER = Bonding(lacp_rate="slow", miimon_ms=100, xmit_hash_policy="layer2")
"""The driver's defaults. In mode 802.3ad it looks at carrier every 100 ms where the file says 0 or nothing."""
_LONGEST_MS, _MOST_LINKS = 3_600_000, 1024
_POLICIES = tuple(each.name for each in sorted(HASH_POLICIES.values(), key=lambda each: each.number))


def _one_of(names: Sequence[str], text: str) -> str:
    """Return a name of the driver, given as such or by its number. ValueError with the names."""
    if text in names:
        return text
    if text.isascii() and text.isdecimal() and len(text) < 4 and int(text) < len(names):
        return names[int(text)]
    raise ValueError(f"one of {', '.join(names)}")


def _number(most: int, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 9 and int(text) <= most):
        raise ValueError(f"a whole number up to {most}")
    return int(text)


def _kept(bonding: Bonding, _mode: str) -> Bonding:
    """Return the options as they are: the mode is 802.3ad, and ``_mode`` was checked."""
    return bonding


def _rate(text: str) -> LacpRate:
    return "fast" if _one_of(("slow", "fast"), text) == "fast" else "slow"


_OPTIONS: Mapping[str, Callable[[Bonding, str], Bonding]] = {
    "mode": lambda bonding, text: _kept(bonding, _one_of(_MODES, text)),
    "lacp_rate": lambda bonding, text: replace(bonding, lacp_rate=_rate(text)),
    "miimon": lambda bonding, text: replace(bonding, miimon_ms=_number(_LONGEST_MS, text) or _DRIVER.miimon_ms),
    "updelay": lambda bonding, text: replace(bonding, up_delay_ms=_number(_LONGEST_MS, text)),
    "downdelay": lambda bonding, text: replace(bonding, down_delay_ms=_number(_LONGEST_MS, text)),
    "xmit_hash_policy": lambda bonding, text: replace(bonding, xmit_hash_policy=_one_of(_POLICIES, text)),
    "min_links": lambda bonding, text: replace(bonding, min_links=_number(_MOST_LINKS, text)),
    "ad_select": lambda bonding, text: replace(bonding, ad_select=_one_of(AD_SELECT, text)),
}
"""How each option changes those of a bond, by the driver's name of it. ValueError with what it takes."""
_IDLE = {"primary", "primary_reselect", "use_carrier", "num_grat_arp", "num_unsol_na", "resend_igmp", "fail_over_mac"}
"""Options that change nothing in mode 802.3ad with hpn's traffic."""


@dataclass(frozen=True, slots=True)
class BondOptions:
    """Options of a bond; lines on what is not done, and on what is wrong."""

    bonding: Bonding
    left: tuple[str, ...]
    wrong: tuple[str, ...]


def options_of(words: BondWords, aggregate_wait_ms: int) -> BondOptions:
    """Return the options that a bond's words give it."""
    bonding = replace(_DRIVER, aggregate_wait_ms=aggregate_wait_ms)
    left, wrong = list(_mode(words)), list(_addresses(words))
    for name, said in words.options.items():
        if name not in _OPTIONS:
            reason = "it changes nothing in mode 802.3ad" if name in _IDLE else "hpn does not set it"
            left.append(f"{said.where}: not done: {_told(said)}: {reason}")
            continue
        try:
            bonding = _OPTIONS[name](bonding, said.text)
        except ValueError as error:
            wrong.append(f"{said.where}: {_told(said)} is not what the driver takes; write {error}")
    if words.ports and bonding.min_links > len(words.ports):
        said = words.options["min_links"]
        told = f"{_told(said)}: {words.name} has {len(words.ports)} ports and would carry nothing"
        wrong.append(f"{said.where}: {told}; write a smaller number")
    left += _rounded(words, bonding)
    return BondOptions(_in_looks(bonding), tuple(left), tuple(wrong))


def _in_looks(bonding: Bonding) -> Bonding:
    """Return the options with delays of whole looks at carrier, as the driver counts them."""
    look_ms = bonding.miimon_ms or 0
    up, down = bonding.looks(bonding.up_delay_ms), bonding.looks(bonding.down_delay_ms)
    return replace(bonding, up_delay_ms=up * look_ms, down_delay_ms=down * look_ms)


def _told(said: Said) -> str:
    return f"{shorten(said.word, quoted=False)} {shorten(said.text, quoted=False)}"


def _mode(words: BondWords) -> Iterator[str]:
    said = words.options.get("mode")
    if said is None:
        yield f"{words.where}: not done: {words.name} has no mode, so it is balance-rr; hpn runs LACP: write 802.3ad"
    elif said.text not in ("802.3ad", "4") and (said.text in _MODES or said.text in "012356"):
        yield f"{said.where}: not done: {_told(said)}: hpn runs LACP, 802.3ad, instead"


def _rounded(words: BondWords, bonding: Bonding) -> Iterator[str]:
    """Yield delays that the driver rounds."""
    counted = _in_looks(bonding)
    asked, taken = ({"updelay": each.up_delay_ms, "downdelay": each.down_delay_ms} for each in (bonding, counted))
    for name, given_ms in asked.items():
        if taken[name] != given_ms:
            said = words.options[name]
            yield f"{said.where}: {_told(said)} is no multiple of miimon: the driver takes {taken[name]} ms"


def _addresses(words: BondWords) -> Iterator[str]:
    """Yield what no NIC can have; the topology's own rules compare the NICs of a network."""
    if (said := words.address) is not None and (interface_of(said) is None):
        yield f"{said.where}: {_told(said)} is no IPv4 address with a prefix up to 30; write one such as 10.0.0.1/24"
    if (said := words.gateway) is not None:
        own = None if words.address is None else interface_of(words.address)
        if own is None or not _inside(said.text, own):
            yield f"{said.where}: {_told(said)} is no other address of {words.name}'s subnet; write one"


def _inside(text: str, own: IPv4Interface) -> bool:
    try:
        return IPv4Address(text) in own.network and text != str(own.ip)
    except AddressValueError:
        return False


def interface_of(said: Said) -> IPv4Interface | None:
    """Return an address with its subnet; None if it is none, or its prefix is longer than 30."""
    found = interface_in(said.text)
    return found if found is not None and found.network.prefixlen <= 30 else None
