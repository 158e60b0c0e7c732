"""The LAG datapaths by the word that a topology file has for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hpn.testbed.entries import Registry
from hpn.testbed.lag import host_bond, host_nft
from hpn.testbed.lag.datapath import LagKind

AUTO = "auto"
"""Not one of them: the first that is to be had, of those that may be taken unasked."""


def _lacks(kind: LagKind) -> Iterable[str]:
    return ("own name",) if kind.name == AUTO else ()


DATAPATHS: Registry[LagKind] = Registry(
    "LAG datapath", lambda kind: kind.name, (host_bond.KERNEL, host_nft.NFT), _lacks, of=LagKind
)


def candidates(word: str) -> Sequence[LagKind]:
    """Those that a lab whose topology says ``lag: word`` may get, best first; none for a word that is unknown."""
    return [kind for kind in DATAPATHS.values() if kind.name == word or (word == AUTO and kind.unasked)]
