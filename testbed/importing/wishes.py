"""Options of an import: roles and NICs that the file does not have, and what to leave out. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.wired.wiring_spec import RoleName
from hpn.testbed.files.document import shorten
from hpn.testbed.importing.rolewords import role_of

_ROLES = "host, tor (leaf), agg (spine) or core (superspine)"


@dataclass(frozen=True, slots=True)
class RoleWish:
    """Nodes whose name matches ``pattern`` have this role, whatever the file says."""

    pattern: str
    role: RoleName


@dataclass(frozen=True, slots=True)
class Wishes:
    """The options of one import. ``leave``: patterns of nodes, or of cables by 'node:port'; ``nics``: ports of each."""

    roles: tuple[RoleWish, ...] = ()
    leave: tuple[str, ...] = ()
    nics: tuple[tuple[str, ...], ...] = ()

    def role(self, node: str) -> RoleName | None:
        """Return the role of the first pattern that matches."""
        return next((wish.role for wish in self.roles if fnmatchcase(node, wish.pattern)), None)

    def leaves_node(self, node: str) -> bool:
        """Return True if a pattern leaves the node out."""
        return any(":" not in each and fnmatchcase(node, each) for each in self.leave)

    def leaves_port(self, label: str) -> bool:
        """Return True if a pattern leaves out the cable at 'node:port'."""
        return any(":" in each and fnmatchcase(label, each) for each in self.leave)


def wishes_of(roles: Iterable[str], leave: Sequence[str], nics: Iterable[str]) -> Wishes:
    """Parse options as the command line has them: 'leaf*=tor', 'mgmt*', 'eth1+eth2'. InputError with all mistakes."""
    problems: list[str] = []
    found = [_role(each, problems) for each in roles]
    bundles = tuple(tuple(each.split("+")) for each in nics)
    for ports in bundles:
        if len(ports) > 2 or not all(ports) or (len(ports) == 2 and ports[0] == ports[1]):
            problems.append(f"--nic {shorten('+'.join(ports))}: a NIC has one port or two; write eth1+eth2, or eth1")
    if problems:
        raise InputError(problems)
    return Wishes(tuple(each for each in found if each is not None), tuple(leave), bundles)


def _role(text: str, problems: list[str]) -> RoleWish | None:
    pattern, equals, word = text.rpartition("=")
    role = role_of(word)
    if not equals or not pattern or role is None:
        problems.append(f"--role {shorten(text)}: write PATTERN=ROLE, such as 'leaf*=tor'; roles are {_ROLES}")
        return None
    return RoleWish(pattern, role)
