"""Claims of other papers about the size and the rates of whole networks, by closed forms; no packet is sent. Pure.

Changes when a paper's network has another formula. Sources: DeepSeek-AI, Insights into DeepSeek-V3 (ISCA 2025, arXiv
2505.09343), table 3; Wang et al., Rail-only (arXiv 2307.12169), abstract.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from hpn.scenarios.paper.claim import Claim, Without
from hpn.scenarios.paper.measures import ClaimEvidence, Finding
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import load_topology
from hpn.traffic.job.job import NVLINK_BPS

RADIX = 64
"""Ports of a switch in DeepSeek's table."""
_PLANES = 8
_FORMULA = "closed form"
_OVERHEAD = (0.082, 0.112)
"""Rail-only's cost of an all-to-all as shares of its time."""


@dataclass(frozen=True, slots=True)
class Size:
    """Size of a network; ``links`` join switches."""

    endpoints: int
    switches: int
    links: int

    def __str__(self) -> str:
        """Return the size as text: '2,048 endpoints, 96 switches, 2,048 links'."""
        return f"{self.endpoints:,} endpoints, {self.switches:,} switches, {self.links:,} links"


PAPER = {
    "FT2": Size(2_048, 96, 2_048),
    "MPFT": Size(16_384, 768, 16_384),
    "FT3": Size(65_536, 5_120, 131_072),
    "SF": Size(32_928, 1_568, 32_928),
    "DF": Size(261_632, 16_352, 384_272),
}
"""DeepSeek's table 3: fat trees of two layers, the same in eight planes, and of three; Slim Fly and Dragonfly."""


def two_layers(radix: int, planes: int = 1) -> Size:
    """Return the largest two-layer fat tree: ``radix`` leaves below half as many spines, in each plane."""
    ends = planes * radix**2 // 2
    return Size(ends, planes * radix * 3 // 2, ends)


def three_layers(radix: int) -> Size:
    """Return the fat tree of Al-Fares et al., SIGCOMM 2008."""
    return Size(radix**3 // 4, radix**2 * 5 // 4, radix**3 // 2)


def slim_fly(radix: int, *, exists: bool = False) -> Size:
    """Return the largest Slim Fly (Besta and Hoefler, SC 2014, section 2.1); ``exists``: of those with a prime power q.

    2 q^2 switches with (3q - d) / 2 links each, q = 4w + d and d of -1, 0, 1; half as many endpoints, rounded up.
    """
    graphs = [(q, (3 * q - d) // 2) for q in range(3, radix) for d in (-1, 0, 1) if (q - d) % 4 == 0]
    fitting = [(q, links) for q, links in graphs if links + -(-links // 2) <= radix]
    q, links = max(each for each in fitting if _prime_power(each[0]) or not exists)
    return Size(2 * q**2 * -(-links // 2), 2 * q**2, q**2 * links)


def _prime_power(q: int) -> bool:
    factor = next(n for n in range(2, q + 1) if q % n == 0)
    while q % factor == 0:
        q //= factor
    return q == 1


def dragonfly(radix: int, fewer_groups: int = 0) -> Size:
    """Return the balanced Dragonfly (Kim et al., ISCA 2008, section 3.1): a = 2p = 2h, a h + 1 groups."""
    p = (radix + 1) // 4
    a, h = 2 * p, p
    groups = a * h + 1 - fewer_groups
    return Size(groups * a * p, groups * a, groups * (a * (a - 1) + a * h) // 2)


def fat_trees(planes: int, _found: ClaimEvidence) -> Finding:
    """Judge the fat trees of DeepSeek's table; ``planes``: of the one that has several."""
    ours = {"FT2": two_layers(RADIX), "MPFT": two_layers(RADIX, planes), "FT3": three_layers(RADIX)}
    text = f"{planes} planes of two layers {ours['MPFT']}; three layers {ours['FT3']}"
    return Finding(text, all(PAPER[name] == size for name, size in ours.items()))


def slim_flies(radix: int, _found: ClaimEvidence) -> Finding:
    """Judge the Slim Fly of DeepSeek's table."""
    ours, real = slim_fly(radix), slim_fly(radix, exists=True)
    details = f"the largest with a prime power q, as the construction needs it: {real}"
    return Finding(str(ours), ours == PAPER["SF"], details=details)


def dragonflies(radix: int, _found: ClaimEvidence) -> Finding:
    """Judge the Dragonfly of DeepSeek's table."""
    ours = dragonfly(radix)
    return Finding(str(ours), ours == PAPER["DF"], details=f"with two groups less: {dragonfly(radix, 2)}")


def forwarding(architecture: str, found: ClaimEvidence) -> Finding:
    """Judge what an all-to-all loses by NVLink, if first each GPU hands all data to the GPU of its target's rail.

    Of a GPU's data (K - 1) / K change the rail of K; (N - 1) / N leave the host of N. One follows the other.
    """
    spec, pod = load_topology("tiny-rail-only").model_copy(update={"architecture": architecture}), load_topology("pod")
    hosts, rails, nic_bps = found.pod.hosts, pod.rails, 2 * pod.nic_port_rate
    crossing = 0.0 if build(spec).rails_meet else (rails - 1) / rails
    share = crossing / NVLINK_BPS / ((hosts - 1) / hosts / nic_bps)
    text = f"{share:+.1%} for {hosts:,} hosts of {rails} GPUs, NICs of {nic_bps / 1e9:g}G"
    return Finding(f"{text}, NVLink of {NVLINK_BPS / 8e9:g} GB/s", _OVERHEAD[0] <= share <= _OVERHEAD[1])


CLAIMS = (
    Claim(
        "deepseek-table",
        "not of this paper: 16,384 endpoints take two layers in eight planes (DeepSeek-V3, ISCA 2025)",
        "768 switches; three layers 65,536 with 5,120",
        f"switches of {RADIX} ports",
        judge=partial(fat_trees, _PLANES),
        by=_FORMULA,
        without=(Without("planes (one)", judge=partial(fat_trees, 1)),),
    ),
    Claim(
        "deepseek-slim-fly",
        "not of this paper: Slim Fly in the same table",
        str(PAPER["SF"]),
        f"switches of {RADIX} ports, which is q = 28; no field has 28 elements, so that this graph is not constructed",
        judge=partial(slim_flies, RADIX),
        by=_FORMULA,
        without=(Without("63 ports (62)", judge=partial(slim_flies, 62)),),
    ),
    Claim(
        "deepseek-dragonfly",
        "not of this paper: Dragonfly in the same table",
        str(PAPER["DF"]),
        f"switches of {RADIX} ports, p = h = 16, a = 32",
        judge=partial(dragonflies, RADIX),
        by=_FORMULA,
        without=(Without("63 ports (62)", judge=partial(dragonflies, 62)),),
        shortfall="a h + 1 are 513 groups; all three counts of the table are those of 511",
    ),
    Claim(
        "rail-only",
        "not of this paper: without a spine an all-to-all goes through NVLink and loses little (arXiv 2307.12169)",
        "8.2 to 11.2 %",
        "its formula is not at hand, only its abstract: ours is NVLink first, then the rails, none of it overlapped",
        judge=partial(forwarding, "rail-only"),
        by="closed form, rates of our presets",
        without=(Without("rails apart (a Clos)", judge=partial(forwarding, "single-tor")),),
    ),
)
