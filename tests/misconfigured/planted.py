"""The mistakes: what each changes in a correct repository, where hpn must name it, and by which word.

Changes when another mistake is planted. What this testbed cannot plant as written has its nearest key, and says so.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from hpn.testbed.entries import Registry
from tests.misconfigured import edits
from tests.misconfigured.drawn import FEW, Wishes, draw
from tests.misconfigured.edits import Planted
from tests.misconfigured.repository import Repository


class Where(StrEnum):
    """The first place that names a mistake, in the order in which a user meets them."""

    PLAN = "hpn plan"
    START = "start refused"
    ROUTES = "routes short of next hops"
    AUDIT = "hpn audit"
    NOWHERE = "nowhere: harmless"


_ANY = Wishes(daemon=FEW)
SILENT = "12 s"
"""Most that a silent link may cost: the hold time of a correct network, and some more."""


@dataclass(frozen=True)
class Misconfiguration:
    """One mistake. ``kinds``: of the audit that shows it; ``note``: why it is harmless, or how it is planted."""

    name: str
    says: str
    named: Where
    plant: Callable[[Repository, random.Random], Planted]
    wishes: Wishes = _ANY
    kinds: tuple[str, ...] = ()
    note: str = ""
    silent: str = SILENT

    @property
    def tries(self) -> tuple[str, ...]:
        """Kinds of failures that an audit needs to show it, or that it is harmless."""
        return self.kinds or (("link", "switch") if self.named is Where.NOWHERE else ("link",))

    def planted(self, seed: int | str) -> Planted:
        """The mistake in a network of its own."""
        net = draw(f"{self.name}/{seed}", self.wishes)
        return self.plant(Repository.of(net), random.Random(f"plant/{self.name}/{seed}"))

    def correct(self, seed: int | str) -> Repository:
        """The same network without it."""
        return Repository.of(draw(f"{self.name}/{seed}", self.wishes))


_BFD = Wishes(daemon="bird", bfd=True)
"""Of BIRD: a guest of seven switches with FRR's bfdd does not get beyond its start in virtual time."""
_CLOS = Wishes(daemon=FEW, planes=1)
_ENTRIES = (
    Misconfiguration("maximum-paths-1", "maximum-paths 1 on a leaf", Where.ROUTES, edits.one_path, _CLOS),
    Misconfiguration(
        "no-bfd", "no BFD on any switch", Where.AUDIT, edits.no_bfd, _BFD, ("silent",), silent="1 s"
    ),
    Misconfiguration(
        "bfd-at-one-end", "a leaf without BFD below spines that have it", Where.PLAN, edits.bfd_at_one_end, _BFD
    ),
    Misconfiguration(
        "no-allowas-in", "a leaf without allowas-in where all leaves have one ASN", Where.PLAN, edits.no_allowas_in,
        Wishes(scheme="tiers", daemon=FEW),
    ),
    Misconfiguration(
        "asn-in-both-planes", "one ASN in both planes", Where.NOWHERE, edits.asn_in_both_planes,
        Wishes(scheme="unique", planes=2, daemon=FEW), note="no route crosses from plane to plane",
    ),
    Misconfiguration(
        "asn-of-a-rack", "one ASN for both leaves of a rack, no allowas-in, one plane", Where.PLAN, edits.asn_of_a_rack,
        Wishes(scheme="unique", planes=1, daemon=FEW), note="the same mistake where it costs something",
    ),
    Misconfiguration(
        "host-filtered", "a prefix-list of a leaf denies one /32", Where.ROUTES, edits.host_filtered,
        Wishes(daemon=FEW, planes=1, filters="prefix-list"),
    ),
    Misconfiguration(
        "lacp-system", "a leaf with another LACP system ID than its twin", Where.START, edits.system_id,
        note="for a wrong LACP key: hpn computes keys, and a ToR's system_id is what a file can get wrong",
    ),
    Misconfiguration(
        "mtu-1500", "MTU 1500 on one link between switches", Where.PLAN, edits.mtu,
    ),
    Misconfiguration(
        "one-hash-seed", "every switch hashes by one seed", Where.NOWHERE, edits.same_seed,
        note="in two tiers only leaves choose, once: nothing polarises",
    ),
    Misconfiguration(
        "hold-timer-180", "hold timer 180 s on all switches", Where.AUDIT, edits.hold_timer, _ANY, ("silent",),
    ),
    Misconfiguration(
        "no-multipath-relax", "a leaf without multipath-relax below spines of ASNs of their own", Where.ROUTES,
        edits.no_relax, Wishes(scheme="unique", daemon=FEW, planes=1),
    ),
    Misconfiguration(
        "another-origin", "a leaf of FRR redistributes beside one of BIRD: origin incomplete, and IGP", Where.ROUTES,
        edits.another_origin, _CLOS, note="not of the issue: found here, in a network that was thought correct",
    ),
    Misconfiguration(
        "no-graceful-shutdown", "nobody honours GRACEFUL_SHUTDOWN (RFC 8326)", Where.NOWHERE,
        edits.no_graceful_shutdown,
        note="an audit breaks things without notice; hpn drains no ToR with a configuration of its own",
    ),
    Misconfiguration(
        "wrong-neighbour", "a leaf's neighbour has a wrong address", Where.PLAN, edits.wrong_address, _ANY
    ),
    Misconfiguration(
        "static-route-stays", "a spine has static routes to a host", Where.AUDIT, edits.static_route, _CLOS,
        ("link",),
    ),
    Misconfiguration(
        "no-log-neighbor-changes", "a leaf that logs no changes of neighbours", Where.NOWHERE, edits.no_log, _ANY
    ),
    Misconfiguration(
        "prefix-list-order", "a leaf's prefix-list denies before it permits", Where.ROUTES, edits.deny_first,
        Wishes(daemon=FEW, planes=1, filters="prefix-list"),
    ),
    Misconfiguration(
        "update-delay", "a leaf with update-delay 60", Where.NOWHERE, edits.update_delay, _ANY, ("switch",),
        note="measured: all is as before 4.5 s after the leaf's return",
    ),
    Misconfiguration(
        "no-next-hop-self", "a leaf without next-hop-self", Where.NOWHERE, edits.no_next_hop_self,
        Wishes(next_hop_self=True, daemon=FEW),
        note="eBGP sets the next hop to itself anyway",
    ),
    Misconfiguration("wrong-vrf", "a leaf's BGP instance in a VRF", Where.PLAN, edits.wrong_vrf, _ANY),
    Misconfiguration("ttl-security", "ttl-security at one end of a session", Where.START, edits.ttl_security, _ANY),
    Misconfiguration(
        "connect-timer-120", "connect timer 120 s on all switches", Where.NOWHERE, edits.connect_timer, _ANY,
        ("link", "switch", "session"),
        note="measured: every session stands again 4.5 s after each return",
    ),
)  # fmt: skip
MISCONFIGURATIONS: Registry[Misconfiguration] = Registry(
    "misconfiguration", lambda entry: entry.name, _ENTRIES, of=Misconfiguration
)
"""Twenty mistakes, and two of them at another place, where they cost something else."""
