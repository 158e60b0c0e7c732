"""The picture of how labs grow."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hpn.testbed.errors import MachineError
from tests.product import growth
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


def test_a_size_that_has_no_room_is_named_and_the_others_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(size: growth.Size, *, profiled: bool) -> growth.Figures:
        if size.name == "segment":
            raise MachineError("no room")
        return {"links": 32.0, "converged_s": 1.0}

    monkeypatch.setattr(growth, "measured", measured)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    growth.main([str(tmp_path / "out.json"), str(tmp_path / "plot.svg"), "--only", "tiny", "--only", "segment"])
    assert json.loads((tmp_path / "out.json").read_text()) == {"tiny": {"links": 32.0, "converged_s": 1.0}}
    assert "segment is left out: no room\n" in capsys.readouterr().out
    assert (tmp_path / "plot.svg").exists()


def test_there_are_six_sizes_each_larger_than_the_one_before() -> None:
    links = [len(size.fabric.links) for size in SIZES]
    assert len(links) == 6
    assert links == sorted(set(links))
    assert links[-1] >= 3136
