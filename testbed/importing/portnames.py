"""Interface names that Linux can have, for those of other systems. Pure."""

from __future__ import annotations

import re

from hpn.testbed.fabric.wired.wiring_spec import PORT_NAME

_LONGEST = 15
_TAKEN = frozenset(
    (
        *("lo", "all", "default", "bonding_masters", "tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0"),
        *("sit0", "ip6tnl0", "ip6gre0"),
    )
)
"""Interfaces that the kernel makes in every namespace, and names with a meaning below /proc/sys/net."""
_HEAD = re.compile(r"[A-Za-z_.-]*")


def linux_name(name: str) -> str:
    """Return ``name`` if Linux and topology files can have it, else a similar one: 'Ethernet1/1' becomes 'Ethernet1-1'.

    Long names lose letters before the first digit: numbers tell ports apart.
    """
    if re.fullmatch(PORT_NAME, name, re.ASCII) and name not in _TAKEN:
        return name
    text = re.sub(r"[^A-Za-z0-9_.-]", "-", name)
    if not text[:1].isalpha() or text in _TAKEN:
        text = f"p{text}"
    head = _HEAD.match(text)
    tail = text[head.end() :] if head else ""
    return text[: max(_LONGEST - len(tail), 1)] + tail[: _LONGEST - 1] if len(text) > _LONGEST else text


class PortNames:
    """Names given so far: no two ports of a node get the same."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}
        self._used: set[tuple[str, str]] = set()

    def given(self, node: str, port: str, *, needs_digit: bool = False) -> str:
        """Return the name of a node's port; the same one each time.

        ``needs_digit``: BIRD may read a name without one as a word of its language.
        """
        if (node, port) not in self._given:
            name = linux_name(port)
            if needs_digit and not any(map(str.isdigit, name)):
                name = f"{name[: _LONGEST - 1]}0"
            name = self._free(node, name)
            self._given[node, port] = name
            self._used.add((node, name))
        return self._given[node, port]

    def _free(self, node: str, name: str) -> str:
        number = 2
        free = name
        while (node, free) in self._used:
            mark = f"-{number}"
            free = name[: _LONGEST - len(mark)] + mark
            number += 1
        return free
