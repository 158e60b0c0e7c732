"""A network as a file of another tool has it: names are the file's, roles and LAGs may be missing. Pure.

Each format's module produces it, ``testbed.importing.resolving`` makes a wiring of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hpn.testbed.fabric.wired.wiring_spec import RoleName
from hpn.testbed.files.document import Document, Where, shorten


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file; as text it is 'file:line'."""

    document: Document = field(repr=False)
    where: Where = ()

    def __str__(self) -> str:
        return f"{self.document.name}:{self.document.line(self.where)}"


@dataclass(frozen=True, slots=True)
class FoundNic:
    """A NIC of a host: ``ip`` has a prefix length, ``gateway`` has none."""

    ip: str | None = None
    gateway: str | None = None


@dataclass(frozen=True, slots=True)
class FoundNode:
    """A node. ``kind`` describes it in messages: 'kind nokia_srlinux'; ``nics`` are a host's, by LAG interface.

    ``config`` is the path of a switch's own configuration, from the folder of the file that names it.
    """

    name: str
    place: Place
    role: RoleName | None = None
    kind: str = ""
    asn: int | None = None
    router_id: str | None = None
    spare: bool = False
    config: str | None = None
    nics: Mapping[str, FoundNic] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class End:
    """One end of a cable. ``nic`` is the LAG that the port is a member of, on a host; ``rate_bps`` the port's speed."""

    node: str
    port: str
    address: str | None = None
    rate_bps: int | None = None
    nic: str | None = None

    @property
    def label(self) -> str:
        """'node:port', as the file has it."""
        return f"{self.node}:{self.port}"

    @property
    def shown(self) -> str:
        """The same for a message: short and on one line."""
        return shorten(self.label, 80, quoted=False)


@dataclass(frozen=True, slots=True)
class Cable:
    """A cable. ``primary`` names the first ToR of a stack, on the stack's peer link."""

    ends: tuple[End, End]
    place: Place
    rate_bps: int | None = None
    primary: str | None = None

    @property
    def shown(self) -> str:
        """Both ends for a message: 'leaf1:e1 - spine1:e3'."""
        return f"{self.ends[0].shown} - {self.ends[1].shown}"


@dataclass(frozen=True, slots=True)
class Left:
    """A thing of the file that the wiring does not have. ``names`` says of which nodes, cables or keys."""

    what: str
    why: str
    names: tuple[str, ...] = ()
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A whole network. ``name`` is the file's name of it; ``notes`` say how the file was understood."""

    nodes: tuple[FoundNode, ...]
    cables: tuple[Cable, ...]
    left: tuple[Left, ...] = ()
    notes: tuple[str, ...] = ()
    name: str | None = None
