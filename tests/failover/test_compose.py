"""Which faults may overlap: every rule with a pair that it refuses and one that it lets pass."""

from __future__ import annotations

from itertools import product

import pytest

from hpn.failover.faults import FAULTS, Fault, PlannedFault, make, settled
from hpn.failover.faults.compose import clash
from hpn.scenarios.campaign.plan import example
from hpn.testbed.fabric.build import build
from tests.lab.running import tiny

FABRIC = build(tiny())
STACKED = build(tiny(architecture="stacked-dual-tor"))
S = 10**9
LINK, OTHER, UPLINK, TOR, AGG = "p0.s0.h0.r0.0", "p0.s0.h1.r0.0", "p0.s0.t0.0-p0.a0.0", "p0.s0.t0.0", "p0.a0.0"

Given = tuple[str, str, dict[str, float | str], float, float | None]
"""Kind, target, parameters, start and end in seconds."""


def given(kind: str, target: str, since: float = 2, until: float | None = 4, **parameters: float | str) -> Given:
    return kind, target, parameters, since, until


def planned(what: Given, name: str) -> PlannedFault:
    kind, target, parameters, since, until = what
    fault = settled(make(kind, target, parameters), FABRIC)
    for_ns = None if fault.REPAIRS_ITSELF or until is None else round((until - since) * S)
    return PlannedFault(name, fault, round(since * S), for_ns)


def nothing_of(covered: str, cover: str) -> str:
    return f"{cover} leaves nothing of {covered} on {LINK}"


def no_session(rest: str) -> str:
    return f"{rest} leaves no BGP session to reset on {UPLINK}"


ONE_TOR = f"both decide what {TOR} does"
FLAP = {"period_ns": S // 2, "duty": 0.5, "count": 4}
DRAIN = {"grace_ns": S}


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        # one thing twice
        (given("link-down", LINK), given("link-down", LINK, 3, 5), f"both are link-down on {LINK}"),
        (given("link-down", LINK), given("link-down", OTHER), ""),
        (given("rate-drop", LINK, rate=0.5), given("rate-drop", LINK, rate=0.2), f"both are rate-drop on {LINK}"),
        (given("link-down", LINK), given("link-flap", LINK, **FLAP), f"both take the carrier of {LINK}"),
        (given("link-down", LINK), given("admin-down", LINK, 3, 5, end="switch"), f"both take the carrier of {LINK}"),
        (given("link-down", LINK, 2, 4), given("link-down", LINK, 4.1, 5), ""),
        # part and whole
        (given("link-down", LINK), given("nic-down", "p0.s0.h0.r0", 3, 5), ""),
        (given("link-down", LINK, 2, 5), given("tor-crash", TOR, 3, 4), ""),
        (given("link-down", LINK, 3, 4), given("tor-crash", TOR, 2, 5), nothing_of("link-down", "tor-crash")),
        (given("link-flap", LINK, 3, **FLAP), given("host-down", "p0.s0.h0", 2, None),
         nothing_of("link-flap", "host-down")),
        (given("link-down", LINK, 2, 5), given("flap-storm", TOR, every_ns=S, down_ns=S // 2, duration_ns=S), ""),
        (given("host-down", "p0.s0.h0"), given("tor-crash", TOR, 3, 5), ""),
        (given("agg-crash", AGG), given("tor-crash", TOR), ""),
        # what one switch does
        (given("tor-crash", TOR), given("tor-control-hang", TOR, 3, 5), ONE_TOR),
        (given("plane-down", "plane0", tier="all"), given("tor-drain", TOR, 3, 6, **DRAIN), ONE_TOR),
        (given("plane-down", "plane0", tier="aggs"), given("tor-drain", TOR, 3, 6, **DRAIN), ""),
        (given("tor-dataplane-death", TOR), given("tor-crash", TOR, 3, 5), ONE_TOR),
        (given("tor-dataplane-death", TOR), given("tor-control-hang", TOR, 3, 5), ""),
        (given("tor-control-hang", TOR), given("agg-crash", AGG, 3, 5), ""),
        (given("agg-dataplane-death", AGG), given("agg-crash", AGG, 3, 5), f"both decide what {AGG} does"),
        (given("agg-dataplane-death", AGG), given("tor-control-hang", TOR, 3, 5), ""),
        (given("bgp-reset", UPLINK, 3), given("agg-dataplane-death", AGG), ""),
        # a drained ToR that dies
        (given("tor-drain", TOR, 2, 5, **DRAIN), given("tor-crash", TOR, 2.5, 4), ""),
        (given("tor-drain", TOR, 2, 5, **DRAIN), given("tor-crash", TOR, 2.5, 7), ""),
        (given("tor-drain", TOR, 2, 5, **DRAIN), given("tor-crash", TOR, 4, 7), ""),
        (given("tor-drain", TOR, 2, 5, **DRAIN), given("tor-crash", TOR, 2.5, 2.9), ONE_TOR),
        (given("tor-drain", TOR, 2, 5, **DRAIN), given("tor-crash", TOR, 3.5, 4), ONE_TOR),
        (given("tor-drain", TOR, 3, 6, **DRAIN), given("tor-crash", TOR, 2, 5), ONE_TOR),
        # sessions
        (given("bgp-reset", UPLINK, 3), given("link-down", UPLINK), no_session("link-down")),
        (given("bgp-reset", UPLINK, 3), given("tor-control-hang", TOR), no_session("tor-control-hang")),
        (given("bgp-reset", UPLINK, 3), given("tor-dataplane-death", TOR), ""),
        (given("bgp-reset", UPLINK, 3), given("silent-drop", UPLINK, share=0.1), ""),
        # impairments of one link
        (given("rate-drop", LINK, rate=0.5), given("silent-drop", LINK, share=0.1), ""),
        (given("rate-drop", LINK, rate=0.5), given("silent-drop", LINK, 1, 5), nothing_of("rate-drop", "silent-drop")),
        (given("rate-drop", LINK, rate=0.5), given("silent-drop", LINK, 3, 5), ""),
        (given("bit-corruption", LINK, share=0.1), given("silent-drop", LINK, traffic="data"),
         nothing_of("bit-corruption", "silent-drop")),
        (given("bit-corruption", LINK, share=0.1), given("silent-drop", LINK, traffic="data", share=0.5), ""),
        (given("one-way-loss", LINK, direction="up"), given("lacp-loss", LINK, direction="up"),
         nothing_of("lacp-loss", "one-way-loss")),
        (given("one-way-loss", LINK, direction="up"), given("lacp-loss", LINK, direction="both"), ""),
        (given("one-way-loss", LINK, direction="up"), given("arp-loss", LINK, direction="up"),
         nothing_of("arp-loss", "one-way-loss")),
        (given("one-way-loss", LINK, direction="up", share=0.5), given("lacp-loss", LINK, direction="up"), ""),
        (given("one-way-loss", LINK, direction="up", share=0.5), given("silent-drop", LINK),
         nothing_of("one-way-loss", "silent-drop")),
        (given("lacp-loss", LINK), given("arp-loss", LINK), ""),
        (given("arp-loss", LINK), given("silent-drop", LINK, traffic="all-but-control"),
         nothing_of("arp-loss", "silent-drop")),
        (given("link-down", LINK, 2, 4), given("arp-loss", LINK, 3, 6), ""),
        (given("tor-control-hang", TOR), given("arp-loss", LINK), ""),
        (given("tor-dataplane-death", TOR), given("lacp-loss", LINK), ""),
        (given("tor-dataplane-death", TOR), given("silent-drop", LINK, traffic="data", share=0.5),
         nothing_of("silent-drop", "tor-dataplane-death")),
        (given("tor-control-hang", TOR), given("lacp-loss", LINK), nothing_of("lacp-loss", "tor-control-hang")),
        # carrier and impairment
        (given("link-down", LINK, 2, 4), given("silent-drop", LINK, 3, 5, share=0.1), ""),
        (given("link-down", LINK, 3, 4), given("silent-drop", LINK, 2, 5, share=0.1), ""),
        (given("link-down", LINK, 2, 5), given("silent-drop", LINK, 3, 4, share=0.1),
         nothing_of("silent-drop", "link-down")),
        (given("link-flap", LINK, 2, **FLAP), given("silent-drop", LINK, 2, 4, share=0.1), ""),
        (given("tor-drain", TOR, 2, 6, **DRAIN), given("link-down", LINK, 2.5, 4), ""),
        (given("tor-drain", TOR, 2, 6, **DRAIN), given("link-down", LINK, 4, 5), nothing_of("link-down", "tor-drain")),
    ],
)  # fmt: skip
def test_a_pair_composes_or_is_refused_whatever_comes_first_in_the_file(one: Given, other: Given, why: str) -> None:
    first, second = planned(one, "first"), planned(other, "second")
    assert clash(first, second, FABRIC) == why
    assert clash(second, first, FABRIC) == why


@pytest.mark.parametrize("kind", ["tor-crash", "tor-control-hang", "tor-dataplane-death"])
def test_both_tors_of_a_stack_may_be_hit_although_they_share_a_link(kind: str) -> None:
    one, other = STACKED.stacks[0].primary, STACKED.stacks[0].secondary
    first, second = (PlannedFault(tor, make(kind, tor, {}), 2 * S, 2 * S) for tor in (one, other))
    assert clash(first, second, STACKED) == ""


_HERE = [kind for kind in FAULTS if kind not in ("core-crash", "optical-circuits")]
"""There is no Core in this fabric, which is like an Agg, and no link between ToRs."""


@pytest.mark.parametrize(("kind", "its"), list(product(_HERE, _HERE)))
def test_every_two_kinds_are_decided_and_the_same_in_both_orders(kind: str, its: str) -> None:
    def fault(kind: str) -> Fault:
        found = next(target for target, kinds in _KINDS.items() if FAULTS[kind].TARGET.value in kinds)
        return settled(example(kind, found), FABRIC)

    one, other = PlannedFault("one", fault(kind), 2 * S, S), PlannedFault("other", fault(its), 2 * S, S)
    assert clash(one, other, FABRIC) == clash(other, one, FABRIC)
    if kind == its:
        assert clash(one, other, FABRIC)


_KINDS = {
    LINK: {"link", "NIC-ToR link"},
    UPLINK: {"link between two switches"},
    "p0.s0.h0.r0": {"NIC", "NIC or NIC-ToR link"},
    "p0.s0.h0": {"host"},
    TOR: {"ToR", "part of the access links"},
    AGG: {"Agg"},
    "plane0": {"plane"},
}
