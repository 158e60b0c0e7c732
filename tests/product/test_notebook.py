"""The notebook of examples/notebook: its cells are run as Python, and what they draw is what the runs measured."""

from __future__ import annotations

import ast
import contextlib
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hpn.failover.analysis.budget import Interval
from hpn.failover.analysis.model import DrillMetrics
from hpn.results.run.folder import create
from tests.docs.commandline import commands, mistakes
from tests.results.measured import everything, job
from tests.results.sample import MANIFEST, metrics, verdict

BOOK = Path(__file__).parents[2] / "examples" / "notebook" / "two_policies.ipynb"
CONTENT: dict[str, Any] = json.loads(BOOK.read_text())
STARVED = "the CPUs were 99 % busy"
measured = cache(metrics)


def source(kind: str) -> list[str]:
    return ["".join(cell["source"]) for cell in CONTENT["cells"] if cell["cell_type"] == kind]


def shell() -> str:
    """The commands that it tells its reader to type first."""
    return "\n".join(re.findall(r"^    (.+)$", source("markdown")[0], re.M))


def run(folder: Path, outage_ms: float, *reasons: str, came_back: bool = True) -> None:
    """A run in which flow 0 was down for so long at the failure, flow 1 lost nothing, and flow 2 is not touched."""
    drill = measured()
    flow, edge = drill.flows[0], drill.edges[0]
    budget = replace(flow.edges[0].budget, low_ms=outage_ms - 1, high_ms=outage_ms + 1)
    down = replace(flow.edges[0], outage_plbm_ms=outage_ms, budget=budget, recovered=came_back)
    worst = replace(
        edge,
        worst_outage_plbm_ms=outage_ms,
        worst_outage_interval_ms=Interval(outage_ms - 1, outage_ms + 1),
        flows_unrecovered=0 if came_back else 1,
    )
    flows = (replace(flow, edges=(down, *flow.edges[1:])), *drill.flows[1:])
    found: DrillMetrics = replace(drill, flows=flows, edges=(worst, *drill.edges[1:]))
    made = create(folder)
    made.write_manifest(MANIFEST)
    made.write_metrics(found)
    made.write_verdict(verdict(found, *reasons))


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the cells leave behind: of one policy 20, 30, 40 ms and a run to leave out, of the other one that stands."""
    here = tmp_path_factory.mktemp("notebook")
    for at, outage_ms in enumerate((20.0, 30.0, 40.0)):
        run(here / "runs" / "move-source-ports" / f"link-down-{at}", outage_ms)
    run(here / "runs" / "move-source-ports" / "link-down-starved", 900.0, STARVED)
    for at, outage_ms in enumerate((100.0, 200.0)):
        run(here / "runs" / "off" / f"link-down-{at}", outage_ms)
    run(here / "runs" / "off" / "link-down-dead", 300.0, came_back=False)
    return drawn_in(here)


def drawn_in(here: Path) -> dict[str, Any]:
    """What the cells leave behind, started in that folder; ``table``: what the last one shows."""
    pytest.importorskip("pandas", reason="no pandas: pip install hpn[notebook]")
    plots = pytest.importorskip("matplotlib.pyplot", reason="no matplotlib: pip install hpn[notebook]")
    cells: dict[str, Any] = {"here": here}
    *cells_before, last = source("code")
    plots.switch_backend("Agg")
    with contextlib.chdir(here):
        for number, cell in enumerate(cells_before):
            exec(compile(cell, f"{BOOK.name} cell {number}", "exec"), cells)
        *definitions, table = ast.parse(last).body
        exec(compile(ast.Module(definitions, []), BOOK.name, "exec"), cells)
        assert isinstance(table, ast.Expr)
        cells["table"] = eval(compile(ast.Expression(table.value), BOOK.name, "eval"), cells)
    plots.close("all")
    return cells


def _share(line: Any, ms: float) -> float:  # a line of matplotlib, which is not always there
    """How much of a step curve is reached at ``ms``."""
    return max(float(y) for x, y in zip(*line.get_data(), strict=True) if x <= ms)


def test_the_cdf_has_a_curve_for_each_policy_that_counts_what_never_came_back(drawn: dict[str, Any]) -> None:
    axes = drawn["cdf_axes"]
    moved, moved_perhaps, off, off_perhaps = axes.get_lines()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["move-source-ports: 6 flows, 0 never came back", "off: 6 flows, 1 never came back"]
    unseen = measured().flows[1].edges[0].budget.high_ms
    assert 0 < unseen < 19
    assert [_share(moved, ms) for ms in (0, unseen, 20.9, 21, 31, 41)] == pytest.approx(
        [0, 1 / 2, 1 / 2, 4 / 6, 5 / 6, 1]
    )
    assert [_share(moved_perhaps, ms) for ms in (0, 19, 29, 39)] == pytest.approx([1 / 2, 4 / 6, 5 / 6, 1])
    assert [_share(off, ms) for ms in (101, 201, 1e6)] == pytest.approx([4 / 6, 5 / 6, 5 / 6]), "never 1"
    assert [_share(off_perhaps, ms) for ms in (99, 199, 1900, 2100)] == pytest.approx([4 / 6, 5 / 6, 5 / 6, 1])
    assert (moved.get_color(), off.get_color()) == (moved_perhaps.get_color(), off_perhaps.get_color())
    assert axes.get_xlim()[1] > 2000
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("outage of a flow at the failure (ms)", "share of flows")
    assert (drawn["here"] / "cdf.pdf").read_bytes().startswith(b"%PDF")


def test_the_boxes_have_the_worst_of_each_run_and_mark_lower_bounds(drawn: dict[str, Any]) -> None:
    axes, boxes = drawn["box_axes"], drawn["boxes"]
    assert [float(line.get_ydata()[0]) for line in boxes["medians"]] == [30.0, 200.0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["move-source-ports", "off"]
    points = {
        (int(x), line.get_marker()): sorted(map(float, line.get_ydata()))
        for line in axes.get_lines()
        if line.get_marker() in (".", "^") and len(line.get_xdata())
        for x in line.get_xdata()
    }
    assert points == {(1, "."): [20.0, 30.0, 40.0], (2, "."): [100.0, 200.0], (2, "^"): [pytest.approx(2000, abs=3)]}
    assert axes.get_ylim()[0] == 0
    assert (drawn["here"] / "box.pdf").read_bytes().startswith(b"%PDF")


def test_the_table_tells_runs_medians_and_bounds(drawn: dict[str, Any]) -> None:
    told = drawn["table"].to_dict("index")
    assert told["move-source-ports"] == {"runs": 3, "median (ms)": "30.00", "largest (ms)": "40.00", "lower bounds": 0}
    assert (told["off"]["runs"], told["off"]["median (ms)"], told["off"]["lower bounds"]) == (3, "200.00", 1)
    assert told["off"]["largest (ms)"].startswith(">= ")
    bounds = drawn["worst"]["off"].assign(open_ended=True)
    assert drawn["shown"](bounds, 200.0) == ">= 200.00", "a median of bounds was a number"


def test_runs_of_jobs_are_drawn_by_their_iterations(tmp_path: Path) -> None:
    """Without flows the axis had no limit: a ValueError of matplotlib."""
    drill = replace(everything(), transfers=None)
    made = replace(drill, flows=(), flow_count=0, job=replace(job(), edges=job().edges))
    for policy in ("move-source-ports", "off"):
        of = create(tmp_path / "runs" / policy / "link-down-1")
        of.write_manifest(MANIFEST)
        of.write_metrics(made)
        of.write_verdict(verdict(metrics()))
    cells = drawn_in(tmp_path)
    assert cells["cdf_axes"].get_xlabel() == "iteration of a job at the failure (ms)"
    assert cells["box_axes"].get_ylabel() == "longest iteration at the failure (ms)"
    assert set(cells["table"].index) == {"move-source-ports", "off"}


def test_the_notebook_keeps_no_outputs_and_its_first_cells_say_what_to_run() -> None:
    assert (CONTENT["nbformat"], CONTENT["nbformat_minor"]) == (4, 5)
    cells = CONTENT["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    asked = [words for words in commands(shell()) if words[0] == "hpn"]
    assert [problem for words in asked for problem in mistakes(words)] == []
    folders = {words[words.index("--out") + 1] for words in asked if words[1] == "drill"}
    assert folders == set(re.findall(r'"(runs/[^"]+)"', source("code")[0])), (
        "the paths at the top are those of the runs"
    )
