"""Fabrics and drills that nobody chose: drawn from a seed, the same for the same seed, small enough for a guest.

A drawn fabric is data as a topology file holds it, a drawn drill as a drill file does, so that either is a file that
reproduces it: ``python -m tests.strangers.draw SEED``. Whether it is valid is the product's to say; what it refuses
is drawn again.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path

import yaml

from hpn.failover.analysis.edge import Relation
from hpn.scenarios.drill.fault_schedule import course
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.workload import queue_pairs_of
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.architectures import ARCHITECTURES
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import topology_from
from hpn.testbed.fabric.model import Fabric, LinkKind
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.files.check import Mistakes
from hpn.testbed.files.document import Document, Plain, parse
from tests.fabric.as_wired import somebody_elses

MOST_NICS, MOST_LINKS, MOST_SWITCHES = 20, 110, 30
"""A guest of the size of these is some 10 to 20 seconds of one core."""
MOST_OF_FRR = 12
"""Switches; more do not get beyond their start in virtual time (docs/architectures.md)."""
_PACKETS_PER_S = 15_000
"""Of all queue pairs: more only take longer."""
_TRIES = 400
_NAMES = ("mine", "lab-b", "rack-test", "ai-pod-7", "site-north", "poc", "gpu-cluster", "room-2")
_ARCHITECTURES = {
    "hpn": 10, "dual-tor-clos": 3, "single-tor": 2, "stacked-dual-tor": 1, "dcn-plus": 2, "rail-only": 1, "fat-tree": 1,
    "same-rail": 2, "wired": 3, "torus": 1, "full-mesh": 1, "dragonfly": 1, "slim-fly": 1,
}  # fmt: skip
TIERS = {name: many for name, many in _ARCHITECTURES.items() if name == "wired" or not ARCHITECTURES[name].direct}
"""Those with Aggs above their ToRs, and what is wired like them."""
_GRIDS = {"torus": ((3, 3), (4, 3), (5,), (2, 2, 3)), "full-mesh": ((4, 2), (3, 3), (5,), (2, 2, 2))}
"""Switches along each dimension."""
_DIRECT = (*_GRIDS, "dragonfly", "slim-fly")
_FAULTS = {
    "link-down": 4, "link-flap": 2, "admin-down": 1, "nic-down": 1, "tor-crash": 4, "agg-crash": 2, "plane-down": 1,
    "tor-drain": 1, "uplink-down": 2, "silent-drop": 1, "host-down": 1, "core-crash": 2, "two-links": 2,
}  # fmt: skip
"""What breaks; 'uplink-down' and 'two-links' are faults of links above the ToRs, and of two links together."""
_LIMITS: tuple[dict[str, Plain], ...] = (
    {"worst_outage": {"below": "100 ms", "edge": "failure", "flows": "hit"}},
    {"worst_outage": {"below": "100 ms", "edge": "repair", "flows": "hit"}},
    {"queue_pair_deaths": {"at_most": 0}},
    {"goodput_after": {"at_least": "95 %", "of": "before"}},
    {"packets_lost": {"at_most": 0, "flows": "others"}},
    {"state_restored": True},
)


def fabric(seed: int | str, among: Mapping[str, int] = _ARCHITECTURES, lag: str = "") -> dict[str, Plain]:
    """A topology file. ``among``: architectures and how often each; ``lag``: the datapath, unless it is drawn."""
    dice = random.Random(f"fabric/{seed}")
    for _ in range(_TRIES):
        wired = "wired" in among and dice.randrange(sum(among.values())) < among["wired"]
        data = _topology(dice, {name: many for name, many in among.items() if name != "wired"} or {"hpn": 1})
        if lag:
            data["lag"] = lag
        try:
            made = build(spec_of(data))
            data = somebody_elses(made, dice) if wired else data
            if fits(build(spec_of(data))):
                return data
        except InputError:
            continue
    raise RuntimeError(f"seed {seed}: nothing that was drawn is a fabric of a guest's size")


def plain_fabric(seed: int | str, architecture: str, lag: str, most_nics: int = 8) -> dict[str, Plain]:
    """A fabric for a drill of the library, whose limits count on BIRD, path control and LACP as they come."""
    for attempt in range(_TRIES):
        data = fabric(f"{seed}/{attempt}", {architecture: 1}, lag)
        for key in ("bgp", "lacp", "path_control", "ecmp_seeds"):
            data.pop(key, None)
        made = build(spec_of(data))
        if len(made.nics) <= most_nics and len({nic.host for nic in made.nics}) >= 3 and made.spec.segments >= 2:
            return {**data, "scale": _scale(made, 40, incast=False)}
    raise RuntimeError(f"seed {seed}: no fabric of {architecture} is that small")


def fits(made: Fabric) -> bool:
    """Whether it is small enough, and has somebody to talk to."""
    if sum(not host.spare for host in made.hosts) < 2:
        return False
    nics = [nic for nic in made.nics if not made.node(nic.host).spare]
    if made.spec.bgp.daemon == "frr" and len(made.switches) > MOST_OF_FRR:
        return False
    return len(nics) <= MOST_NICS and len(made.links) <= MOST_LINKS and len(made.switches) <= MOST_SWITCHES


def spec_of(data: dict[str, Plain]) -> FabricSpec:
    """The topology of such a file. InputError when it is none."""
    document = parse(yaml.safe_dump({"topology": data}), "drawn")
    mistakes = Mistakes(document)
    found = topology_from(mistakes, ("topology",), Path())
    if found is None:
        raise mistakes.error()
    return found


def drill(seed: int | str, among: Mapping[str, int] = _ARCHITECTURES) -> dict[str, Plain]:
    """A drill file of streams on a fabric of its own: one fault or two links, repaired, and the usual limits."""
    topology = fabric(seed, among)
    made = build(spec_of(topology))
    dice = random.Random(f"drill/{seed}")
    for _ in range(_TRIES):
        data = _drill(dice, topology, made, str(seed))
        fitted = _fitted(data)
        if fitted is not None and _meets_traffic(fitted):
            return data
    raise RuntimeError(f"seed {seed}: no drill that was drawn is one on its fabric")


def lighter(data: dict[str, Plain]) -> dict[str, Plain]:
    """The drill with three quarters of its load."""
    workload = data["workload"]
    assert isinstance(workload, dict)
    percent = float(str(workload["load"]).removesuffix(" %"))
    return {**data, "workload": {**workload, "load": f"{max(0.5, percent * 0.75):.3g} %"}}


def text_of(data: dict[str, Plain]) -> str:
    """The file."""
    return yaml.safe_dump(data, sort_keys=False, width=118)


def _topology(dice: random.Random, among: Mapping[str, int]) -> dict[str, Plain]:
    architecture = dice.choices(list(among), list(among.values()))[0]
    rate = dice.choice((100, 200, 200, 400))
    data: dict[str, Plain] = {
        "name": dice.choice(_NAMES),
        "architecture": architecture,
        "segments": dice.choice((1, 2, 2, 2, 3)),
        "hosts": dice.randint(1, 10),
        "rails": dice.choice((1, 1, 2, 3)),
        "aggs": dice.randint(1, 6),
        "seed": dice.randrange(1, 10_000),
        "nic_port_rate": f"{rate}G",
        "uplink_rate": f"{rate * dice.choice((1, 2, 2, 4))}G",
        "lag": dice.choice(("nft", "kernel")),
    }
    if architecture in _DIRECT:
        del data["aggs"]
        return data | _direct(dice, architecture)
    if architecture == "fat-tree":
        data |= {"pods": 4, "segments": 2, "hosts": 2, "rails": 1, "aggs": 2, "cores": 4, "core_groups": 2}
        data |= {"uplink_rate": f"{2 * rate}G", "core_rate": f"{2 * rate}G"}
    elif architecture == "same-rail":
        aggs, ports = dice.choice(((1, 2), (2, 2), (2, 1), (1, 3)))
        data |= {"aggs": aggs, "nic_ports": ports, "cores": aggs * dice.choice((1, 2)), "core_groups": aggs}
        data |= {"pods": dice.choice((1, 1, 2)), "hosts": dice.randint(1, 4), "core_rate": f"{rate * 4}G"}
    elif architecture != "rail-only" and dice.random() < 0.2:
        data |= {"pods": 2, "cores": dice.choice((1, 2, 4)), "core_rate": f"{rate * 4}G"}
    if dice.random() < 0.2:
        data["uplinks"] = 2
    if dice.random() < 0.1:
        data["ecmp_seeds"] = "one"
    if dice.random() < 0.15:
        data["path_control"] = {"enabled": False}
    elif dice.random() < 0.15:
        data["path_control"] = {"policy": "steer-destinations"}
    if architecture == "dcn-plus" and dice.random() < 0.5:
        data["nic_ports"] = 1
    if architecture == "hpn" and dice.random() < 0.25:
        data["planes"] = dice.choice((1, 3, 4, 8))
        data["hosts"] = dice.randint(1, 3)
    data["bgp"] = _bgp(dice)
    if dice.random() < 0.2:
        data["lacp"] = {"rate": "slow"} if dice.random() < 0.5 else {"mux": "independent"}
    return data


def _direct(dice: random.Random, architecture: str) -> dict[str, Plain]:
    """Keys of a fabric whose ToRs are joined with each other; in place of Aggs."""
    drawn: dict[str, Plain] = {"pods": 1, "hosts": dice.choice((1, 1, 2)), "rails": dice.choice((1, 1, 2))}
    if architecture == "slim-fly":
        drawn |= {"pods": 3, "segments": 6, "hosts": 1, "rails": 1}
    elif architecture == "dragonfly":
        segments, links = dice.choice(((2, 1), (3, 1), (2, 2)))
        drawn |= {"pods": segments * links + 1, "segments": segments, "global_links": links}
    else:
        dimensions = dice.choice(_GRIDS[architecture])
        drawn |= {"dimensions": list(dimensions), "segments": prod(dimensions)}
    daemon = "frr" if dice.random() < 0.2 else "bird"
    return drawn | {"uplinks": dice.choice((1, 1, 1, 2)), "bgp": {"daemon": daemon, "asn": "per-switch"}}


def _bgp(dice: random.Random) -> dict[str, Plain]:
    if dice.random() < 0.25:
        return {"daemon": "frr"}
    found: dict[str, Plain] = {"hold_s": 3, "keepalive_s": 1} if dice.random() < 0.3 else {}
    if dice.random() < 0.5:
        found["bfd"] = {"interval_ms": dice.choice((50, 100, 300)), "multiplier": dice.choice((3, 5))}
    return found


def _drill(dice: random.Random, topology: dict[str, Plain], made: Fabric, seed: str) -> dict[str, Plain]:
    queue_pairs, load = dice.choice((1, 2, 4)), dice.choice((10, 25, 25, 40, 40, 60, 90))
    if queue_pairs == 1:
        load = min(load, 40)  # a queue pair has one port of two
    workload: dict[str, Plain] = {
        "pattern": dice.choice(("permutation", "permutation", "permutation", "pairs", "incast")),
        "queue_pairs": queue_pairs,
        "load": f"{load} %",
        "source_ports": dice.choice(("disjoint", "disjoint", "hash")),
    }
    if workload["pattern"] == "incast":
        workload["load"] = f"{max(1, load // 10)} %"
    if dice.random() < 0.3:
        workload["across_segments"] = False
    scale = _scale(made, load, workload["pattern"] == "incast")
    return {
        "drill": f"stranger-{seed}",
        "summary": f"drawn from seed {seed}",
        "topology": {**topology, "scale": scale},
        "workload": workload,
        "timeline": {"healthy": "1500 ms", "faults": _faults(dice, made), "settle": "5 s"},
        "expect": [dict(each) for each in _LIMITS],
    }


def _scale(made: Fabric, load: int, incast: bool) -> int:
    """So much slower than real that all queue pairs together send what a guest carries in no time."""
    nics = [nic for nic in made.nics if not made.node(nic.host).spare]
    real_bps = sum(link.rate_bps for nic in nics for link in nic.links) * made.spec.scale
    packets = real_bps * load / 100 / (8 * 4154) / (10 if incast else 1)
    return max(1000, 500 * -(-int(packets) // (_PACKETS_PER_S * 500)))


def _faults(dice: random.Random, made: Fabric) -> list[Plain]:
    kind = dice.choices(list(_FAULTS), list(_FAULTS.values()))[0]
    lasts = {"for": dice.choice(("1500 ms", "2 s", "3 s"))}
    at: dict[str, Plain] = {"at": "1500 ms"}
    names = _names(made)
    access, fabric_links = names["access"], names["fabric"]
    match kind:
        case "two-links":
            chosen = dice.sample((*access, *fabric_links), 2)
            return [{"id": f"cut{n}", "fault": "link-down", "target": t, **at, **lasts} for n, t in enumerate(chosen)]
        case "uplink-down":
            return [{"id": "cut", "fault": "link-down", "target": _one(dice, fabric_links), **at, **lasts}]
        case "link-flap":
            more: dict[str, Plain] = {"period": "800 ms", "duty": "50 %", "count": dice.randint(1, 3)}
            target = _one(dice, (*access, *fabric_links))
            return [{"id": "flap", "fault": "link-flap", "target": target, **at, **more}]
        case "admin-down":
            end: dict[str, Plain] = {"end": dice.choice(("host", "switch"))}
            return [{"id": "down", "fault": "admin-down", "target": _one(dice, access), **at, **lasts, **end}]
        case "silent-drop":
            target, longer = _one(dice, (*access, *fabric_links)), {"for": "12 s"}
            return [{"id": "silent", "fault": "silent-drop", "target": target, **at, **longer}]
        case "tor-drain":
            grace: dict[str, Plain] = {"grace": "1 s", "for": "3 s"}
            return [{"id": "drain", "fault": "tor-drain", "target": _one(dice, names["tor"]), **at, **grace}]
        case "plane-down":
            tier: dict[str, Plain] = {"tier": "aggs"}
            return [{"id": "plane", "fault": "plane-down", "target": "plane0", **at, **lasts, **tier}]
    targets = {"link-down": access, "nic-down": names["nic"]}.get(kind) or names.get(kind.partition("-")[0], ())
    return [{"id": "it", "fault": kind, "target": _one(dice, targets), **at, **lasts}]


def _one(dice: random.Random, pool: Sequence[str]) -> str:
    """One of them; a name of nothing where there is none, which the loader refuses."""
    return dice.choice(pool) if pool else "none"


def _names(made: Fabric) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = {}
    for node in made.nodes:
        if not node.spare:
            found.setdefault(node.role.value, []).append(node.name)
    for link in made.links:
        if link.kind is not LinkKind.CORE and link.kind is not LinkKind.PEER:
            found.setdefault("access" if link.kind is LinkKind.ACCESS else "fabric", []).append(link.name)
    found["nic"] = [nic.name for nic in made.nics]
    return {"access": [], "fabric": [], "tor": [], "agg": [], "core": [], **found}


def _fitted(data: dict[str, Plain]) -> Drill | None:
    """The drill, without those of its limits that cannot be judged on it; None when it is none."""
    expect = data["expect"]
    for _ in range(len(expect) if isinstance(expect, list) else 0):
        try:
            return drill_from(_document(data), Path())
        except InputError as error:
            unfit = {line for line in error.problems if "expect[" in line}
            kept = data["expect"]
            if len(unfit) < len(error.problems) or not isinstance(kept, list):
                return None
            gone = {at for at in range(len(kept)) if any(f"expect[{at}]" in line for line in unfit)}
            data["expect"] = [each for at, each in enumerate(kept) if at not in gone]
    return None


def _document(data: dict[str, Plain]) -> Document:
    return parse(text_of(data), "drawn")


def _meets_traffic(found: Drill) -> bool:
    made = build(found.topology)
    steps = course(made, found.timeline.faults, queue_pairs_of(found, made))
    return any(how is not Relation.NONE for step in steps for how in step.relations.values())


def main() -> None:
    """Print the drill of each seed that is named."""
    made: Callable[[str], dict[str, Plain]] = drill
    for seed in sys.argv[1:]:
        sys.stdout.write(text_of(made(seed)))


if __name__ == "__main__":
    main()
