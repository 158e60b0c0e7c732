"""Networks at three sizes, on switches of 51.2T: counted from their plans, and a modelled month at the smallest. Pure.

Sizes are ours where none is published: no tier is narrower above than below, and no switch has more than 51.2T.
Hosts have eight NICs of 400G (MRC's: 800G), one each in direct networks. Aggs have all ports in use where uplinks in
parallel do that. A size is within 7 % of the one asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hpn.scenarios.model.month.month import MonthRequest, Outcome, reckon
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.spec import FabricSpec
from tests.product.network_counts import Counts, counts

SIZES = (1024, 16_384, 131_072)
MONTHS, QUEUE_PAIRS = 12, 8
_MOST_SEGMENTS = 256  # of a pod
Keys = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Sized:
    """A network's keys at each of ``SIZES``; None: it does not come in that size, ``why``.

    ``times``: equal planes of which the plan has one, as no plan holds all of them.
    """

    title: str
    keys: Keys
    sizes: tuple[Keys | None, Keys | None, Keys | None]
    why: str = ""
    times: tuple[int, int, int] = (1, 1, 1)


def _clos(pods: int, segments: int, hosts: int, aggs: int, groups: int = 1, cores: int = 0) -> Keys:
    sizes = {"pods": pods, "segments": segments, "hosts": hosts, "aggs": aggs}
    return {**sizes, "rails": 8, "core_groups": groups, "cores": cores}


def _mesh(dimensions: tuple[int, ...], hosts: int) -> Keys:
    switches = math.prod(dimensions)
    pods = max(dimensions[0], switches // _MOST_SEGMENTS)
    return {"dimensions": [*dimensions], "pods": pods, "segments": switches // pods, "hosts": hosts}


_DIRECT: Keys = {"rails": 1, "bgp": {"asn": "per-switch"}}
_PLANES: Keys = {"nic_port_rate": "100G", "uplink_rate": "100G"}
NETWORKS = (
    Sized("HPN, two planes", {}, (
        {**_clos(1, 2, 64, 4), "uplinks": 8}, _clos(1, 16, 128, 60), _clos(9, 15, 128, 60, 5, 40),
    )),
    Sized("four planes (Oracle)", {"planes": 4, "nic_port_rate": "100G"}, (
        {**_clos(1, 2, 64, 2), "uplinks": 8}, {**_clos(1, 8, 256, 32), "uplinks": 2}, _clos(8, 8, 256, 64, 4, 256),
    )),
    Sized("eight planes of 100G (MRC)", {**_PLANES, "planes": 8}, (
        {**_clos(1, 2, 64, 2), "uplinks": 32},
        {**_clos(1, 8, 256, 32), "uplinks": 8},
        {**_clos(1, 64, 256, 256), "planes": 1, "nic_port_rate": "50G"},  # one port has the rate of two
    ), times=(1, 1, 8)),
    Sized("dual-ToR Clos", {"architecture": "dual-tor-clos"}, (
        {**_clos(1, 2, 64, 8), "uplinks": 4}, _clos(4, 4, 128, 64, 2, 128), _clos(32, 4, 128, 64, 16, 1024),
    )),
    Sized("DCN+", {"architecture": "dcn-plus", "uplinks": 8}, (
        _clos(2, 4, 16, 8, 1, 64), _clos(32, 4, 16, 8, 2, 128), None,
    ), "its pods of 512 end at 65,536 below Cores of 128 ports"),
    Sized("rail-optimised (SuperPOD)", {"architecture": "single-tor"}, (
        {**_clos(1, 2, 64, 8), "uplinks": 8}, _clos(4, 8, 64, 64, 2, 128), _clos(32, 8, 64, 64, 16, 1024),
    )),
    Sized("rail-only (DeepSeek's planes)", {"architecture": "rail-only"}, (
        {**_clos(1, 2, 64, 1), "uplinks": 64}, {**_clos(1, 32, 64, 16), "uplinks": 4}, None,
    ), "two tiers end at 65,536"),
    Sized("fat-tree", {"architecture": "fat-tree", "rails": 1}, (
        {"pods": 16, "segments": 8, "hosts": 8, "aggs": 8, "cores": 64, "core_groups": 8},
        {"pods": 40, "segments": 20, "hosts": 20, "aggs": 20, "cores": 400, "core_groups": 20},
        {"pods": 80, "segments": 40, "hosts": 40, "aggs": 40, "cores": 1600, "core_groups": 40},
    )),
    Sized("torus", {"architecture": "torus", **_DIRECT}, (
        _mesh((8, 4, 4), 8), _mesh((16, 16, 8), 8), _mesh((64, 16, 16), 8),
    )),
    Sized("full mesh (UB-Mesh)", {"architecture": "full-mesh", **_DIRECT}, (
        _mesh((8, 16), 8), _mesh((32, 64), 8), _mesh((16, 16, 8, 8), 8),
    )),
    Sized("Dragonfly", {"architecture": "dragonfly", **_DIRECT}, (
        {"pods": 17, "segments": 8, "global_links": 2, "hosts": 8},
        {"pods": 64, "segments": 21, "global_links": 3, "hosts": 12},
        {"pods": 352, "segments": 27, "global_links": 13, "hosts": 13},
    )),
    Sized("Slim Fly", {"architecture": "slim-fly", **_DIRECT}, (
        {"pods": 9, "segments": 18, "hosts": 6},
        {"pods": 23, "segments": 46, "hosts": 16},
        {"pods": 47, "segments": 94, "hosts": 30},
    )),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AtSize:
    """What a network counts at a size; ``month``: at the smallest alone. No ``counts``: it does not come so large."""

    network: Sized
    counts: Counts | None
    month: Outcome | None


def spec_of(network: Sized, at: int) -> FabricSpec | None:
    """Return the specification of a network at the ``at``-th size; None: it does not come in that size."""
    keys = network.sizes[at]
    return None if keys is None else FabricSpec.model_validate({"name": f"n{SIZES[at]}", **network.keys, **keys})


def at_sizes(at: int) -> Iterator[AtSize]:
    """Yield every network at the ``at``-th size."""
    for network in NETWORKS:
        spec = spec_of(network, at)
        if spec is None:
            yield AtSize(network, None, None)
            continue
        fabric, times = build(spec), network.times[at]
        found = counts(network.title, fabric, times)
        asked = MonthRequest((), (fabric,), queue_pairs=QUEUE_PAIRS, months=MONTHS)
        month = None if at else next(reckon(asked, math.inf, lambda _line: None))
        yield AtSize(network, found, month)
