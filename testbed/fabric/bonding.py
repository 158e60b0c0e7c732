"""Options of the LAG of a host's NIC, as Linux bonding has them; the same for each LAG datapath. Pure.

Changes when a host may set another option of the driver (Documentation/networking/bonding.rst).
"""

from __future__ import annotations

from dataclasses import dataclass

from hpn.testbed.entries import Registry
from hpn.testbed.fabric.spec import LacpRate, LacpSpec


@dataclass(frozen=True, slots=True)
class HashPolicy:
    """One xmit_hash_policy: its number in the driver; ``layer``: the highest one whose addresses it hashes."""

    name: str
    number: int
    layer: int


LAYER34 = HashPolicy("layer3+4", 1, 4)
HASH_POLICIES: Registry[HashPolicy] = Registry(
    "transmit hash policy",
    lambda policy: policy.name,
    (
        HashPolicy("layer2", 0, 2),
        LAYER34,
        HashPolicy("layer2+3", 2, 3),
        HashPolicy("encap2+3", 3, 3),
        HashPolicy("encap3+4", 4, 4),
        HashPolicy("vlan+srcmac", 5, 2),
    ),
    of=HashPolicy,
)
AD_SELECT = ("stable", "bandwidth", "count")
"""Names of the driver's ad_select, by number."""


@dataclass(frozen=True, slots=True)
class Bonding:
    """Options of one LAG. ``lacp_rate``: what it asks of its ToRs.

    ``miimon_ms`` None is the datapath's own pace of looking at carrier. LACP learns of a lost carrier ``down_delay_ms``
    after the look that finds it, of a returned one ``up_delay_ms`` after; both are whole multiples of the pace. A LAG
    of fewer than ``min_links`` active ports carries nothing. ``aggregate_wait_ms`` and ``dark_ms`` are no options of
    Linux bonding: it always waits 2 s, and leaves a port without carrier at once (``lacp.down_delay_ms``).
    """

    lacp_rate: LacpRate = "slow"
    miimon_ms: int | None = None
    aggregate_wait_ms: int = 2000
    xmit_hash_policy: str = LAYER34.name
    min_links: int = 0
    up_delay_ms: int = 0
    down_delay_ms: int = 0
    ad_select: str = AD_SELECT[0]
    dark_ms: int = 0

    @property
    def hash_policy(self) -> HashPolicy:
        """The transmit hash policy."""
        return HASH_POLICIES[self.xmit_hash_policy]

    def looks(self, delay_ms: int) -> int:
        """Return a delay in looks at carrier, rounded down, as the driver counts it."""
        return delay_ms // self.miimon_ms if self.miimon_ms else 0


def of_lacp(lacp: LacpSpec) -> Bonding:
    """Return the options of hosts that have no configuration of their own."""
    return Bonding(lacp.hosts_ask, lacp.miimon_ms, lacp.aggregate_wait_ms, dark_ms=lacp.down_delay_ms)
