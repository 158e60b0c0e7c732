"""Runs held against each other: what may be, as far as intervals allow, with causes that point the right way."""

from __future__ import annotations

import html
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from hpn.commands.compare import compare_
from hpn.failover.analysis.model import DrillMetrics
from hpn.results.comparison import baseline as baselines
from hpn.results.comparison.baseline import baseline_of, held_against, read, written
from hpn.results.comparison.differences import CPU_COST, UNEXPLAINED, Difference, Finding, differences, told_apart
from hpn.results.comparison.figures import Key, Summary, Value, _summary, summaries, values_of
from hpn.results.comparison.groups import Across, Compared, check_trusted, grouped
from hpn.results.comparison.science import science
from hpn.results.judge.verdict import Verdict, at_most
from hpn.results.page.comparing import comparison_view
from hpn.results.run.folder import RunFolder
from hpn.results.run.identity import Identity
from hpn.results.run.manifest import Manifest
from hpn.results.text.answer import ONE_RUN
from hpn.results.text.compared import comparison_parts
from hpn.results.text.comparison import (
    asked_sheet,
    causes_sheet,
    figure_lines,
    figure_of,
    groups_sheet,
    held_lines,
    interval_of,
    name_of,
    own_sheet,
    value_of,
)
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.fabric.model import Fabric
from tests.results.comparing import comparison, drill_view, page_of
from tests.results.sample import MANIFEST, metrics, other_run, verdict
from tests.results.shown import as_text
from tests.results.whole import whole_run

SINGLE = replace(MANIFEST, fabric="single-tor", architecture="single-tor")
HERE = Identity({"fabric": "f1", "drill": "d1", "settings": "s1"}, {"path_control.enabled": "false", "pods": "1"})
THERE = Identity({**HERE.digests, "fabric": "f2"}, {"path_control.enabled": "true", "pods": "1"})
VIRTUAL = replace(MANIFEST, engine="uml-virtual-time", datapath="kernel", kernel="6.12.117")
KERNEL = replace(MANIFEST, datapath="kernel")


def run(manifest: Manifest = MANIFEST, worst_ms: float = 20.0, *reasons: str) -> Compared:
    found = other_run(metrics(), worst_ms)
    return Compared("runs/one", manifest, found, verdict(metrics(), *reasons))


def worst(found: tuple[Difference, ...]) -> Difference:
    return next(each for each in found if each.key.name == "worst outage" and "failure" in each.key.where)


def compared(*runs: Compared, across: tuple[Across, ...] = ()) -> Difference:
    return worst(differences(grouped(runs, across)))


def test_what_differs_is_refused_with_the_way_out() -> None:
    with pytest.raises(
        InputError, match=r"differ in their fabric \(single-tor \(single-tor\) \| tiny \(hpn\)\).*--across fabric$"
    ):
        grouped([run(), run(SINGLE)], ())
    with pytest.raises(InputError, match=r"--across engine$"):
        grouped([run(), run(VIRTUAL)], ())
    with pytest.raises(InputError, match=r"--across fabric --across engine$"):
        grouped([run(), run(replace(VIRTUAL, fabric="pod"))], ())
    with pytest.raises(InputError, match=r"--across settings$"):
        grouped([run(), run(replace(MANIFEST, job={"queue_pairs": 8}))], ())
    with pytest.raises(InputError, match=r"--across drill$"):
        grouped([run(), run(replace(MANIFEST, drill="tor-crash", load=0.4))], ())


def test_runs_of_several_drills_are_told_with_both_ways_on(tmp_path: Path) -> None:
    """A parent folder is named where one drill's runs were meant."""
    for drill in ("link-down", "tor-crash"):
        made = whole_run(tmp_path / drill)
        made.write_manifest(replace(made.manifest(), drill=drill, job={}, client={}))
        made.write_drill(replace(made.drill(), name=drill, faults=() if drill == "tor-crash" else made.drill().faults))
    refused = CliRunner().invoke(compare_, [str(tmp_path)])
    assert isinstance(refused.exception, InputError)
    assert str(refused.exception) == (
        "these runs are of 2 drills (link-down, tor-crash), which have no common median; name the folders of one drill,"
        f" as {tmp_path / 'link-down'}, or write --across drill"
    )
    assert refused.exception.exit_code == 2
    assert CliRunner().invoke(compare_, [str(tmp_path), "--across", "drill"]).exit_code == 0
    assert CliRunner().invoke(compare_, [str(tmp_path / "link-down")]).exit_code == 0


def test_runs_of_two_fabrics_have_two_medians_and_never_one() -> None:
    """0 and 549 ms were once 275 ms."""
    found = grouped([run(worst_ms=0.0), run(SINGLE, 549.0), run(worst_ms=0.0)], [Across.FABRIC])
    assert [(group.label, len(group.runs)) for group in found] == [("tiny (hpn)", 2), ("single-tor (single-tor)", 1)]
    each = worst(differences(found))
    assert (each.reference.median, each.other and each.other.median) == (0.0, 549.0)
    assert each.finding is Finding.MORE


def test_two_fabrics_of_one_name_are_two_groups_and_what_differs_is_the_first_cause() -> None:
    """They were one group, whose median was the middle of both."""
    runs = [replace(run(worst_ms=0.0), identity=HERE), replace(run(worst_ms=4458.0), identity=THERE)]
    with pytest.raises(
        InputError, match=r"differ in their fabric \(path_control.enabled: false \| true\).*--across fabric$"
    ):
        grouped(runs, ())
    groups = grouped(runs, [Across.FABRIC])
    assert [group.label for group in groups] == ["path_control.enabled false", "path_control.enabled true"]
    found = differences(groups)
    assert worst(found).why == "path_control.enabled: false | true"
    assert asked_sheet(groups).rows == (("path_control.enabled: false | true",),)
    assert causes_sheet(groups, found).rows == ()


def test_what_was_asked_otherwise_is_told_where_no_figure_differs_too_and_before_known_causes() -> None:
    alike = grouped([replace(run(), identity=HERE), replace(run(), identity=THERE)], [Across.FABRIC])
    assert asked_sheet(alike).rows == (("path_control.enabled: false | true",),)
    assert causes_sheet(alike, differences(alike)).rows == (), "nothing is the cause of no difference"
    slow = replace(run(KERNEL, 500.0), identity=THERE)
    both = grouped([replace(run(), identity=HERE), slow], [Across.FABRIC, Across.ENGINE])
    sheet = causes_sheet(both, differences(both))
    assert (sheet.caption, sheet.columns) == ("known causes", ("because", "figures"))
    ((because, figures),) = sheet.rows
    assert because.startswith("miimon: ")
    assert figures == name_of(worst(differences(both)).key)


def test_groups_have_names_of_their_own_whatever_is_known_of_them() -> None:
    other = replace(HERE, digests={**HERE.digests, "fabric": "f3"})
    groups = grouped([replace(run(), identity=each) for each in (HERE, other, THERE)], [Across.FABRIC])
    off = "path_control.enabled false"
    assert [group.label for group in groups] == [f"{off} group 1", f"{off} group 2", "path_control.enabled true"]


def test_names_make_no_group_where_digests_are_known() -> None:
    renamed = replace(MANIFEST, drill="cut", fabric="mine", summary="another")
    (group,) = grouped([replace(run(), identity=HERE), replace(run(renamed), identity=HERE)], ())
    assert len(group.runs) == 2
    marked = replace(run(replace(MANIFEST, marker="nft")), identity=HERE)
    with pytest.raises(InputError, match=r"differ in their settings .*--across settings$"):
        grouped([replace(run(), identity=HERE), marked], ())


def test_what_a_folder_does_not_tell_is_grouped_by_name_and_that_is_said() -> None:
    (group,) = grouped([run(), run()], ())
    assert groups_sheet([group]).caption.endswith(
        "drill and fabric and settings compared by name, as folders lack digests"
    )
    (known,) = grouped([replace(run(), identity=HERE)], ())
    assert groups_sheet([known]).caption == "groups"
    with pytest.raises(InputError, match=r"differ in their drill \(one folder tells it whole, another by name\)"):
        grouped([replace(run(), identity=HERE), run()], ())


def test_groups_are_told_by_what_differs_and_what_all_have_is_told_once() -> None:
    sheet = groups_sheet(grouped([run(), run(replace(MANIFEST, versions={"hpn": "0.2.0"}))], ()))
    assert sheet.columns == ("group", ">runs", "version")
    assert sheet.caption.startswith("groups of link-down, tiny (hpn), host/nft, 6.18.0, quick; drill and")
    assert len(groups_sheet(grouped([run()], ())).columns) == 8
    left_out = groups_sheet(grouped([run(), run(MANIFEST, 20.0, "the machine was full")], ()))
    assert left_out.columns[:3] == ("group", ">runs", ">left out")
    assert left_out.caption.startswith("groups; runs that cannot be trusted are left out")


def test_settings_are_told_by_what_not_all_have() -> None:
    job = {"queue_pairs": 1, "window": 256}
    two = [run(replace(MANIFEST, job=job)), run(replace(MANIFEST, job=job | {"queue_pairs": 8}))]
    assert [group.label for group in grouped(two, [Across.SETTINGS])] == ["queue_pairs 1", "queue_pairs 8"]


def test_another_version_is_no_other_experiment_but_another_group() -> None:
    new = replace(MANIFEST, versions={"hpn": "0.2.0"})
    assert [group.label for group in grouped([run(), run(new)], ())] == ["0.1.0", "0.2.0"]


def test_another_commit_is_another_version_and_so_are_its_changed_files() -> None:
    commit = "796fe22c1d2a" + "0" * 28
    runs = [run(replace(MANIFEST, commit=each)) for each in (commit, f"{commit}-dirty", commit)]
    labels = [(group.label, len(group.runs)) for group in grouped(runs, ())]
    assert labels == [("0.1.0 796fe22c1d2a", 2), ("0.1.0 796fe22c1d2a-dirty", 1)]


def test_a_lone_group_tells_its_own_figures() -> None:
    (group,) = grouped([run(worst_ms=20.0), run(worst_ms=30.0)], ())
    sheet = own_sheet(group)
    (row,) = (each for each in sheet.rows if each[1] == "worst outage" and "failure" in each[0])
    assert row[2:4] == ("2", "25.0 ms")
    assert {figure_of(key) for key in summaries(group)} == {each[1] for each in sheet.rows}
    assert drill_view([group], ()).tables[-1].rows == sheet.rows


def test_runs_that_cannot_be_trusted_are_left_out_and_counted() -> None:
    (group,) = grouped([run(), run(MANIFEST, 5000.0, "the machine was full")], ())
    assert (len(group.runs), group.left_out) == (1, 1)
    (none,) = grouped([run(MANIFEST, 20.0, "the machine was full")], ())
    with pytest.raises(InputError, match="the only run of link-down cannot be trusted: it is inconclusive"):
        check_trusted([none])


def test_a_difference_inside_the_intervals_is_none_and_says_what_would_have_been_seen() -> None:
    new = replace(MANIFEST, versions={"hpn": "0.2.0"})
    each = compared(run(worst_ms=20.0), run(new, 21.0))
    assert each.finding is Finding.NONE_SEEN
    assert 0 < each.seen_from < 10
    beyond = compared(run(worst_ms=20.0), run(new, 20.0 + 1.01 * each.seen_from))
    assert beyond.finding is Finding.MORE
    assert beyond.is_worse


def test_a_lower_bound_stays_one() -> None:
    base = run(worst_ms=20.0)
    first = base.metrics.edges[0]
    never: DrillMetrics = replace(base.metrics, edges=(replace(first, flows_unrecovered=1), *base.metrics.edges[1:]))
    new = replace(MANIFEST, versions={"hpn": "0.2.0"})
    groups = grouped([base, replace(base, manifest=new, metrics=never)], ())
    each = worst(differences(groups))
    assert each.other is not None
    assert each.other.open_ended
    assert math.isinf(each.other.high)
    shown = "".join(as_text(part, 200) for part in comparison_parts([comparison(groups, [each])], all_figures=True))
    assert ">= 20.0 ms" in shown


def test_a_cause_is_told_only_where_it_points_the_right_way() -> None:
    """Bonding looks every 10 ms and virtual time computes in none: that explains one direction each."""
    slow_bonding = compared(run(), run(KERNEL, 500.0), across=(Across.ENGINE,))
    assert slow_bonding.why.startswith("miimon: Linux bonding looks at carrier every 10 ms")
    fast_bonding = compared(run(worst_ms=500.0), run(KERNEL), across=(Across.ENGINE,))
    assert fast_bonding.why == UNEXPLAINED
    virtual = replace(VIRTUAL, datapath="nft")
    assert compared(run(worst_ms=500.0), run(virtual), across=(Across.ENGINE,)).why == CPU_COST
    assert compared(run(), run(virtual, 500.0), across=(Across.ENGINE,)).why == UNEXPLAINED


def test_bonding_is_slower_at_a_repair_by_the_timers_of_lacp() -> None:
    repair = metrics().edges[1]

    def again_after(ms: float, manifest: Manifest) -> Compared:
        of = run(manifest)
        phases = replace(repair.phases, converge=replace(repair.phases.converge, ms=ms))
        return replace(of, metrics=replace(of.metrics, edges=(of.metrics.edges[0], replace(repair, phases=phases))))

    fast, slow = again_after(300.0, MANIFEST), again_after(2400.0, KERNEL)
    found = differences(grouped([fast, slow], (Across.ENGINE,)))
    (converge,) = (each for each in found if (each.key.where, each.key.name) == (repair.edge.label, "converge"))
    assert converge.why.startswith("LACP timers: Linux bonding selects a repaired port anew and waits 2 s")


def test_a_datapath_of_a_plug_in_that_is_not_loaded_is_named_as_unknown() -> None:
    mine = replace(MANIFEST, engine="uml", datapath="mine")
    why = compared(run(), run(mine, 500.0), across=(Across.ENGINE,)).why
    assert why == "nothing is known here of the mine datapath (a plug-in?)"


def test_a_busy_host_explains_only_that_it_was_slower() -> None:
    busy = run(replace(MANIFEST, versions={"hpn": "0.2.0"}), 500.0)
    host = busy.metrics.host
    assert host is not None
    busy = replace(busy, metrics=replace(busy.metrics, host=replace(host, idle_mean_pct=3.0)))
    assert compared(run(), busy).why == "CPU noise: a host of 0.2.0 was 3 % idle"
    fast = replace(busy, metrics=other_run(busy.metrics, 1.0))
    assert compared(run(worst_ms=500.0), fast).why == UNEXPLAINED


@given(st.lists(st.floats(0, 1e6), min_size=4, max_size=4))
def test_groups_that_share_a_value_are_never_told_apart(ends: list[float]) -> None:
    a, b, c, d = sorted(ends)
    one, other = Summary(1, a, a, c, False), Summary(1, d, b, d, False)
    assert told_apart(one, other) is Finding.NONE_SEEN
    if c < d:
        assert (
            told_apart(Summary(1, a, a, b, False), Summary(1, d, max(c, math.nextafter(b, math.inf)), d, False))
            is Finding.MORE
        )


def test_a_baseline_comes_back_as_it_was(tmp_path: Path) -> None:
    (group,) = grouped([run(), run(worst_ms=22.0)], ())
    (tmp_path / "baseline.json").write_text(written(baseline_of(group)))
    again = read(tmp_path / "baseline.json")
    assert again == baseline_of(group)
    held = held_against(again, group)
    assert (held.differences, held.missing, held.worse) == ((), (), ())
    assert [line.plain for line in held_lines(replace(held, by_name=()))] == [
        "no figure differs: each interval overlaps that of the baseline"
    ]


def test_a_baseline_fails_what_is_worse_beyond_both_intervals_and_nothing_else() -> None:
    (before,) = grouped([run(worst_ms=20.0)], ())
    kept = baseline_of(before)

    def now(worst_ms: float) -> list[str]:
        (group,) = grouped([run(worst_ms=worst_ms)], ())
        return [each.key.name for each in held_against(kept, group).worse]

    seen = summaries(before)
    reach = next(found.high for key, found in seen.items() if key.name == "worst outage" and "failure" in key.where)
    assert now(reach) == []
    assert "worst outage" in now(10 * reach)
    assert now(0.0) == [], "better is no failure"


def test_a_baseline_that_is_a_bound_is_never_exceeded_and_a_bound_may_be_worse(tmp_path: Path) -> None:
    def never(worst_ms: float) -> Compared:
        found = run(worst_ms=worst_ms)
        first = replace(found.metrics.edges[0], flows_unrecovered=1)
        return replace(found, metrics=replace(found.metrics, edges=(first, *found.metrics.edges[1:])))

    def worse(before: Compared, now: Compared) -> list[str]:
        (one,), (other,) = grouped([before], ()), grouped([now], ())
        (tmp_path / "b.json").write_text(written(baseline_of(one)))
        held = held_against(read(tmp_path / "b.json"), other)
        return [line.plain for line in held_lines(held) if line.plain.startswith("worse: ") and "worst" in line.plain]

    assert worse(never(300.0), never(4000.0)) == []
    assert worse(never(300.0), run(worst_ms=4000.0)) == []
    assert "worst outage: >= 300 ms, 20.0 ms before: worse by at least" in worse(run(worst_ms=20.0), never(300.0))[0]


def test_where_less_is_worse_a_fall_fails() -> None:
    (before,) = grouped([run()], ())
    kept = baseline_of(before)
    found = run()
    checks = [
        replace(check, measured=1.0, low=1.0, high=1.0) if check.bound == "at_least" else check
        for check in found.verdict.checks
    ]
    (group,) = grouped([replace(found, verdict=Verdict(found.verdict.outcome, tuple(checks)))], ())
    assert [each.key.name for each in held_against(kept, group).worse] == ["goodput during"]


def _with_limits(found: Compared, texts: tuple[str, str]) -> Compared:
    """The same run, whose expectation has another limit."""
    checks = tuple(replace(check, text=check.text.replace(*texts)) for check in found.verdict.checks)
    return replace(found, verdict=replace(found.verdict, checks=checks))


def test_a_figure_is_the_same_whatever_its_limit() -> None:
    """'not measured' was said of a figure that both drills hold a limit against."""
    other = _with_limits(run(replace(MANIFEST, versions={"hpn": "0.2.0"}), 90.0), ("below 50 ms", "at most 120 ms"))
    groups = grouped([run(), other], ())
    found = {each.key.name: each for each in differences(groups) if not each.key.where}
    assert {each.finding for each in found.values()} == {Finding.NONE_SEEN}
    assert list(found) == ["worst outage at failure", "goodput during", "queue pair deaths"]


def test_two_limits_on_one_figure_are_one_figure() -> None:
    found = run()
    first, *rest = found.verdict.checks
    twice = (first, replace(first, text="worst outage at failure below 1 s, median over repeats"), *rest)
    (group,) = grouped([replace(found, verdict=replace(found.verdict, checks=twice))], ())
    assert {key: each.count for key, each in summaries(group).items() if "failure" in key.name} == {
        Key("", "worst outage at failure", "ms"): 1
    }


def test_a_baseline_that_names_limits_is_held_by_figure() -> None:
    (group,) = grouped([run()], ())
    kept = baseline_of(group)
    named = [replace_name(each) for each in kept.figures]
    held = held_against(kept.model_copy(update={"figures": tuple(named)}), group)
    assert held.missing == ()


def replace_name(kept: baselines.StoredFigure) -> baselines.StoredFigure:
    """The name that an older hpn gave it."""
    return kept if kept.where else kept.model_copy(update={"name": f"{kept.name} at most 7.5 %"})


def test_a_baseline_of_another_experiment_is_refused_and_a_lacking_figure_is_named() -> None:
    (before,) = grouped([run()], ())
    (single,) = grouped([run(SINGLE)], ())
    with pytest.raises(InputError, match=r"the baseline is of fabric 'tiny \(hpn\)', these runs of"):
        held_against(baseline_of(before), single)
    bare = replace(run(), metrics=replace(metrics(), edges=()))
    (without,) = grouped([bare], ())
    missing = held_against(baseline_of(before), without).missing
    assert {key.name for key in missing} >= {"worst outage", "median outage"}


def test_a_baseline_of_another_digest_is_refused_whatever_the_names(tmp_path: Path) -> None:
    (here,) = grouped([replace(run(), identity=HERE)], ())
    (there,) = grouped([replace(run(), identity=THERE)], ())
    (tmp_path / "b.json").write_text(written(baseline_of(here)))
    kept = read(tmp_path / "b.json")
    assert held_against(kept, here).by_name == ()
    words = r"of fabric 'tiny \(hpn\)', these runs of another \(path_control.enabled was false, is true\)$"
    with pytest.raises(InputError, match=words):
        held_against(kept, there)
    (renamed,) = grouped([replace(run(replace(MANIFEST, fabric="mine")), identity=HERE)], ())
    assert held_against(kept, renamed).by_name == ()


def test_a_baseline_without_digests_is_held_by_name_and_that_is_said() -> None:
    (old,) = grouped([run()], ())
    (new,) = grouped([replace(run(), identity=HERE)], ())
    held = held_against(baseline_of(old), new)
    assert held.by_name == (Across.DRILL, Across.FABRIC, Across.SETTINGS)
    assert next(held_lines(held)).plain.startswith("told to be the same by name only: drill, fabric, settings; --save")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"format": "1", "setting": {}, "figures": []}',
        '{"setting": {}, "figures": [{"name": "a", "unit": "ms", "more_is_worse": true, "count": 1, "median": NaN}]}',
        '{"setting": {}, "figures": [{"name": "a", "unit": "ms", "more_is_worse": true, "count": 1, "median": 1e999,'
        ' "low": 0}]}',
        '{"setting": {"</script>": "\\u001b[31m"}, "figures": 3}',
        '{"setting": {"moon": "full"}, "figures": []}',
    ],
)
def test_what_is_no_baseline_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "b.json").write_text(content)
    with pytest.raises(InputError, match=r"is no baseline \(.*\); --save writes one"):
        read(tmp_path / "b.json")


def test_a_baseline_of_a_later_hpn_is_refused_with_both_formats(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text('{"format": 99, "of": "tomorrow"}')
    with pytest.raises(InputError, match=r"b.json has format 99, this hpn reads 1; --save writes one that it reads$"):
        read(tmp_path / "b.json")


def test_a_baseline_that_is_too_large_or_absent_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"--save .* writes one"):
        read(tmp_path / "none.json")
    monkeypatch.setattr(baselines, "_LARGEST_BYTES", 3)
    (tmp_path / "b.json").write_text("{    }")
    with pytest.raises(InputError, match="larger than any baseline"):
        read(tmp_path / "b.json")


def test_the_page_of_a_comparison_answers_first_and_keeps_lower_bounds() -> None:
    base = run(worst_ms=20.0)
    first = base.metrics.edges[0]
    never: DrillMetrics = replace(base.metrics, edges=(replace(first, flows_unrecovered=1), *base.metrics.edges[1:]))
    single = replace(base, manifest=SINGLE, metrics=other_run(never, 549.0))
    groups = grouped([base, single], [Across.FABRIC])
    view = drill_view(groups, differences(groups))
    assert comparison_view([comparison(groups, ())]).title == "tiny (hpn) against single-tor (single-tor)"
    assert view.answer == (
        f"single-tor (single-tor) is worse than tiny (hpn) in {first.edge.label}: worst outage. {ONE_RUN}"
    )
    (chart,) = view.apart
    (strip,) = chart.strips
    assert strip.name == f"{first.edge.label}: worst outage"
    marks = [
        (track.label, track.text, each.is_open, each.at_pct is None) for track in strip.tracks for each in track.placed
    ]
    assert marks == [
        ("tiny (hpn)", "20.0 ms", False, False),
        ("single-tor (single-tor)", ">= 549 ms", True, True),
    ]
    differs, why = view.tables
    ((name, one, other, apart),) = differs.rows
    assert (name, str(one).splitlines()[0], other, apart) == (strip.name, "20.0 ms", ">= 549 ms", ">= +529 ms worse")
    assert why.rows == ((UNEXPLAINED, strip.name),)
    (alike,) = view.more
    assert all(str(row[-1]).startswith(("not seen if", "the same", "ranges overlap")) for row in alike.rows)
    text = page_of(groups, differences(groups))
    assert ">= 549 ms" in html.unescape(text)
    assert len(text) < 150_000


def test_a_page_of_runs_that_are_alike_says_so_and_one_without_figures_too() -> None:
    groups = grouped([run(), run(replace(MANIFEST, versions={"hpn": "0.2.0"}))], ())
    view = drill_view(groups, differences(groups))
    assert re.match(r"Not determined: the ranges of all \d+ figures overlap\.", view.answer)
    assert view.apart == ()
    assert drill_view(groups, ()).answer == "They have no figure in common."


def test_the_page_has_a_chart_for_every_unit() -> None:
    """Only times had bars."""
    other = run(replace(MANIFEST, versions={"hpn": "0.2.0"}), 549.0)
    values = {"%": 40.0, "": 12.0}
    checks = tuple(
        replace(check, measured=values[check.unit], low=values[check.unit], high=values[check.unit])
        if check.measured is not None and check.unit in values
        else check
        for check in other.verdict.checks
    )
    groups = grouped([run(), replace(other, verdict=replace(other.verdict, checks=checks))], ())
    found = differences(groups)
    view = drill_view(groups, found)
    assert [(chart.title, [strip.name for strip in chart.strips]) for chart in view.apart] == [
        ("Times", ["link failure 0: worst outage"]),
        ("Shares, %", ["goodput during"]),
        ("Counts", ["queue pair deaths"]),
    ]
    first, counted = (track.placed[0].at_pct for track in view.apart[2].strips[0].tracks)
    assert (first, counted is not None and 50 < counted <= 100) == (0.0, True)
    assert all(len(chart.ticks) >= 2 for chart in view.apart)


def test_the_page_begins_with_the_settings_that_differ() -> None:
    one, other = replace(run(), identity=HERE), replace(run(SINGLE, 549.0), identity=THERE)
    groups = grouped([one, other], [Across.FABRIC])
    view = drill_view(groups, differences(groups))
    assert view.settings is not None
    assert [*view.settings.rows] == [
        ("fabric", "tiny (hpn)", "single-tor (single-tor)"),
        ("path_control.enabled", "false", "true"),
    ]
    text = page_of(groups, differences(groups))
    assert text.index("path_control.enabled") < text.index("Figures") < text.index("All other figures")


def test_charts_over_time_stand_side_by_side_on_common_axes(tmp_path: Path) -> None:
    """Of each group a run of the same phase, and marks that lead to the runs' pages."""
    folders = []
    for name, fabric in (("a", "tiny"), ("b", "small")):
        folders.append(str(_on(whole_run(tmp_path / name), load_fabric(fabric)).path))
    page = tmp_path / "page.html"
    assert CliRunner().invoke(compare_, [*folders, "--across", "fabric", "--html", str(page)]).exit_code == 0
    told = [
        json.loads(each) for each in re.findall(r'<script type="application/json">(.*?)</script>', page.read_text())
    ]
    assert len(told) == 6
    assert all(
        one[key] == other[key] for one, other in zip(told[::2], told[1::2], strict=True) for key in ("ends", "reach")
    )
    assert 'href="./a"' in page.read_text()


def test_what_names_of_compared_runs_hold_is_text() -> None:
    hostile = "</script><img src=x onerror=alert(1)>\"'&\x1b[31m"
    other = replace(
        MANIFEST, fabric=hostile, engine=hostile, kernel=hostile, profile=hostile, versions={"hpn": hostile}
    )
    groups = grouped([run(), run(other, 500.0)], list(Across))
    text = page_of(groups, differences(groups))
    assert "<img" not in text
    assert "\x1b" not in text
    shown = "".join(as_text(part, 200) for part in comparison_parts([comparison(groups, differences(groups))]))
    assert "\x1b" not in shown


def test_the_command_writes_the_page_or_says_why_not(tmp_path: Path) -> None:
    folders = []
    for name, fabric in (("a", "tiny"), ("b", "small")):
        made = _on(whole_run(tmp_path / name), load_fabric(fabric))
        folders.append(str(made.path))
    page = tmp_path / "page.html"
    asked = CliRunner().invoke(compare_, [*folders, "--html", str(page)])
    assert isinstance(asked.exception, InputError)
    assert "--across fabric" in str(asked.exception)
    assert not page.exists()
    assert CliRunner().invoke(compare_, [*folders, "--across", "fabric", "--html", str(page)]).exit_code == 0
    assert page.read_text().startswith("<!DOCTYPE html>")
    for more, why in ((["--html", str(tmp_path)], ""), (["--html", "x", "--save", "y"], "leave --save")):
        refused = CliRunner().invoke(compare_, [*folders, "--across", "fabric", *more])
        assert refused.exit_code == 2 or why in str(refused.exception)


def _on(run: RunFolder, fabric: Fabric) -> RunFolder:
    """The same of streams alone, as it ran on that fabric."""
    run.write_fabric(fabric)
    run.write_manifest(replace(run.manifest(), client={}, job={}))
    run.write_drill(replace(run.drill(), job={}))
    return run


def test_the_command_tells_two_fabrics_of_one_name_apart(tmp_path: Path) -> None:
    spec = load_fabric("tiny").spec
    off = build(spec.model_copy(update={"path_control": spec.path_control.model_copy(update={"enabled": False})}))
    one, other = _on(whole_run(tmp_path / "a"), off), _on(whole_run(tmp_path / "b"), load_fabric("tiny"))
    folders = [str(one.path), str(other.path)]
    refused = CliRunner().invoke(compare_, folders)
    assert "path_control.enabled: false | true" in str(refused.exception)
    shown = CliRunner().invoke(compare_, [*folders, "--across", "fabric"])
    why = shown.output[shown.output.index("settings that differ") :].splitlines()
    assert why[2].startswith("path_control.enabled: false | true"), shown.output


def test_drills_of_two_designs_are_compared_drill_by_drill_on_one_page(tmp_path: Path) -> None:
    """A design review has several faults on two fabrics: it was refused, or every drill held against the first."""
    for design, fabric in (("one", "tiny"), ("other", "small")):
        for drill in ("link-down", "tor-crash", *(["alone"] if design == "one" else [])):
            made = _on(whole_run(tmp_path / design / drill), load_fabric(fabric))
            made.write_manifest(replace(made.manifest(), drill=drill))
            made.write_drill(replace(made.drill(), name=drill))
    page = tmp_path / "page.html"
    asked = [f"{design}={tmp_path / design}" for design in ("one", "other")]
    shown = CliRunner().invoke(compare_, [*asked, "--across", "fabric", "--html", str(page)])
    assert shown.exit_code == 0, shown.exception
    rows = [line.split()[0] for line in shown.output.split("\n\n")[0].splitlines() if line[:1].isalpha()]
    assert rows[2:] == ["link-down", "tor-crash"], "the answers come first"
    assert shown.output.count("Do they differ?") == shown.output.count("settings that differ") == 1
    assert "alone: only one ran it: nothing to compare" in shown.output
    text = page.read_text()
    assert text.count('href="#drill-2"') == 2, "in the answers, and in the table of costs"
    assert 'id="drill-2"' in text
    head = text[: text.index('id="drill-1"')]
    assert head.count("One run only: the phase of a timer moves times.") <= 1
    rows = re.findall(r"<tr><th scope=\"row\"><a href=\"#drill-\d\">.*?</tr>", head)
    assert [row.count('<span class="mark') for row in rows] == [2, 2], "a drill's row has the cost on both designs"
    assert "Only one group ran alone (one): nothing to compare." in text
    charts = re.findall(r'data-chart="([^"]*)"', text)
    assert len(charts) == len(set(charts)) > 4
    told = json.loads(CliRunner().invoke(compare_, [*asked, "--across", "fabric", "--json"]).output)
    assert {entry["drill"] for entry in told} == {"link-down", "tor-crash"}
    refused = CliRunner().invoke(compare_, [*asked, "--across", "fabric", "--save", str(tmp_path / "kept.json")])
    assert "a baseline is of one experiment" in str(refused.exception)


def test_one_draw_of_random_loss_of_each_design_decides_nothing(tmp_path: Path) -> None:
    """'0 worse, 3 better' was said of one run each, while two draws of one design lay further apart."""
    for design, fabric in (("one", "tiny"), ("other", "small")):
        made = _on(whole_run(tmp_path / design), load_fabric(fabric))
        fault = replace(made.drill().faults[0], parameters={"share": 0.01})
        made.write_drill(replace(made.drill(), faults=(fault,)))
    page = tmp_path / "page.html"
    asked = [str(tmp_path / "one"), str(tmp_path / "other"), "--across", "fabric"]
    told = "Not determined by one run: random loss: one draw; --repeat N tells how far it varies."
    shown = CliRunner().invoke(compare_, [*asked, "--html", str(page)], env={"COLUMNS": "200"})
    assert f"Do they differ? {told}" in shown.output
    assert told in page.read_text()
    one, other = RunFolder(tmp_path / "one"), RunFolder(tmp_path / "other")
    other.write_metrics(other_run(one.metrics(), 9e5))
    shown = CliRunner().invoke(compare_, asked, env={"COLUMNS": "200"})
    assert "figures of one draw each; one run each, measurement error" in shown.output
    assert not re.search(r"worse|better|known causes", shown.output), "the table takes no side either"


@pytest.mark.parametrize(("text", "more_is_worse"), [("flows unrecovered", True), ("goodput after", False)])
def test_more_harm_is_worse_even_where_a_drill_asks_for_at_least_some(text: str, more_is_worse: bool) -> None:
    """Of a folder of an older hpn, whose checks do not tell, and of a baseline that went by the limit alone."""
    only = _of_one_check(text, "at_least", None)
    (key,) = (key for key in values_of(only) if not key.where)
    assert key.more_is_worse is more_is_worse
    (group,) = grouped([only], ())
    old = baseline_of(group)
    old = old.model_copy(
        update={"figures": tuple(f if f.where else f.model_copy(update={"more_is_worse": False}) for f in old.figures)}
    )
    assert not held_against(old, group).missing, "a baseline of an older hpn went by the limit alone"


@pytest.mark.parametrize("told", [True, False])
def test_the_direction_of_a_figure_is_its_metric_s_whatever_its_words_and_limit(told: bool) -> None:
    """'goodput after at most 10 %', which shows harm, was worse where it was more; names were searched for words."""
    for text, bound in (("outage", "at_least"), ("goodput after", "at_most")):
        (key,) = (key for key in values_of(_of_one_check(text, bound, told)) if not key.where)
        assert key.more_is_worse is told


def _of_one_check(text: str, bound: str, more_is_worse: bool | None) -> Compared:
    found = run()
    check = replace(found.verdict.checks[0], text=f"{text} at least 1", bound=bound, more_is_worse=more_is_worse)
    return replace(found, verdict=replace(found.verdict, checks=(check,)))


def test_a_time_that_no_run_could_see_is_its_bound_and_a_count_of_none_is_none() -> None:
    times, deaths = Key("cut failure 0", "worst outage", "ms"), Key("", "queue pair deaths", "")
    assert value_of(Summary(1, 0.0, 0.0, 1.051, open_ended=False, unseen=1.051), times) == "< 1.06 ms"
    assert value_of(Summary(2, 0.0, 0.0, 5.0, open_ended=False), times) == "0.00 ms"
    assert value_of(Summary(1, 0.0, 0.0, 0.0, open_ended=False), deaths) == "0"


def test_a_folder_that_is_named_twice_is_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    one, other = (_on(whole_run(tmp_path / name), load_fabric("tiny")) for name in ("a", "b"))
    (tmp_path / "link").symlink_to(one.path)
    same = [str(one.path), "a", "b/../a", "link", str(other.path)]
    shown = CliRunner().invoke(compare_, same)
    assert shown.exit_code == 0
    row = next(line for line in shown.output.splitlines() if line.startswith("link-down"))
    assert row.split()[1] == "2", shown.output


def _with_phases(detect_ms: float, switch_ms: float) -> Compared:
    """A run whose first fault was noticed after so long, and whose LAG was rewritten so long after that."""
    found = run()
    first, *others = found.metrics.edges
    detect, switch = replace(first.phases.detect, ms=detect_ms), replace(first.phases.switch, ms=switch_ms)
    edge = replace(first, phases=replace(first.phases, detect=detect, switch=switch))
    return replace(found, metrics=replace(found.metrics, edges=(edge, *others)))


def _switch_at_failure(found: Compared) -> Compared:
    """The same run, with a limit on how long the switch takes."""
    ms = found.metrics.edges[0].phases.switch.ms
    limit = at_most("switch at failure below 9 s", ms, 9000, unit="ms")
    return replace(found, verdict=replace(found.verdict, checks=(*found.verdict.checks, limit)))


def test_a_switch_that_counts_from_a_detection_that_moved_is_neither_better_nor_worse() -> None:
    """A red gate said 'better: switch: 0.01 ms, 2567 ms before': detection came 2.6 s later."""
    early, late = _switch_at_failure(_with_phases(125.0, 2567.0)), _switch_at_failure(_with_phases(2692.0, 0.01))
    for one, other in ((early, late), (late, early)):
        (before,), (now,) = grouped([one], ()), grouped([other], ())
        held = held_against(baseline_of(before), now)
        assert {figure_of(each.key): each.is_worse for each in held.differences} == {"detect": other is late}
        newer = replace(other, manifest=replace(MANIFEST, versions={"hpn": "0.2.0"}))
        groups = grouped([one, one, newer, newer], ())
        found = {name_of(each.key): each.finding for each in differences(groups)}
        moved = {name for name, finding in found.items() if finding is Finding.START_MOVED}
        assert moved == {"switch at failure", f"{one.metrics.edges[0].edge.label}: switch"}
        assert not moved & {name_of(each.key) for each in science(groups)}
        told = drill_view(groups, differences(groups)).answer
        assert "2 more cannot be compared: they count from detect" in told


def test_a_switch_that_alone_takes_longer_is_worse() -> None:
    (before,), (now,) = (grouped([_with_phases(125.0, ms)], ()) for ms in (2.0, 900.0))
    assert [each.key.name for each in held_against(baseline_of(before), now).worse] == ["switch"]


def test_a_line_of_a_gate_says_of_how_many_runs_and_counts_per_cent_in_points() -> None:
    """'worse by at least 18.00 %' of a figure in per cent may be read as a share of it."""

    def line(before: int, now: int, unit: str = "%") -> str:
        base, other = Summary(before, 60.0, 59.75, 61.0, False), Summary(now, 40.0, 39.0, 41.25, False)
        key = Key("", "iterations during at failure", unit, more_is_worse=False)
        (told,) = figure_lines([Difference(key, "", base, other, Finding.LESS)])
        return told.removeprefix("worse: iterations during at failure: ")

    assert line(5, 5) == "40 %, 60 % before (median of 5): worse by at least 18.50 points"
    assert line(1, 1) == "40 %, 60 % before: worse by at least 18.50 points"
    assert line(1, 5) == "40 % (median of 5), 60 % before (one run): worse by at least 18.50 points"
    assert line(5, 4, "ms") == "40.0 ms (median of 4), 60.0 ms before (median of 5): worse by at least 18.5 ms"


def test_the_median_of_runs_that_saw_nothing_is_below_the_median_of_their_bounds() -> None:
    """'< 76.9 ms' was the largest bound; 8 of 10 runs had at most 4.66 ms."""
    found = _summary([Value(0.0, 0.0, high) for high in (4.2, 4.66, 76.9)])
    assert value_of(found, Key("", "worst outage", "ms")) == "< 4.66 ms"
    assert found.middle(Key("", "worst outage", "ms")) == (0.0, 4.66)
    assert interval_of(found, Key("", "worst outage", "ms")) == "0.0 to 76.9 ms"
