"""Base class of clients: the keys in a drill file, and the plan of processes to run. PURE.

Changes when every client needs a further key or property. A new client is a class in a module of
``traffic.client.clients``, listed in ``traffic.client.registry``. An object of it is ``workload.client`` of a drill,
checked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from hpn.testbed.fabric.values import Strict
from hpn.testbed.files.units import duration
from hpn.traffic.client.plan import ClientPlan
from hpn.traffic.client.ranks import PER_HOST, ClientRank


@dataclass(frozen=True, slots=True)
class Site:
    """Context of a client's start: ``here`` is the folder of the drill file, ``python`` runs hpn itself."""

    here: Path
    python: str


class Client(Strict, ABC):
    """``workload.client``: the keys that all clients have; a subclass adds its own.

    ``deadline`` is for its preparation, in nanoseconds: real work, which takes no virtual time.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_alias=True)

    KEY: ClassVar[str]
    """Value of ``run:`` in a drill file."""
    SUMMARY: ClassVar[str]
    """Summary for docs and the terminal, without a full stop."""
    NEEDS_RDMA: ClassVar[bool] = False
    """True if every NIC needs an RDMA device."""

    run: str
    ranks: int | None = Field(default=None, ge=1, le=4096)
    per: Literal["host", "nic"] = PER_HOST
    rail: int = Field(default=0, ge=0)
    deadline: Annotated[int, duration("100 ms", "10 min")] = 30 * 10**9

    @abstractmethod
    def missing(self, site: Site) -> str | None:
        """Return what this machine lacks for it, in one line with the remedy; None: nothing. Opens no namespace."""

    @abstractmethod
    def plan(self, ranks: Sequence[ClientRank], site: Site) -> ClientPlan:
        """Return the processes to run for these ranks. InputError when they do not fit."""


def lacks(client: type[Client]) -> list[str]:
    """Return the names of required attributes that a client does not define."""
    said = [name for name in ("KEY", "SUMMARY") if not isinstance(getattr(client, name, None), str)]
    return said + sorted(client.__abstractmethods__)
