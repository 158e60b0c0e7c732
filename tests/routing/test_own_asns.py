"""An ASN per switch: paths with valleys in real namespaces with real BGP daemons, and by arithmetic."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from hpn.failover.faults import FAULTS
from hpn.results.run.fabric import fabric_json
from hpn.scenarios.campaign.survivors import joined
from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.blast_radius import transit_flows
from hpn.scenarios.drill.planned import PlannedRun
from hpn.scenarios.model.answer import modelled
from hpn.scenarios.model.failover_times import FailoverTimes, shipped
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import load_topology
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.rules import contradictions
from hpn.testbed.fabric.spec import BgpSpec, FabricSpec
from hpn.testbed.routing.bird.config import config
from hpn.testbed.routing.bird.daemon import find_bird
from hpn.testbed.routing.daemons import DAEMONS
from hpn.testbed.routing.frr.config import bgpd
from hpn.testbed.routing.trace import Flow, trace
from hpn.testbed.routing.trace import Path as TracedPath
from hpn.traffic.flows.patterns import flows_for
from hpn.traffic.fluid.forwarding import Forwarding
from tests.routing import fabrics
from tests.routing.asking import as_paths
from tests.routing.minilab import MiniLab

OWN = BgpSpec(asn="per-switch")
SPORTS = range(0xC000, 0xC000 + 32)
LOW, HIGH, A, B = "p0.s0.t0.0", "p0.s3.t0.0", "p0.a0.0", "p0.a0.1"


def racks(daemon: str = "bird") -> Fabric:
    """Four ToRs below two Aggs, in one plane."""
    bgp = BgpSpec(asn="per-switch", daemon=daemon)
    return build(FabricSpec(architecture="single-tor", segments=4, hosts=1, aggs=2, bgp=bgp))


@pytest.mark.parametrize("preset", PRESETS)
def test_every_switch_has_a_private_asn_of_its_own(preset: str) -> None:
    spec = PRESETS[preset].spec
    if spec.hosts * spec.segments > 256:
        pytest.skip("a large fabric shows nothing more")
    hashing = {"core_ports": "hash"} if spec.cores and spec.pods > 1 else {}
    fabric = build(spec.model_copy(update={"bgp": OWN, **hashing}))
    asns = [node.asn or 0 for node in fabric.switches]
    assert len(set(asns)) == len(asns)
    assert all(4_200_000_000 <= asn <= 4_294_967_294 for asn in asns), "RFC 6996"


def test_preset_ports_of_cores_are_refused_with_line_and_remedy(tmp_path: Path) -> None:
    path = tmp_path / "pods.yaml"
    path.write_text("preset: tiny-pods\nbgp:\n  asn: per-switch\n")
    with pytest.raises(InputError) as refused:
        load_topology(str(path))
    assert "pods.yaml:3: bgp.asn per-switch allows valleys" in str(refused.value)
    assert "write core_ports: hash, or asn: per-tier" in str(refused.value)
    assert contradictions(PRESETS["tiny-pods"].spec.model_copy(update={"bgp": OWN, "core_ports": "hash"})) == []


@pytest.mark.parametrize("made", [racks, fabrics.stacked, fabrics.dcn, fabrics.rails], ids=lambda made: made.__name__)
def test_bird_accepts_the_configuration_and_announces_all_it_learns(made: object, tmp_path: Path) -> None:
    assert callable(made)
    fabric = build(made().spec.model_copy(update={"bgp": OWN}))
    for node in fabric.switches:
        path = tmp_path / f"{node.name}.conf"
        path.write_text(text := config(fabric, node))
        judged = subprocess.run([find_bird(), "-p", "-c", str(path)], capture_output=True, text=True, check=False)
        assert judged.returncode == 0, f"{node.name}: {judged.stderr}"
        templates = text[text.index("template bgp") :]
        assert set(re.findall(r"export ([^;]+);", templates)) == {"all"}
        assert "allow local as" not in text


def test_a_draining_tor_carries_nothing_for_others() -> None:
    fabric = racks()
    assert "export where source = RTS_STATIC;" in config(fabric, fabric.node(LOW), draining=True)
    assert "filter-list" not in bgpd(fabric, fabric.node(LOW))
    assert bgpd(fabric, fabric.node(LOW), draining=True).count("filter-list upwards out") == 2


def test_what_assumed_paths_without_valleys_knows_of_them() -> None:
    """The campaign's survivors, the flows that a fault may hit, the model, and the file of a run's fabric."""
    own = racks()
    tier = build(own.spec.model_copy(update={"bgp": BgpSpec()}))
    cut = frozenset({f"{HIGH}-{B}", f"{LOW}-{A}"})
    fault = FAULTS["link-down"](f"{HIGH}-{B}")  # type: ignore[call-arg] # of any kind of fault
    for fabric, reached in ((own, True), (tier, False)):
        src, dst = fabric.nic("p0.s3.h0.r0"), fabric.nic("p0.s0.h0.r0")
        assert joined(fabric, src, dst, cut) is reached
        assert Forwarding(fabric, cut).reaches(HIGH, dst) is reached
        flows = flows_for(fabric, "pairs", load=0.1)
        crossing = transit_flows(fabric, (fault,), flows)
        assert (len(crossing) == len(flows)) is reached
        assert (b'"asn":"per-switch"' in fabric_json(fabric)) is reached
    drill = catalogue.load("link-down")
    valleys = replace(drill, topology=drill.topology.model_copy(update={"bgp": OWN}))
    with pytest.raises(InputError, match="no run in the lab has shown how long this takes"):
        modelled(PlannedRun(valleys), _of_tiers(shipped()))


def _of_tiers(times: FailoverTimes) -> FailoverTimes:
    """The times as if nothing had been measured with an ASN per switch."""
    sources = (replace(each, conditions=replace(each.conditions, valleys=False)) for each in times.sources)
    return replace(times, sources=tuple(sources))


@pytest.mark.kernel
@pytest.mark.parametrize("daemon", ["bird", "frr"])
async def test_after_two_failures_a_path_goes_down_and_up_again(daemon: str) -> None:
    """The bounce of Tagger (CoNEXT 2017): ToR 3 lost one Agg and ToR 0 the other. The model knows the same paths."""
    missing = DAEMONS[daemon].missing()
    if missing is not None:
        pytest.skip(missing)
    lab = MiniLab(racks(daemon))
    await lab.start()
    fabric = lab.fabric
    src, dst = fabric.nic("p0.s3.h0.r0"), fabric.nic("p0.s0.h0.r0")
    lab.home(src, 0)
    for nic in (src, dst):
        lab.greet(nic, 0)
    await lab.until(lambda: lab.routes(HIGH, f"{dst.ip}/32") == {"up0", "up1"})
    healthy = [path for name in lab.bgp for path in as_paths(lab.bgp[name], f"{dst.ip}/32")]
    assert all(len(set(path)) == len(path) for path in healthy)
    cut = [f"{HIGH}-{B}", f"{LOW}-{A}"]
    for name in cut:
        lab.cut(fabric.link(name).lower)
    await lab.until(lambda: lab.routes(A, f"{dst.ip}/32") == {"s1r0t0", "s2r0t0"})
    await lab.until(lambda: lab.routes(HIGH, f"{dst.ip}/32") == {"up0"})
    asn = {name: fabric.node(name).asn for name in lab.bgp}

    def told() -> set[tuple[int, tuple[int, ...]]]:
        return {(path[0], tuple(path[2:])) for path in as_paths(lab.bgp[HIGH], f"{dst.ip}/32")}

    await lab.until(lambda: told() == {(asn[A], (asn[B], asn[LOW]))})  # after paths that BGP hunts through
    forwarding, ways = Forwarding(fabric, cut), set()

    def path_of(sport: int) -> TracedPath:
        return trace(fabric, Flow(src.name, dst.name, sport), 0, lambda node: lab.netlinks[node], lambda link: True)

    await lab.until(lambda: all(path_of(sport).dropped is None for sport in SPORTS))  # loops while others hunt
    for sport in SPORTS:
        path = path_of(sport)
        found = forwarding.walk([src], [dst], [0], [sport])
        computed = tuple(fabric.links[link // 2].name for link in found.links[0] if link >= 0)
        if DAEMONS[daemon].sorts_next_hops:
            assert (computed, bool(found.arrives[0])) == (path.links, True)
        ways.add(tuple(step.node for step in path.steps))
    bounces = {(src.host, HIGH, A, f"p0.s{at}.t0.0", B, LOW, dst.host) for at in (1, 2)}
    assert ways == bounces
    for name in cut:
        lab.mend(fabric.link(name).lower)
    await lab.until(lambda: lab.routes(HIGH, f"{dst.ip}/32") == {"up0", "up1"})
    lab.cut(dst.links[0].lower)
    await lab.until(lambda: not any(lab.routes(name, f"{dst.ip}/32") for name in lab.bgp), 10)


@pytest.mark.kernel
@pytest.mark.parametrize("daemon", ["bird", "frr"])
async def test_a_tor_that_drains_is_no_detour(daemon: str) -> None:
    missing = DAEMONS[daemon].missing()
    if missing is not None:
        pytest.skip(missing)
    lab = MiniLab(racks(daemon))
    await lab.start()
    dst = lab.fabric.nic("p0.s0.h0.r0")
    lab.greet(dst, 0)
    lab.cut(lab.fabric.link(f"{LOW}-{A}").lower)
    await lab.until(lambda: lab.routes(A, f"{dst.ip}/32") == {"s1r0t0", "s2r0t0", "s3r0t0"})
    lab.bgp["p0.s1.t0.0"].withdraw()
    await lab.until(lambda: lab.routes(A, f"{dst.ip}/32") == {"s2r0t0", "s3r0t0"})
    lab.bgp["p0.s1.t0.0"].announce()
    await lab.until(lambda: lab.routes(A, f"{dst.ip}/32") == {"s1r0t0", "s2r0t0", "s3r0t0"})
