"""What every client says of itself: the keys of its part of a drill file, and what is to be run for them. PURE.

Changes when every client must say something more. A new client is a class in a module of ``traffic.client.clients``,
listed in ``traffic.client.registry``; an object of it is ``workload.client`` of a drill, checked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from hpn.testbed.fabric.spec import Strict
from hpn.testbed.files.units import duration
from hpn.traffic.client.plan import ClientPlan
from hpn.traffic.client.ranks import PER_HOST, ClientRank


@dataclass(frozen=True, slots=True)
class Site:
    """Where a client is started: ``here`` is the folder of the drill file, ``python`` runs hpn itself."""

    here: Path
    python: str


class Client(Strict, ABC):
    """``workload.client``: the keys that all clients have; a subclass adds its own.

    ``deadline`` is for its preparation, in nanoseconds: real work, which takes no virtual time.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_alias=True)

    KEY: ClassVar[str]
    """What ``run:`` says."""
    SUMMARY: ClassVar[str]
    """For docs and the terminal, without a full stop."""
    NEEDS_RDMA: ClassVar[bool] = False
    """Whether every NIC needs an RDMA device."""

    run: str
    ranks: int | None = Field(default=None, ge=1, le=4096)
    per: Literal["host", "nic"] = PER_HOST
    rail: int = Field(default=0, ge=0)
    deadline: Annotated[int, duration("100 ms", "10 min")] = 30 * 10**9

    @abstractmethod
    def missing(self, site: Site) -> str | None:
        """What this machine lacks for it, in one line with the way out; None: nothing. Opens no namespace."""

    @abstractmethod
    def plan(self, ranks: Sequence[ClientRank], site: Site) -> ClientPlan:
        """What is to be run for these ranks. InputError when they do not fit."""


def lacks(client: type[Client]) -> list[str]:
    """What a client does not say of itself."""
    said = [name for name in ("KEY", "SUMMARY") if not isinstance(getattr(client, name, None), str)]
    return said + sorted(client.__abstractmethods__)
