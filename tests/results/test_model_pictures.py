"""Pictures of the model: what is loaded, dead or slow is told by shapes and in words, and no name gets out of place."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from hpn.results.graph.loadmap import Grid, Panel, load_map_svg
from hpn.results.graph.sizes import Course, sizes_svg

SVG = "{http://www.w3.org/2000/svg}"
BEFORE = Panel("before", 0.5, (Grid("uplinks", ("plane 0", "plane 1"), ((0.5, 0.05), (1.0, 0.0))),))
AFTER = Panel("after", 0.4, (Grid("uplinks", ("plane 0", "plane 1"), ((None, 0.3), (1.0, 0.0))),))


def _paths(text: str, kind: str) -> list[str]:
    return [path.attrib["d"] for path in ElementTree.fromstring(text).iter(f"{SVG}path") if path.get("class") == kind]


def test_a_cell_is_as_high_and_as_dark_as_its_tor_is_loaded() -> None:
    text = load_map_svg("loads", [BEFORE])
    high = {
        shade: [float(v) for path in _paths(text, shade) for v in re.findall(r"v-([\d.]+)h", path)]
        for shade in ("s1", "s2", "s3", "s4", "s5")
    }
    assert high == {
        "s1": [pytest.approx(0.05 * 11, abs=0.06)],
        "s2": [],
        "s3": [pytest.approx(0.5 * 11, abs=0.06)],
        "s4": [],
        "s5": [11.0],
    }


def test_a_dead_tor_is_crossed_out_and_told() -> None:
    crosses = [path.count("M") for path in _paths(load_map_svg("loads", [BEFORE, AFTER]), "dead")]
    assert crosses == [1, 1]  # the cell, and the legend
    said = load_map_svg("loads", [BEFORE, AFTER])
    assert "after: NICs get 40.0% of their rate; mean load uplinks 43%; 1 ToRs dead" in said


def test_a_longer_iteration_stands_higher_and_a_larger_job_further_right() -> None:
    text = sizes_svg("sizes", [Course("fast", ((16, 1.0), (64, 1.0))), Course("slow", ((16, 1.0), (64, 2.0)))])
    lines = [line.attrib["points"].split() for line in ElementTree.fromstring(text).iter(f"{SVG}polyline")]
    (fast, slow) = [[tuple(map(float, point.split(","))) for point in line] for line in lines]
    assert fast[0] == slow[0]
    assert fast[1][0] == slow[1][0] > fast[0][0]
    assert slow[1][1] < fast[1][1] == fast[0][1]
    assert "slow: 1.00 s on 16 GPUs, 2.00 s on 64 GPUs" in text


def test_one_size_of_job_is_a_picture_too() -> None:
    ElementTree.fromstring(sizes_svg("sizes", [Course("only", ((16, 1.0),))]))


@pytest.mark.parametrize("name", ['"><script>', "a & b", "\x1b[31m", "</svg>"])
def test_no_name_gets_out_of_its_place(name: str) -> None:
    grid = Grid(name, (name,), ((0.5,),))
    for text in (
        load_map_svg(name, [Panel(name, 0.5, (grid,))]),
        sizes_svg(name, [Course(name, ((1, 1.0), (2, 1.0)))]),
    ):
        tree = ElementTree.fromstring(text)
        assert {element.tag.removeprefix(SVG) for element in tree.iter()} <= {
            *("svg", "title", "desc", "style", "rect", "path", "text", "polyline")
        }
        assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
