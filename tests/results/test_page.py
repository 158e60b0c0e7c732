"""A run's page: whole in one file, true to the run, and safe whatever the run's texts hold."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.failover.analysis.job import Iteration
from hpn.failover.analysis.metrics.series import MessageSeries
from hpn.failover.analysis.model import DrillMetrics, Goodput, NicGoodput
from hpn.failover.analysis.port_sampling import Sampled, Sampling, Series, Watched
from hpn.failover.analysis.series import bins_of, series_flows
from hpn.results.judge.verdict import Outcome, Verdict, decide, holds
from hpn.results.page import render
from hpn.results.page.axis import Linear, Logarithmic, linear, logarithmic_ms, milliseconds_text, number_text
from hpn.results.page.chain import Side, chain_of
from hpn.results.page.chart import Chart, Line, Moment, thinned
from hpn.results.page.heat import heat_map
from hpn.results.page.page import page, view_of
from hpn.results.page.ranks import UNFINISHED
from hpn.results.page.setup import fabric_line
from hpn.results.page.story import answer, harm
from hpn.results.page.time_charts import queues_chart
from hpn.results.run.reading import Gap, Run, read
from hpn.testbed.errors import MachineError
from hpn.testbed.events import Event, EventKind
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.kernel.rtnetlink.qdisc import BucketReading
from tests.failover.synthetic import MS, S, flow
from tests.results.large import FAULTS, FLOWS, large_run
from tests.results.sample import AT, EVENTS, HOST, MANIFEST, TOR, metrics, verdict
from tests.results.test_job_text import job, of_job
from tests.results.whole import DRILL, FABRIC, whole_run

EDGE = metrics().edges[0]
HOSTILE = "</script><script>alert(1)</script>\"'&\n\x1b[31m"


class _Seen(HTMLParser):
    """Elements and texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.scripts: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        (self.scripts if self._inside == "script" else self.text).append(data)


def seen(text: str) -> _Seen:
    parser = _Seen()
    parser.feed(text)
    return parser


def run_of(found: DrillMetrics | None, judged: Verdict | None = None, **changes: object) -> Run:
    """A run whose folder tells metrics, verdict and events, and nothing else unless ``changes`` say so."""
    run = Run(
        path=Path("link-down"),
        manifest=MANIFEST,
        drill=None,
        fabric=None,
        events=EVENTS,
        metrics=found,
        verdict=verdict(metrics() if found is None else found) if judged is None else judged,
        series=None,
        host=None,
        paths=None,
        queue_pairs=None,
        workers=None,
        spans=None,
        client_spans=None,
        devices=None,
        gaps=(),
    )
    return replace(run, **changes)  # type: ignore[arg-type]  # a test names fields


def test_a_page_asks_nobody_for_anything() -> None:
    found = seen(page(run_of(metrics())))
    for tag, attributes in found.tags:
        assert not {"src", "srcset", "action", "background", "poster"} & attributes.keys(), tag
        assert tag not in {"link", "iframe", "object", "embed", "base", "form"}
        assert (attributes.get("href") or "#").startswith("#")
    policy = next(of["content"] for tag, of in found.tags if of.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "http" not in policy
    assert not any(name.startswith("on") for _, attributes in found.tags for name in attributes)


def test_what_a_run_s_texts_hold_is_text() -> None:
    """Names, commands, events, evidence: nothing of it becomes an element or a script."""
    found = metrics(80)
    events = [replace(event, subject=HOSTILE, node=HOST if event.node == HOST else HOSTILE) for event in EVENTS]
    judged = decide([replace(check, text=HOSTILE, evidence=HOSTILE) for check in verdict(found).checks], (HOSTILE,))
    manifest = replace(MANIFEST, drill=HOSTILE, command=("drill", HOSTILE), doctor={HOSTILE: HOSTILE}, fabric=HOSTILE)
    drill = replace(DRILL, summary=HOSTILE, faults=(replace(DRILL.faults[0], id=HOSTILE, kind=HOSTILE),))
    gaps = (Gap(HOSTILE, HOSTILE),)
    text = page(run_of(found, judged, manifest=manifest, events=tuple(events), drill=drill, fabric=FABRIC, gaps=gaps))
    plain = page(run_of(found, drill=DRILL, fabric=FABRIC, gaps=(Gap("series", "none"),)))
    assert [tag for tag, _ in seen(text).tags if tag == "script"] == [
        tag for tag, _ in seen(plain).tags if tag == "script"
    ]
    assert "<script>alert" not in text
    assert "\x1b" not in text


def test_a_chart_s_numbers_cannot_end_their_script() -> None:
    chart = Chart("a", HOSTILE, HOSTILE, "ms", [0.0, 1.0], (Line(HOSTILE, [1.0, None]),), (Moment(0.5, HOSTILE),))
    assert "<" not in chart.data
    assert json.loads(chart.data)["lines"] == [HOSTILE]


def test_only_the_scripts_of_this_package_may_run(monkeypatch: pytest.MonkeyPatch) -> None:
    static = render.static
    changed = {render.UPLOT: static(render.UPLOT) + " "}
    monkeypatch.setattr(render, "static", lambda name: changed.get(name) or static(name))
    with pytest.raises(MachineError, match="is not the one that was released"):
        page(run_of(metrics()))


def test_a_run_that_never_measured_has_a_page() -> None:
    view = view_of(run_of(None))
    assert (view.stories, view.charts, view.harm, view.heat, view.ranks) == ((), [], (), None, None)
    assert "link-down" in page(run_of(None))


def test_a_repeat_says_how_it_alone_is_run_again() -> None:
    alone = "This run alone: <code>--phase 6</code> in the place of <code>--repeat</code>."
    assert alone in page(run_of(metrics(), manifest=replace(MANIFEST, repeat=6, phase=6)))
    assert "This run alone" not in page(run_of(metrics()))


def test_a_page_says_early_what_ran_and_on_what() -> None:
    assert fabric_line(load_fabric("tiny")) == (
        "tiny (hpn): 2 segments of 2 hosts, 2 rails, 2 planes, 8 ToRs, 4 Aggs;"
        " NIC ports of 200 Gbit/s, uplinks of 400 Gbit/s, emulated at 1:1,000;"
        " lab hosts, LACP fast, BGP by bird, hold time 9 s, no BFD"
    )
    production = FabricSpec(name="mine", profile="production")
    assert "; production hosts, LACP slow, miimon 100 ms, BGP" in fabric_line(build(production))
    split = FabricSpec.model_validate({"name": "mine", "lacp": {"host_rate": "slow"}})
    assert "; lab hosts, LACP slow (ToRs: fast), BGP" in fabric_line(build(split))
    markup = page(run_of(metrics(), manifest=replace(MANIFEST, host_profile="production")))
    assert "production profile" in "".join(seen(markup).text)
    assert "NIC ports of 400 Gbit/s" in fabric_line(load_fabric("tiny-rail-only")), "one port has the rate of two"
    spec = FabricSpec.model_validate({"name": "mine", "switch": {"buffer": "3 MB"}})
    assert "; switches with 3 MB of buffer, PFC on priorities 3 and 4; lab hosts, LACP" in fabric_line(build(spec))
    drill = replace(DRILL, traffic=("a job of 4 GPUs", "16 queue pairs"))
    text = "".join(seen(page(run_of(metrics(), drill=drill, fabric=FABRIC))).text)
    assert f"On: {fabric_line(FABRIC)}." in text
    assert "Traffic: a job of 4 GPUs; 16 queue pairs." in text
    assert text.index("On: ") < text.index("Expectations")
    bare = page(run_of(metrics()))
    assert "<b>On:</b>" not in bare
    assert "<b>Traffic:</b>" not in bare


def test_the_interval_of_a_run_is_named_once_where_there_is_one() -> None:
    told = "measurement error of this run, not the spread over runs"
    assert page(run_of(metrics())).count(told) == 1
    facts = decide([check for check in verdict(metrics()).checks if check.low is None])
    assert told not in page(replace(run_of(metrics()), verdict=facts))


def test_the_glossary_and_the_charts_of_the_machine_are_not_printed() -> None:
    """A page took 10 sheets of A4."""
    text = page(run_of(metrics()))
    assert "#glossary,#machine figure{display:none}" in text[text.rindex("@media print") :]


def test_every_expectation_is_there_those_not_kept_first() -> None:
    view = view_of(run_of(metrics(80)))
    assert [row.outcome for row in view.checks] == ["fail", "pass", "pass", "pass"]
    assert view.checks[0].limit == "50 ms"
    text = "".join(seen(page(run_of(metrics(80)))).text)
    assert all(check.text in text for check in verdict(metrics(80)).checks)


def test_the_answer_says_what_was_broken_and_what_a_pass_cost() -> None:
    found = metrics()
    died = replace(found, edges=(replace(found.edges[0], flows_died=8), *found.edges[1:]))
    assert answer(verdict(metrics(80))) == "No: 1 of 4 expectations were broken."
    assert answer(verdict(found)) == "Yes: every expectation of the drill was kept."
    assert harm(died, Outcome.PASS)[0] == "8 queue pairs died at the failure, as the drill expects or allows"
    assert harm(died, Outcome.FAIL)[0] == "8 queue pairs died at the failure"
    assert answer(decide([holds("a", True)], ("the machine was full",))) == "Nothing can be said: the machine was full."
    assert answer(decide([holds("a", None, evidence="none")])) == "Nothing can be said: a (none)."


def test_the_two_chains_are_told_apart_and_are_in_order() -> None:
    chain = chain_of(EDGE, EVENTS, frozenset({HOST}), EDGE.phases.recover)
    assert [(side.name, [step.name for step in steps]) for side, steps in chain.sides()] == [
        ("HOST", ["carrier (host)", "LAG rewritten"]),
        ("FABRIC", ["host route withdrawn"]),
        ("END", ["last flow recovered"]),
    ]
    assert [step.first_ms for step in chain.steps][:3] == [0.5, 2.0, 5.0]
    assert chain.steps[0].text == "500 us"


def test_a_switch_s_carrier_is_of_the_other_chain_and_events_of_other_windows_of_none() -> None:
    events = [Event(AT + 10_000, EventKind.LINK, TOR, "h0r0", "carrier-down"), EVENTS[-1]]
    (side, (step,)), *_ = chain_of(EDGE, events, frozenset({HOST}), EDGE.phases.recover).sides()
    assert (side, step.name, step.count) == (Side.FABRIC, "carrier (switch)", 1)


def test_a_job_s_iterations_are_a_chart_with_its_faults_and_a_table() -> None:
    found = of_job(job())
    view = view_of(run_of(found))
    (chart,) = view.charts
    assert len(chart.xs) == len(job().iterations) + 3, "an end, and an end with a gap where it died"
    assert [moment.text for moment in chart.moments] == [result.edge.label for result in found.edges]
    assert len(chart.rows()) == len(chart.xs)
    assert view.stories[0].edges[0].facts[-1].caption == "What it cost the job"


def test_an_iteration_is_as_high_from_its_begin_to_its_end() -> None:
    """A stall that ends at 6.5 s is no slope that begins with the last iteration before it."""
    stall = replace(
        job(), deaths=(), iterations=(Iteration(0, 0, S, 0), Iteration(1, S, 5 * S, 0), Iteration(2, 5 * S, 6 * S, 0))
    )
    chart = next(each for each in view_of(run_of(of_job(stall))).charts if each.id == "iterations")
    assert [x - chart.xs[0] for x in chart.xs] == [0, 1, 5, 6]
    assert chart.lines[0].ys == [1000, 4000, 1000, 1000]
    assert chart.drawn[0].path == "M0 750L167 750L167 0L833 0L833 750L1000 750"


def test_no_iteration_goes_on_while_a_job_is_dead() -> None:
    chart = next(each for each in view_of(run_of(of_job(job()))).charts if each.id == "iterations")
    gap = chart.lines[0].ys.index(None)
    assert chart.lines[0].ys[gap - 2] == chart.lines[0].ys[gap - 1]
    assert chart.xs[gap + 1] - chart.xs[gap] > 1.4
    assert chart.drawn[0].path.count("M") == 2


def test_what_the_nics_counted_stands_on_the_page() -> None:
    counted = replace(job(), counters={"a": {"local_ack_timeout_err": 1}, "b": {"local_ack_timeout_err": 3}})
    tables = {table.caption: table for table in view_of(run_of(of_job(counted))).tables}
    ((name, count, meaning),) = tables["Counters of all NICs together"].rows
    assert (name, count) == ("local_ack_timeout_err", "4")
    assert "waited for its retry timer" in meaning


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12))
def test_an_axis_holds_what_it_was_made_for_and_its_ticks_stand_on_it(one: float, other: float) -> None:
    axis = linear(min(one, other), max(one, other))
    assert axis.low <= min(one, other)
    assert axis.high >= max(one, other)
    for ticks in (axis.ticks(5), axis.ticks(7)):
        assert all(0 <= tick.at_pct <= 100 for tick in ticks)
        assert [tick.at_pct for tick in ticks] == sorted(tick.at_pct for tick in ticks)
        assert 2 <= len(ticks) <= 8


@given(st.lists(st.floats(0, 1e7), max_size=5))
def test_a_logarithmic_axis_keeps_the_order_of_times(values: list[float]) -> None:
    axis = logarithmic_ms(values)
    assert axis.low >= 0.01
    places = [axis.at(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(0 <= place <= 100 for place in places)
    assert len(axis.ticks()) >= 3


def test_twenty_microseconds_and_two_seconds_are_both_seen() -> None:
    axis = logarithmic_ms([0.02, 2000])
    assert isinstance(axis, Logarithmic)
    assert [tick.text for tick in axis.ticks()] == ["10 us", "100 us", "1 ms", "10 ms", "100 ms", "1 s", "10 s"]
    assert axis.at(0.02) > 4
    assert Linear(0, 2000).at(0.02) < 0.01


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.25, "0.25"), (1200, "1200"), (25_000_000, "25M"), (12_500, "12.5k"), (2e9, "2G")]
)
def test_numbers_are_short_and_without_an_exponent(value: float, text: str) -> None:
    assert number_text(value) == text


def test_times_are_in_their_natural_unit() -> None:
    assert [milliseconds_text(value) for value in (0.02, 3.105, 1500)] == ["20 us", "3.105 ms", "1.5 s"]


def test_gaps_are_no_lines_and_steps_have_corners() -> None:
    chart = Chart("a", "t", "s", "ms", [0, 1, 2, 3], (Line("x", [0, None, 10, 20]),))
    assert re.sub(r"[^ML]", "", chart.drawn[0].path) == "MML"
    assert re.sub(r"[^ML]", "", replace(chart, steps=True).drawn[0].path) == "MMLL"


def test_more_points_than_a_screen_has_are_means_of_stretches() -> None:
    xs, (line,) = thinned(list(range(1200)), [Line("x", [float(at) for at in range(1200)])])
    assert len(xs) == len(line.ys) == 600
    assert line.ys[:2] == [0.5, 2.5]
    assert thinned([0.0, 1.0], [Line("x", [None, 1.0])]) == ([0.0, 1.0], (Line("x", [None, 1.0]),))


def test_an_iteration_beyond_all_bounds_is_a_point() -> None:
    long = replace(job(), iterations=(Iteration(0, AT, 2**61, 0), *job().iterations[1:]))
    assert "iteration" in page(run_of(of_job(long)))


def test_the_page_of_512_flows_over_a_minute_is_below_a_megabyte(tmp_path: Path) -> None:
    run = read(large_run(tmp_path / "run").path)
    assert run.gaps == ()
    assert run.metrics is not None
    assert (len(run.metrics.flows), len(run.metrics.edges)) == (FLOWS, 2 * FAULTS)
    view = view_of(run)
    assert [chart.id for chart in view.charts] == ["goodput", "queues"]
    assert [chart.id for chart in view.machine_charts] == ["host"]
    assert view.heat is not None
    assert len(page(run).encode()) < 1_000_000


def test_a_storm_of_flaps_has_a_row_for_each_edge_beyond_the_first_forty() -> None:
    found = metrics(80)
    storm = replace(found, edges=found.edges[:1] * 2000)
    text = page(run_of(storm))
    (story,) = view_of(run_of(storm)).stories
    assert len(story.edges) == 40
    assert text.count('<tr><th scope="row">link failure 0</th>') == 1960
    assert len(text.encode()) < 1_000_000


def test_the_goodput_of_many_nics_is_that_of_those_that_kept_least() -> None:
    found = metrics(80)
    first = found.edges[0]
    nics = tuple(NicGoodput(f"nic{at}", "up", Goodput(100.0, float(at % 100), 100.0)) for at in reversed(range(100)))
    (failure, _) = view_of(
        run_of(replace(found, edges=(replace(first, nics=nics), *found.edges[1:])), verdict(found))
    ).stories
    (section,) = failure.edges
    assert section.goodput is not None
    assert [row[0] for row in section.goodput.rows] == ["all flows", *(f"sent by nic{at}" for at in range(24))]
    assert section.goodput.caption.endswith("; 76 more kept at least 24.0 %")


def test_an_outage_that_was_not_over_has_no_upper_end() -> None:
    found = metrics(80)
    (first, *others) = found.edges
    never = replace(found, edges=(replace(first, flows_unrecovered=first.flows_hit), *others))
    ((section,), (repair,)) = (story.edges for story in view_of(run_of(never)).stories)
    assert section.line.endswith("worst outage >= 81.0 ms")
    assert section.facts[0].rows[-1] == ("median outage", ">= 81.0 ms")
    assert re.search(r"worst outage < \S+ ms$", repair.line)


def test_all_charts_of_a_run_have_one_axis_of_time(tmp_path: Path) -> None:
    view = view_of(read(whole_run(tmp_path / "run").path))
    charts = [*view.charts, *view.machine_charts]
    assert len({(chart.x_axis.low, chart.x_axis.high) for chart in charts}) == 1
    assert all(chart.x_axis.low <= chart.xs[0] and chart.xs[-1] <= chart.x_axis.high for chart in charts)


def test_a_moment_beyond_the_axis_is_not_shown_at_its_end() -> None:
    moments = (Moment(-1.0, "before"), Moment(0.0, "first"), Moment(10.0, "last"), Moment(11.0, "after"))
    chart = Chart("a", "t", "s", "ms", [0.0, 10.0], (Line("x", [0.0, 1.0]),), moments)
    assert [mark.text for mark in chart.placed] == ["first", "last"]


@given(st.lists(st.tuples(st.floats(0, 10), st.text("ab", max_size=30)), max_size=12))
def test_texts_above_a_chart_never_stand_on_each_other(told: list[tuple[float, str]]) -> None:
    moments = tuple(Moment(at, text) for at, text in sorted(told))
    chart = Chart("a", "t", "s", "ms", [0.0, 10.0], (Line("x", [0.0, 1.0]),), moments)
    placed = chart.placed
    assert [mark.text for mark in placed] == [each.text for each in moments]
    for row in range(chart.label_rows):
        texts = [(mark.at_pct, len(mark.text)) for mark in placed if mark.row == row]
        ends = [(min(at_pct, 99 - letters), letters) for at_pct, letters in texts]
        assert all(left + letters <= right for (left, letters), (right, _) in pairwise(ends))


def test_ports_that_are_read_one_after_another_are_lines_without_gaps() -> None:
    ports = [Series(Watched("t", n, f"t:{n}", f"link{n}", "tor down", None)) for n in (1, 2)]
    for at in range(5):
        for late, port in enumerate(ports):
            port.append(BucketReading(S + at * 10 * MS + late * MS, 1, 1000 * (at + 1), 0, 5, at, at, 8_000_000))
    chart = queues_chart(Sampled(Sampling(10 * MS), ports, 7), S, 2 * S, ())
    assert chart is not None
    assert chart.xs == [0.0, 0.01, 0.02, 0.03, 0.04]
    assert [list(line.ys) for line in chart.lines] == [[1.0, 2.0, 3.0, 4.0, 5.0]] * 2


def test_the_most_that_waited_is_still_seen_where_many_readings_are_a_point() -> None:
    port = Series(Watched("t", 1, "t:1", "link", "tor down", None))
    for at in range(10_000):
        port.append(BucketReading(S + at * MS, 1, 8000 if at == 4321 else 1, 0, 5, at, at, 0 if at == 1 else 8_000_000))
    chart = queues_chart(Sampled(Sampling(MS), [port], 7), S, 20 * S, ())
    assert chart is not None
    assert len(chart.xs) <= 600
    assert max(y or 0 for y in chart.lines[0].ys) == 8.0


def test_a_page_is_small() -> None:
    assert len(page(run_of(metrics())).encode()) < 150_000


def test_a_whole_folder_has_every_part_of_a_page(tmp_path: Path) -> None:
    folder = whole_run(tmp_path / "run")
    view = view_of(read(folder.path))
    assert view.summary == DRILL.summary
    assert [chart.id for chart in view.charts] == ["goodput", "messages", "queues"]
    assert [chart.id for chart in view.machine_charts] == ["host"]
    assert view.picture.startswith("<svg")
    assert "cut: link-down" in view.picture
    assert view.heat is not None
    assert view.ranks is not None
    assert view.ranks.kinds == ("all-reduce", UNFINISHED)
    assert view.gaps == ()
    assert len(page(read(folder.path)).encode()) < 150_000


@pytest.mark.parametrize(
    "name", ["series.json", "fabric.json", "drill.json", "events.jsonl", "verdict.json", "metrics.json"]
)
def test_what_a_folder_does_not_tell_is_a_named_gap_of_its_page(tmp_path: Path, name: str) -> None:
    folder = whole_run(tmp_path / "run")
    (folder.path / name).write_text("{")
    text = page(read(folder.path))
    assert "This run folder does not tell:" in text
    assert f"<li>{name.partition('.')[0]}: " in text


def test_a_job_s_map_of_losses_has_the_queue_pairs_that_missed_packets_and_when() -> None:
    """2 of 8 packets in the third bin; four retries of a queue pair that got nothing through are all of its packets."""
    size, retries = np.full((3, 10), 8 * 4096, np.uint64), np.zeros((3, 10), np.uint32)
    retries[0, 2], retries[1, 5], size[1, 5] = 2, 4, 0
    flows = series_flows([flow(at) for at in range(3)])
    size_of_packets = tuple(replace(each, packet_bytes=4096) for each in flows)
    found = heat_map(MessageSeries(bins_of(S, S + 100 * MS), size_of_packets, size, retries=retries))
    assert found is not None
    assert [(row.name, row.lost, [shade.number for shade in row.shades]) for row in found.rows] == [
        (flows[1].name, 4, [4]),
        (flows[0].name, 2, [1]),
    ]
    assert heat_map(MessageSeries(bins_of(S, S + 100 * MS), size_of_packets, size)) is None


def test_goodput_by_plane_adds_up_to_all_of_it(tmp_path: Path) -> None:
    folder = whole_run(tmp_path / "run")
    (chart, *_) = view_of(read(folder.path)).charts
    assert chart.lines[0].name == "all"
    for values in zip(*(line.ys for line in chart.lines), strict=True):
        assert (values[0] or 0) >= sum(value or 0 for value in values[1:])


def test_a_page_names_the_machine_and_the_commit_that_it_ran_on() -> None:
    manifest = replace(MANIFEST, commit="796fe22c1d2a", machine={"cpu": "Zen <9>", "cpus": 2})
    told = page(run_of(metrics(80), manifest=manifest))
    assert "<dt>machine</dt><dd>cpu Zen &lt;9&gt;, cpus 2</dd><dt>commit</dt><dd>796fe22c1d2a</dd>" in told


def test_a_page_tells_the_machine_s_date_and_no_virtual_one() -> None:
    virtual = replace(MANIFEST, engine="uml-virtual-time", started_at="2026-01-01T00:00:01+00:00")
    assert "started" not in dict(view_of(replace(run_of(metrics()), manifest=virtual)).facts)
    dated = replace(virtual, wall_begin="2026-11-24T12:00:00+00:00", wall_end="2026-11-24T12:00:20+00:00")
    facts = dict(view_of(replace(run_of(metrics()), manifest=dated)).facts)
    assert (facts["started"], facts["ended"]) == (dated.wall_begin, dated.wall_end)
