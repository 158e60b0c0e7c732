"""Claims of other papers that arithmetic can hold against this kernel's hash, or against HPN's failure rates.

Changes when another paper's claim needs no packet. Imports numpy when a judge runs.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from math import comb

from hpn.scenarios.model.month.assumptions import Assumptions
from hpn.scenarios.paper.claim import Claim, Without
from hpn.scenarios.paper.measures import ClaimEvidence, Finding

Flow = tuple[int, int, int, int]
"""Source and destination address, source and destination port of a UDP packet."""
Hash = Callable[[Sequence[Flow]], Sequence[int]]
"""From flows to the index of the path of each."""

_PATHS, _FLOWS = 64, 4096
_LLAMA_GPUS, _LLAMA_DAYS, _LLAMA_SEEN = 16_384, 54, 35
_GPUS_PER_TOR = 16
_POISSON_35 = (24.4, 48.7)
"""Exact 95 % interval of a Poisson mean of which 35 events were seen (Garwood, Biometrika 1936)."""
_UPLINKS = 32


def crc32(flows: Sequence[Flow]) -> Sequence[int]:
    """Return paths by CRC-32 over the four-tuple: linear over GF(2), as the hashes of most ASICs are."""
    packed = (b"".join(value.to_bytes(4, "big") for value in flow) for flow in flows)
    return [zlib.crc32(each) % _PATHS for each in packed]


def kernel(flows: Sequence[Flow]) -> Sequence[int]:
    """Return paths by Linux's hash (SipHash-2-4, then jhash)."""
    from hpn.traffic.fluid.hashes import chosen, multipath_hash, words

    src, dst, sport, dport = zip(*flows, strict=True)
    seed, hops = (words([value] * len(flows)) for value in (1, _PATHS))
    found = multipath_hash(seed, words(src), words(dst), words(sport), words(dport))
    return [int(each) for each in chosen(found, hops)]


def relative_paths(by: Hash, _found: ClaimEvidence) -> Finding:
    """Judge how often one flow's change of path by a change of source port tells another flow's."""
    drawn = random.Random(1)
    changes = [drawn.randrange(1, 1 << 14) for _ in range(_FLOWS)]
    flows = [(drawn.getrandbits(32), drawn.getrandbits(32), 49152 + drawn.getrandbits(14), 4791) for _ in changes]
    known = [flows[0]] * _FLOWS
    moved, there = by(_changed(known, changes)), by(_changed(flows, changes))
    predicted = [path ^ before ^ after for path, before, after in zip(by(flows), by(known), moved, strict=True)]
    share = sum(mine == found for mine, found in zip(predicted, there, strict=True)) / _FLOWS
    return Finding(f"{share:.1%} of {_FLOWS:,} changes of path predicted, among {_PATHS} paths", share > 0.99)


def _changed(flows: Sequence[Flow], changes: Sequence[int]) -> list[Flow]:
    pairs = zip(flows, changes, strict=True)
    return [(src, dst, sport ^ change, dport) for (src, dst, sport, dport), change in pairs]


def llama_failures(tors: int, _found: ClaimEvidence) -> Finding:
    """Judge HPN's failure rates against the interruptions of Llama 3's fleet; ``tors``: of a NIC."""
    rates, months = Assumptions(), _LLAMA_DAYS / 30.4
    parts = _LLAMA_GPUS * rates.links_a_month + _LLAMA_GPUS / _GPUS_PER_TOR * rates.tors_a_month
    expected = parts * months if tors == 1 else 0.0  # with a second ToR no single one interrupts a job
    low, high = _POISSON_35
    text = f"{expected:.1f} by HPN's rates; {_LLAMA_SEEN} seen say {low:g} to {high:g}"
    return Finding(text, low <= expected <= high)


def conflicts(split: int, _found: ClaimEvidence) -> Finding:
    """Judge how likely a flow at full port rate meets too many others on its uplink; ``split``: ports a 400G port."""
    alone, ours = _conflict(1), _conflict(split)
    text = f"{ours:.1%} of flows at full rate share an uplink that is too small, {alone:.1%} without a split"
    return Finding(text, ours < alone)


def _conflict(split: int) -> float:
    """Return the chance that ``split`` or more of the other flows hash to a flow's uplink, which carries ``split``."""
    others, chance = _UPLINKS * split - 1, 1 / _UPLINKS
    fits = (comb(others, k) * chance**k * (1 - chance) ** (others - k) for k in range(split))
    return 1 - sum(fits)


CLAIMS = (
    Claim(
        "repac-linear",
        "not of this paper: with a linear hash, one flow's path tells how others move (RePaC, ATC 2021)",
        "predictable",
        "CRC-32 stands for an ASIC's hash; a switch here hashes as Linux does, so hosts are told paths instead",
        judge=partial(relative_paths, crc32),
        by="hashes, computed",
        counted="a linear hash of an exclusive or is the exclusive or of hashes",
        without=(Without("a linear hash (Linux: SipHash)", judge=partial(relative_paths, kernel)),),
    ),
    Claim(
        "llama3-network",
        "not of this paper: 35 network interruptions of 16,384 GPUs in 54 days (Llama 3, arXiv 2407.21783)",
        "35",
        "rates of hpn month; figure of the paper not verified from its text",
        judge=partial(llama_failures, 1),
        by="hpn month, its rates",
        without=(Without("only one ToR (HPN)", judge=partial(llama_failures, 2)),),
        shortfall="HPN's rates are of NIC-ToR links and ToRs of another fleet; Llama 3 counts those of all tiers",
    ),
    Claim(
        "megascale-split",
        "not of this paper: ports of 400G split into two of 200G collide less (MegaScale, NSDI 2024)",
        "less",
        "the paper gives no figure; 32 uplinks of 400G, 1:1, uniform hashes",
        judge=partial(conflicts, 2),
        by="binomial, computed",
        without=(Without("a split port", judge=partial(conflicts, 1)),),
    ),
)
