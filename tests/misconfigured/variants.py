"""Fifty correct repositories: other names, ASNs, timers, spelling, filters, daemons. Some of them are audited too."""

from __future__ import annotations

from collections.abc import Iterator

from tests.misconfigured.drawn import Wishes, draw
from tests.misconfigured.repository import Repository

MANY, AUDITED = 50, 12


def runs(repository: Repository) -> bool:
    """Whether a guest in virtual time gets beyond its start: it does not with many of FRR's bfdd."""
    return not (repository.net.style.bfd and "frr" in repository.net.daemons.values())


def variants() -> Iterator[tuple[str, Repository]]:
    """Yield each with its name."""
    for at in range(MANY):
        net = draw(f"variant/{at}", Wishes(bfd=None))
        daemons = "-".join(sorted({*net.daemons.values()}))
        yield f"{at:02}-{daemons}-{net.scheme}-{net.planes}", Repository.of(net)
