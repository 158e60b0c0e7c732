"""What each fault takes, from its kind, its target and its moments. Standard library only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.strangers.oracle.network import AGG, CORE, TOR, Network

_MS = 1_000_000
_IN_STEPS = {"tor-drain"}
"""Only the last step takes the links; before it, whoever can leaves."""
_LACP_S = {"fast": 1, "slow": 30}


@dataclass(frozen=True)
class Span:
    """Links that are dead from one time to another (ns); ``found_ns``: until somebody can know, after the begin."""

    begin_ns: int
    end_ns: int
    links: frozenset[str]
    found_ns: int
    kind: str


def spans(network: Network, drill: Mapping[str, Any], start_ns: int) -> tuple[Span, ...]:
    """Every time at which a fault of the drill takes links away. KeyError for a kind that this file does not know."""
    end_ns = start_ns + drill["end_ns"]
    return tuple(each for fault in drill["faults"] for each in _of(network, fault, start_ns, end_ns))


def _of(network: Network, fault: Mapping[str, Any], start_ns: int, end_ns: int) -> Iterator[Span]:
    links = frozenset(_links(network, fault))
    found_ns = _found_ns(network, fault, links)
    began: int | None = None
    for moment in sorted(fault["moments"], key=lambda each: each["at_ns"]):
        at_ns = start_ns + moment["at_ns"]
        if moment["kind"] == "failure" and (began is None or fault["kind"] in _IN_STEPS):
            began = at_ns
        elif moment["kind"] == "repair" and began is not None:
            yield Span(began, at_ns, links, found_ns, fault["kind"])
            began = None
    if began is not None:
        yield Span(began, end_ns, links, found_ns, fault["kind"])


def _links(network: Network, fault: Mapping[str, Any]) -> Sequence[str]:
    target, kind = fault["target"], fault["kind"]
    if kind in {"link-down", "link-flap", "admin-down", "silent-drop"}:
        return (target,)
    if kind == "nic-down":
        return network.ports[target]
    if kind in {"tor-crash", "agg-crash", "core-crash", "host-down", "tor-drain"}:
        return [link.name for link in network.links_of(target)]
    if kind == "plane-down":
        tiers = {"aggs": {AGG}, "all": {TOR, AGG, CORE}}[fault["parameters"].get("tier", "all")]
        plane = int(target.removeprefix("plane"))
        nodes = {node for node, of in network.plane_of.items() if of == plane and network.roles[node] in tiers}
        return [link.name for link in network.links.values() if nodes & set(link.ends)]
    raise KeyError(kind)


def _found_ns(network: Network, fault: Mapping[str, Any], links: frozenset[str]) -> int:
    """How long nobody can know: nothing where carrier goes or a switch says so."""
    if fault["kind"] != "silent-drop":
        return 0
    if any(network.links[name].access for name in links):  # 3 PDUs to expire, as many to default (802.1AX)
        return 6 * _LACP_S[network.spec["lacp"]["rate"]] * 1000 * _MS
    bfd, bgp = network.spec["bgp"]["bfd"], network.spec["bgp"]
    return int((bfd["interval_ms"] * bfd["multiplier"] if bfd else bgp["hold_s"] * 1000) * _MS)
