"""Pictures of fabrics: in them is what ``hpn plan`` counts, nothing lies on anything else, nothing is executed."""

from __future__ import annotations

import random
import re
import shlex
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hpn.commands.graph import graph
from hpn.results.graph.dot import fabric_dot
from hpn.results.graph.grouping import Level, drawn
from hpn.results.graph.layout import lay_out
from hpn.results.graph.overlay import Mark, Overlay
from hpn.results.graph.svg import fabric_svg
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.architectures import ARCHITECTURES
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.inventory import inventory
from hpn.testbed.fabric.model import Fabric, Port, Role
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import WIRED, FabricSpec
from tests.fabric.as_wired import somebody_elses
from tests.fabric.direct_sizes import direct_sizes
from tests.results.pictures import SVG, Picture, crossing, overlapping, read, through_boxes
from tests.results.whole import FABRIC, whole_run
from tests.strangers.draw import spec_of


@cache
def preset(name: str) -> Fabric:
    """The fabric of a preset; large ones take seconds to build."""
    return build(PRESETS[name].spec)


TINY = preset("tiny")
CUT = "p0.s0.h0.r0.1"
FLOW = ("p0.s0.h0.r0.0", "p0.s0.t0.0-p0.a0.1", "p0.s1.t0.0-p0.a0.1", "p0.s1.h1.r0.0")


def planned(fabric: Fabric) -> tuple[int, int]:
    """Nodes and links that ``hpn plan`` counts."""
    found = inventory(fabric)
    nodes = found.hosts + found.spare_hosts + found.tors + found.aggs + found.cores
    return nodes, sum(each.count for each in found.links)


def check(fabric: Fabric, picture: Picture) -> None:
    """What holds of every picture."""
    assert (picture.nodes, picture.links) == planned(fabric)
    assert list(overlapping(picture)) == []
    assert list(through_boxes(picture)) == []
    if fabric.planes == 2:
        assert list(crossing(picture, "plane0", "plane1")) == []
    width, height = (float(picture.root.attrib[name]) for name in ("width", "height"))
    for box in picture.boxes:
        assert 0 <= box.left < box.right <= width
        assert 0 <= box.top < box.bottom <= height


@st.composite
def fabrics(draw: st.DrawFn, name: str) -> Fabric:
    """Fabrics of an architecture, as large as is quick to draw node by node."""
    if name == WIRED:
        return build(spec_of(somebody_elses(draw(fabrics("hpn")), random.Random(draw(st.integers(0, 99))))))
    if ARCHITECTURES[name].direct:
        return build(FabricSpec.model_validate(draw(direct_sizes(name))))
    values: dict[str, object] = {"architecture": name, "rails": draw(st.integers(1, 3))}
    if name == "fat-tree":
        half = draw(st.integers(1, 2))
        shape = {"pods": 2 * half, "segments": half, "hosts": half, "aggs": half, "cores": half**2, "core_groups": half}
        values |= {"rails": 1, **shape}
    else:
        most = {"segments": 3, "hosts": 5, "aggs": 4, "uplinks": 2}
        values |= {key: draw(st.integers(1, many)) for key, many in most.items()}
        values["spare_hosts"] = draw(st.integers(0, 1))
    if name == "same-rail":
        aggs = draw(st.integers(1, 2))
        values |= {"aggs": aggs, "cores": aggs * draw(st.integers(1, 2)), "core_groups": aggs}
    if ARCHITECTURES[name].cores and name not in {"fat-tree", "same-rail"} and draw(st.booleans()):
        values |= {"pods": draw(st.integers(1, 3)), "cores": draw(st.integers(1, 3))}
    try:
        return build(FabricSpec.model_validate(values))
    except InputError:
        assume(False)
        raise


@pytest.mark.parametrize("name", ARCHITECTURES)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.data())
def test_planes_never_cross_nodes_never_overlap_and_nothing_is_missing(name: str, data: st.DataObject) -> None:
    fabric = data.draw(fabrics(name))
    for level in Level:
        check(fabric, read(fabric_svg(fabric, level=level)))


@pytest.mark.parametrize(
    "name", [name for name in PRESETS if name not in {"pods", "dcn-plus", "meta-24k"}]
)  # seconds to build; the others tell enough
def test_every_preset_has_a_picture_of_all_of_it(name: str) -> None:
    fabric = preset(name)
    text = fabric_svg(fabric)
    check(fabric, read(text))
    assert len(text) < 150_000


@pytest.mark.parametrize("name", ["tiny-torus", "tiny-ub-mesh", "tiny-dragonfly", "tiny-slim-fly"])
def test_links_of_a_direct_network_are_arcs_within_the_picture_the_wider_the_higher(name: str) -> None:
    picture = read(fabric_svg(preset(name)))
    arcs = [arc for arc in picture.root.iter(f"{SVG}path") if arc.get("data-links")]
    assert sum(int(arc.attrib["data-links"]) for arc in arcs) == sum(link.is_routed for link in preset(name).links)
    lines = [line for line in lay_out(drawn(preset(name))).lines if line.rise]
    assert len(lines) == len(arcs)
    tops = sorted((abs(line.x2 - line.x1), line.at(0.5)[1]) for line in lines)
    assert [top for _, top in tops] == sorted((top for _, top in tops), reverse=True)
    assert min(top for _, top in tops) > 0


def test_hosts_are_between_the_planes() -> None:
    picture = read(fabric_svg(TINY))
    rows = {kind: [box for box in picture.boxes if kind in box.classes] for kind in ("plane0", "host", "plane1")}
    above, hosts, below = rows.values()
    assert max(box.bottom for box in above) < min(box.top for box in hosts)
    assert max(box.bottom for box in hosts) < min(box.top for box in below)


def test_lines_end_at_the_edges_of_the_boxes_that_they_join() -> None:
    layout = lay_out(drawn(preset("tiny-stacked")))
    boxes = {placed.box.name: placed for placed in layout.boxes}
    for line in layout.lines:
        for name, x, y in ((line.bundle.lower, line.x1, line.y1), (line.bundle.upper, line.x2, line.y2)):
            box = boxes[name]
            assert box.x <= x <= box.x + box.width
            assert box.y <= y <= box.y + box.height


@pytest.mark.parametrize(
    ("name", "level"),
    [
        *(("tiny", Level.NONE), ("medium", Level.NONE), ("paper-64", Level.NONE), ("tiny-fat-tree", Level.NONE)),
        *(("dcn-plus-pod", Level.HOSTS), ("segment", Level.SEGMENT), ("pod", Level.SEGMENT)),
    ],
)
def test_what_is_too_large_to_be_read_is_grouped(name: str, level: Level) -> None:
    assert drawn(preset(name)).level is level


def test_a_pod_is_a_box_for_each_segment_and_tier() -> None:
    picture = read(fabric_svg(preset("pod")))
    assert len(picture.boxes) == 15 * 3 + 2
    assert "pod: hpn, 1,920 hosts, 240 ToRs, 120 Aggs, 120 hosts more to spare, 47,040 links" in picture.texts
    assert {"128 hosts", "+ 8 spare", "8 ToRs", "60 Aggs", "p0.s14", "1,088", "480"} <= set(picture.texts)


def test_states_are_told_by_shapes_and_in_words() -> None:
    seen = Overlay(
        down_nodes={"p0.a1.0"},
        down_links={CUT},
        faults=(Mark(CUT, "link-down at 2 s"), Mark("p0.s1.h1.r1", "nic-down")),
        load={link.name: 0.6 for link in TINY.links[:3]},
        path=FLOW,
        dropped="no route",
    )
    picture = read(fabric_svg(TINY, seen))
    dashed = [stroke.title for stroke in picture.strokes if "down" in stroke.classes]
    assert dashed == [f"{CUT}, NIC to ToR, 200Mbit/s, plane 1, load 60 %; down"]
    assert [box.title for box in picture.boxes if "down" in box.classes] == ["p0.a1.0, Agg, plane 1, AS 65201; down"]
    assert {stroke.title.partition(",")[0] for stroke in picture.strokes if "path" in stroke.classes} == set(FLOW)
    discs = [rect for rect in picture.root.findall(f"{SVG}rect") if rect.get("class") == "disc"]
    assert len(discs) == 1 + 2, "a NIC is marked at both of its links"
    crosses = [path for path in picture.root.findall(f"{SVG}path") if path.get("class") == "cross"]
    assert len(crosses) == 1 + 1
    said = picture.root.findtext(f"{SVG}desc", "")
    for words in (f"Down: p0.a1.0, {CUT}", "2: p0.s1.h1.r1, nic-down", "60 % of its rate", "dropped: no route"):
        assert words in said
    assert f"fault 1: {CUT}, link-down at 2 s" in picture.texts


def test_a_group_says_how_many_of_it_are_down() -> None:
    pod = preset("pod")
    dead = "p0.s3.t2.1"
    lost = frozenset(link.name for link in pod.links_of(dead))
    picture = read(fabric_svg(pod, Overlay({dead}, lost, (Mark(dead, "tor-crash"),))))
    assert {"1 of 8 down", "136 of 1,088 down", "60 of 480 down"} <= set(picture.texts)
    assert not any("down" in box.classes for box in picture.boxes), "seven of eight run"


@pytest.mark.parametrize(
    "seen",
    [
        Overlay(down_nodes={"p0.s0.t0.9"}),
        Overlay(down_links={"p0.s0.h9.r0.0"}),
        Overlay(faults=(Mark("p0.s0.h9", "cut"),)),
        Overlay(path=("p0.s0.h9.r0.0",)),
        Overlay(load={"p0.s0.h9.r0.0": 0.1}),
        Overlay(load={CUT: float("nan")}),
    ],
)
def test_what_the_fabric_does_not_have_is_refused(seen: Overlay) -> None:
    with pytest.raises(InputError, match=r"did you mean|write a share"):
        fabric_svg(TINY, seen)


def test_a_fabric_without_hosts_is_refused() -> None:
    with pytest.raises(InputError, match="nothing to draw"):
        fabric_svg(replace(TINY, nodes=(), links=(), nics=()))


NASTY = (
    "</title><script>alert(1)</script>",
    '" onload="alert(1)',
    "a\nb\x1b[31mc\x00\ud800\ufffe",
    "--><!-- ]]> &amp; \\",
    "x" * 10_000_000,
)


def renamed(fabric: Fabric, old: str, new: str) -> Fabric:
    """The same with a node of another name, as a plug-in's architecture may give it."""

    def port(end: Port) -> Port:
        return replace(end, node=new) if end.node == old else end

    links = {link.name: replace(link, lower=port(link.lower), upper=port(link.upper)) for link in fabric.links}
    nics = tuple(
        replace(nic, host=new if nic.host == old else nic.host, links=tuple(links[link.name] for link in nic.links))
        for nic in fabric.nics
    )
    nodes = tuple(replace(node, name=new) if node.name == old else node for node in fabric.nodes)
    return replace(fabric, nodes=nodes, links=tuple(links.values()), nics=nics)


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_no_name_and_no_word_gets_out_of_its_place(text: str) -> None:
    hostile = renamed(renamed(TINY, "p0.s0.h0", text), "p0.a1.0", f"{text}2")
    seen = Overlay({text}, faults=(Mark(CUT, text), Mark(text, text)), path=FLOW, dropped=text)
    for level in Level:
        written = fabric_svg(hostile, seen, level)
        picture = read(written)
        allowed = {f"{SVG}{tag}" for tag in ("svg", "title", "desc", "style", "rect", "g", "line", "path", "text")}
        assert {element.tag for element in picture.root.iter()} <= allowed
        assert not [name for element in picture.root.iter() for name in element.attrib if name.startswith("on")]
        assert (picture.nodes, picture.links) == planned(TINY)
        assert len(written) < 60_000
        written.encode()


def test_nothing_comes_from_outside() -> None:
    text = fabric_svg(TINY, Overlay(faults=(Mark(CUT, "cut"),))).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert re.findall(r"http|href|url\(|@import|<script| id=|\son\w+=", text) == []
    assert "prefers-color-scheme:dark" in text


def asked_of_graphviz(text: str) -> str:
    """What Graphviz says that it read and laid out, a line for each node and edge (its format 'plain')."""
    if (dot := shutil.which("dot")) is None:
        pytest.skip("Graphviz is not here: apt install graphviz")
    ended = subprocess.run([dot, "-Tplain"], input=text.encode(), capture_output=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
    return ended.stdout.decode()


@pytest.mark.parametrize("name", ["tiny", "tiny-stacked", "tiny-rail-only", "tiny-pods", "pod"])
def test_graphviz_reads_the_graph_and_puts_hosts_between_the_planes(name: str) -> None:
    fabric = preset(name)
    found = drawn(fabric)
    read = [shlex.split(line) for line in asked_of_graphviz(fabric_dot(fabric)).splitlines()]
    assert [line[0] for line in read].count("edge") == len(found.bundles)
    height = {line[1]: float(line[3]) for line in read if line[0] == "node"}
    assert height.keys() == {box.name for box in found.boxes}
    hosts = [height[box.name] for box in found.boxes if box.role is Role.HOST]
    for box in found.boxes:
        if box.role is not Role.HOST:
            assert height[box.name] > max(hosts) if box.plane == 0 else height[box.name] < min(hosts)


@pytest.mark.parametrize("text", NASTY[:4], ids=range(4))
def test_graphviz_reads_any_name(text: str) -> None:
    hostile = renamed(TINY, "p0.s0.h0", text)
    seen = Overlay({text}, {CUT}, (Mark(CUT, text),), {CUT: 0.5}, FLOW, text)
    read = asked_of_graphviz(fabric_dot(hostile, seen))
    kinds = re.findall(r"^(node|edge|stop)\b", read, re.MULTILINE)
    assert (kinds.count("node"), kinds.count("edge")) == planned(TINY)


def test_a_run_folder_s_fabric_has_all_links_and_its_fault_is_numbered(tmp_path: Path) -> None:
    folder = whole_run(tmp_path / "run")
    said = CliRunner().invoke(graph, [str(folder.path)])
    assert said.exit_code == 0
    picture = read(said.output)
    check(FABRIC, picture)
    assert "fault 1: p0.s0.h0.r0.0, cut: link-down" in said.output
    (folder.path / "drill.json").unlink()
    bare = CliRunner().invoke(graph, [str(folder.path), "--mark", "p0.a0.0=mine"])
    assert "no fault is marked: " in bare.stderr
    assert "fault 1: p0.a0.0, mine" in bare.stdout


@pytest.mark.parametrize("name", ["fabric.json", "manifest.json"])
def test_a_folder_that_does_not_tell_its_fabric_is_refused(tmp_path: Path, name: str) -> None:
    folder = whole_run(tmp_path / "run")
    (folder.path / name).write_text("{") if name == "fabric.json" else (folder.path / name).unlink()
    said = CliRunner().invoke(graph, [str(folder.path)])
    assert isinstance(said.exception, InputError)
    assert name in str(said.exception)
