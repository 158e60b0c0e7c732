"""The picture of how labs grow."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from tests.product.growth import SIZES
from tests.product.growth_plot import HEIGHT, WIDTH, plot


def test_the_picture_has_a_point_for_each_figure_of_each_size() -> None:
    known = {
        "a": {"links": 32.0, "converged_s": 1.2, "supervisor_cpu_s": 0.1, "bgp_cpu_s": 0.0},
        "b": {"links": 1536.0, "converged_s": 23.0, "supervisor_cpu_s": 7.3, "bgp_cpu_s": 7.8},
    }
    root = ElementTree.fromstring(plot(known))
    points = [element for element in root.iter() if element.tag.endswith("circle")]
    assert len(points) == 5  # what is 0 has no logarithm
    assert all(0 < float(p.attrib["cx"]) < WIDTH and 0 < float(p.attrib["cy"]) < HEIGHT for p in points)
    with pytest.raises(ValueError, match="nothing to draw"):
        plot({})


def test_there_are_six_sizes_each_larger_than_the_one_before() -> None:
    links = [len(size.fabric.links) for size in SIZES]
    assert len(links) == 6
    assert links == sorted(set(links))
    assert links[-1] >= 3136
