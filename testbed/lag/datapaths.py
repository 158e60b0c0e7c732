"""The LAG datapaths by their name in topology files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hpn.testbed.entries import Registry
from hpn.testbed.lag import host_bond, host_nft
from hpn.testbed.lag.datapath import LagKind

AUTO = "auto"
"""Name for the first available datapath of those that allow automatic choice; not itself a datapath."""


def _lacks(kind: LagKind) -> Iterable[str]:
    return ("own name",) if kind.name == AUTO else ()


DATAPATHS: Registry[LagKind] = Registry(
    "LAG datapath", lambda kind: kind.name, (host_bond.KERNEL, host_nft.NFT), _lacks, of=LagKind
)


def candidates(word: str) -> Sequence[LagKind]:
    """Return the datapaths that ``lag: word`` allows, best first; none for an unknown word."""
    return [kind for kind in DATAPATHS.values() if kind.name == word or (word == AUTO and kind.unasked)]
