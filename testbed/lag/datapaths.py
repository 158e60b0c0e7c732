"""The LAG datapaths by the word that a topology file has for them; ``auto`` takes the first that can be had."""

from __future__ import annotations

from testbed.entries import Registry
from testbed.lag import host_bond, host_nft
from testbed.lag.datapath import LagKind

DATAPATHS: Registry[LagKind] = Registry("LAG datapath", lambda kind: kind.name, (host_bond.KERNEL, host_nft.NFT))
