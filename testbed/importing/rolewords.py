"""Words for roles in files of other tools. Pure. Changes when another word is common for one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hpn.testbed.fabric.wired.wiring_spec import RoleName

_WORDS: Mapping[RoleName, tuple[str, ...]] = {
    "host": ("host", "server", "gpu", "gpu-server", "gpu-node", "compute", "compute-node", "client", "worker"),
    "tor": ("tor", "leaf", "leaf-switch", "tor-switch", "top-of-rack", "access-switch", "asw"),
    "agg": ("agg", "spine", "spine-switch", "aggregation", "aggregation-switch", "psw"),
    "core": ("core", "superspine", "super-spine", "core-switch", "dsw"),
}
_ROLE_OF: Mapping[str, RoleName] = {word: role for role, words in _WORDS.items() for word in words}


def role_of(word: str) -> RoleName | None:
    """Return the role that a word stands for; case, plural and '_' do not matter. None if it is none."""
    plain = word.strip().lower().replace("_", "-").replace(" ", "-")
    return _ROLE_OF.get(plain) or _ROLE_OF.get(plain.removesuffix("s")) or _ROLE_OF.get(plain.removesuffix("es"))


def one_role(words: Iterable[str]) -> RoleName | None:
    """Return the role that these words agree on; None if they name none, or several."""
    found = {role for word in words if (role := role_of(word)) is not None}
    return found.pop() if len(found) == 1 else None
