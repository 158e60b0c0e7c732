"""Claims about sizes and cost, counted from the inventory of whole networks; no packet is sent. Pure.

Changes when the paper's arithmetic is held against another count. Prices are assumptions of ours, named here.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod

from hpn.scenarios.paper.claim import Claim, Without
from hpn.scenarios.paper.measures import ClaimEvidence, Finding
from hpn.testbed.fabric.inventory import Inventory, inventory
from hpn.testbed.fabric.load import load_fabric, load_topology
from hpn.testbed.fabric.model import LinkKind, Role

PRICES: Mapping[str, float] = {"switch": 40_000, "optic": 800, "access": 800}
"""Assumed prices in dollars: a switch of 51.2 Tbit/s, a 400G transceiver (two a link), a NIC-ToR cable."""
_SPREAD = (0.5, 1.0, 2.0)
"""Multiples of each price over which the cost is told: nobody publishes theirs."""
_COUNTED = "counted from the plan of the whole network"
_PLAN = "hpn plan pod"
_DCN_PLUS = Without("rails and planes (a DCN+ pod)", pod="dcn-plus-pod")


def segment(found: ClaimEvidence) -> Finding:
    """Judge how many GPUs one ToR hop reaches (across rails by NVLink), and the switches on longer paths."""
    spec = load_topology(found.preset)
    gpus, hops = spec.hosts * spec.rails, (1, 3, 5)[: 3 if spec.cores else 2]
    text = f"{gpus:,} GPUs in a segment; switches on a path: {', '.join(map(str, hops))} (segment, pod, core)"
    return Finding(text, gpus == 1024)


def path_search(found: ClaimEvidence) -> Finding:
    """Judge how many paths there are between NICs of two segments: what a search for disjoint ones has to look at."""
    budgets = {budget.role: budget for budget in found.pod.budgets}
    choices = [budgets[Role.TOR].up_ports]
    if found.pod.planes == 1:
        choices.append(budgets[Role.AGG].down_ports // found.pod.tors * 2)  # to both ToRs of the receiver
    paths = prod(choices)
    return Finding(f"{' x '.join(map(str, choices))} = {paths} paths" if choices[1:] else f"{paths} paths", paths == 60)


def tier_two(found: ClaimEvidence) -> Finding:
    """Judge what planes save: links from ToRs to Aggs, and ToRs that the same Aggs' ports reach."""
    pod = found.pod
    links, full = pod.link_count(LinkKind.FABRIC), pod.tors * pod.aggs
    reached = next(budget.down_ports for budget in pod.budgets if budget.role is Role.AGG)
    text = f"{links:,} ToR-Agg links of {full:,} in a full mesh; {pod.tors} ToRs below Aggs of {reached} ports down"
    return Finding(text, 2 * links == full and pod.tors == 2 * reached)


def cost(found: ClaimEvidence) -> Finding:
    """Judge the cost of switches, optics and cables for each GPU against DCN+, over a range of each price."""
    other = inventory(load_fabric("dcn-plus"))
    savings = [
        _cost(found.pod, prices) / _cost(other, prices) - 1
        for factors in product(_SPREAD, repeat=len(PRICES))
        for prices in [{name: price * factor for (name, price), factor in zip(PRICES.items(), factors, strict=True)}]
    ]
    middle = _cost(found.pod, PRICES) / _cost(other, PRICES) - 1
    counts = "; ".join(f"{_parts(each)} a GPU" for each in (found.pod, other))
    text = f"{middle:+.0%} at our prices, {min(savings):+.0%} to {max(savings):+.0%} if each is halved or doubled"
    return Finding(text, min(savings) <= -0.3 <= max(savings), details=counts)


def _amounts(pod: Inventory) -> Mapping[str, float]:
    links = pod.link_count(LinkKind.FABRIC) + pod.link_count(LinkKind.CORE)
    amounts = {
        "switch": pod.tors + pod.aggs + pod.cores,
        "optic": 2 * links,
        "access": pod.link_count(LinkKind.ACCESS),
    }
    return {name: count / pod.gpus for name, count in amounts.items()}


def _cost(pod: Inventory, prices: Mapping[str, float]) -> float:
    return sum(prices[name] * count for name, count in _amounts(pod).items())


def _parts(pod: Inventory) -> str:
    found = _amounts(pod)
    return f"{found['switch']:.4f} switches, {found['optic']:.2f} optics, {found['access']:.0f} access links"


CLAIMS = (
    Claim(
        "segment-size",
        "a segment: 1,024 GPUs one ToR apart",
        "1,024",
        _COUNTED,
        judge=segment,
        by=_PLAN,
        without=(_DCN_PLUS,),
    ),
    Claim(
        "path-search",
        "a search for disjoint paths looks at one ToR's uplinks only",
        "O(60)",
        _COUNTED,
        judge=path_search,
        by=_PLAN,
        without=(_DCN_PLUS,),
    ),
    Claim(
        "tier-2",
        "two planes halve the links from ToRs to Aggs, and double tier 2",
        "half, double",
        _COUNTED,
        judge=tier_two,
        by=_PLAN,
        without=(_DCN_PLUS,),
    ),
    Claim(
        "cost",
        "HPN costs less than a three-tier network",
        "-30 %",
        "prices are assumptions of ours; hosts, NICs and power are left out; DCN+ has 16,384 GPUs, a pod 15,360",
        judge=cost,
        by="hpn plan pod, hpn plan dcn-plus",
        without=(Without("two tiers (DCN+ itself)", pod="dcn-plus"),),
    ),
    Claim(
        "multi-chip",
        "switches of several chips fail more often",
        "32.6x the chips, 3.77x the failures",
        "counts of Alibaba's fleet: a lab has neither chips nor years",
    ),
)
