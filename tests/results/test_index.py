"""The index of run folders: what it holds is what they say, and nobody's question changes it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Group

from hpn.commands.results import results
from hpn.results.index import prune
from hpn.results.index.experiments import set_apart
from hpn.results.index.queries import RunFilter, counts, runs, trends
from hpn.results.index.scan import run_folders, stamp_of
from hpn.results.index.store import Index, opened
from hpn.results.judge.verdict import Check, Outcome, at_least, at_most, decide
from hpn.results.run.claim import claimed
from hpn.results.run.folder import RunFolder, create
from hpn.results.text.index import runs_table, trend_parts
from hpn.testbed.errors import InputError
from tests.results.sample import MANIFEST, metrics, verdict
from tests.results.shown import as_text


def add(root: Path, name: str, outage_ms: int = 20, *reasons: str, **changes: str) -> Path:
    folder = create(root / name)
    folder.write_manifest(replace(MANIFEST, **changes))  # type: ignore[arg-type]  # a test names fields
    folder.write_verdict(verdict(metrics(outage_ms), *reasons))
    return folder.path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three runs: a pass, a fail a day later, and an inconclusive one of another drill."""
    found = tmp_path / "runs"
    add(found, "one/link-down")
    add(found, "two/link-down", 80, started_at="2025-01-03T03:04:05+00:00")
    virtual = {"engine": "uml-virtual-time", "wall_begin": MANIFEST.started_at}
    add(found, "two/tor-crash", 80, "the machine was full", drill="tor-crash", **virtual)
    return found


@pytest.fixture
def index(root: Path, tmp_path: Path) -> Iterator[Index]:
    with opened(tmp_path / "index.sqlite", root) as made:
        made.update()
        yield made


def test_runs_are_listed_the_newest_first_with_why_they_say_nothing(index: Index) -> None:
    found = runs(index, RunFilter(), 10)
    assert [(run.drill, run.outcome, run.why) for run in found] == [
        ("link-down", "fail", ""),
        ("link-down", "pass", ""),
        ("tor-crash", "inconclusive", "the machine was full"),
    ]
    assert len(runs(index, RunFilter(), 1)) == 1


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        (RunFilter(drill="link-down"), 2),
        (RunFilter(outcome="fail"), 1),
        (RunFilter(engine="host", outcome="pass"), 1),
        (RunFilter(since="2025-01-03"), 1),
        (RunFilter(since="2025-01-02T04:04:05+01:00"), 3),
        (RunFilter(fabric="' or 1 --"), 0),
    ],
)
def test_lists_are_filtered(index: Index, wanted: RunFilter, count: int) -> None:
    assert len(runs(index, wanted, 10)) == count
    assert sum(count for *_, count in counts(index, wanted)) == count


def test_a_date_that_is_none_is_refused(index: Index) -> None:
    with pytest.raises(InputError, match="'yesterday' is no date; write one as 2026-11-22"):
        runs(index, RunFilter(since="yesterday"), 1)


def test_only_what_changed_is_read_again(root: Path, index: Index) -> None:
    assert (index.update().read, index.update().gone) == (0, 0)
    again = add(root, "one/link-down", 80)
    os.utime(again / "verdict.json", ns=(1, 1))
    assert index.update().read == 1
    assert [run.outcome for run in runs(index, RunFilter(drill="link-down"), 10)] == ["fail", "fail"]
    (again / "manifest.json").unlink()
    changes = index.update()
    assert (changes.runs, changes.read, changes.gone) == (2, 0, 1)
    assert index.ask("select count(*) from figures where run not in (select id from runs)", 1)[1] == [(0,)]


def test_what_is_damaged_is_there_with_its_reason_and_links_are_not_followed(root: Path, tmp_path: Path) -> None:
    for name, content in (("half", '{"drill": "a'), ("huge", '{"drill": 1e999}'), ("nan", '{"duration_s": NaN}')):
        (root / name).mkdir()
        (root / name / "manifest.json").write_text(content)
    (root / "loop").symlink_to(root)
    (root / "linked").mkdir()
    (root / "linked" / "manifest.json").symlink_to(root / "one" / "link-down" / "manifest.json")
    with opened(tmp_path / "index.sqlite", root) as index:
        assert index.update().runs == 6
        damaged = runs(index, RunFilter(outcome="none"), 10)
    assert sorted(Path(run.path).name for run in damaged) == ["half", "huge", "nan"]
    assert all(run.why.startswith("manifest.json is damaged or of another version (") for run in damaged)


def test_a_trend_is_in_order_of_time_and_tells_limits_and_intervals(index: Index) -> None:
    found = {trend.expectation: trend.points for trend in trends(index, RunFilter(drill="link-down"), "", 10)}
    first, second = found["worst outage at failure"]
    assert first.measured == pytest.approx(20, abs=2)
    assert second.measured == pytest.approx(80, abs=2)
    assert (first.outcome, second.outcome, first.limit, first.unit) == ("pass", "fail", 50, "ms")
    assert "state restored" not in found, "it has no figure"
    with pytest.raises(InputError, match="no run of link-down has a figure with 'nothing such'"):
        trends(index, RunFilter(drill="link-down"), "nothing such", 10)


def limited(root: Path, name: str, day: int, *checks: Check) -> None:
    path = add(root, name, drill="cut", started_at=f"2026-11-0{day}T12:00:00+00:00")
    RunFolder(path).write_verdict(decide(checks))


def test_a_changed_limit_goes_on_with_the_series(root: Path, tmp_path: Path) -> None:
    """The day that a limit was tightened began a new series of one run."""
    for day, limit in ((1, 50), (2, 30)):
        limited(root, f"cut/{day}", day, at_most(f"worst outage below {limit} ms", 20.0 + day, limit, unit="ms"))
    with opened(tmp_path / "other.sqlite", root) as index:
        index.update()
        (trend,) = trends(index, RunFilter(drill="cut"), "worst outage", 10)
        (tight,) = trends(index, RunFilter(drill="cut"), "below 30 ms", 10)
    assert (trend.expectation, [point.limit for point in trend.points]) == ("worst outage", [50, 30])
    assert len(tight.points) == 1
    title, said, *_ = map(str, trend_parts(trend, 80))
    assert title == "worst outage"
    assert said == "  2 runs, median 21.5 ms, 21.0 to 22.0 ms; limit: at most 30.0 to 50.0 ms"


def test_of_several_limits_on_one_figure_a_run_tells_the_one_it_fares_worst_by(root: Path, tmp_path: Path) -> None:
    """Upper limits are one series, lower ones another, and a run is in each once."""
    upper = [at_most(f"goodput at most {limit} %", 60.0, limit, unit="%") for limit in (90, 50, 70)]
    lower = [at_least(f"goodput at least {limit} %", 60.0, limit, unit="%") for limit in (10, 55)]
    limited(root, "cut", 1, *upper, *lower)
    with opened(tmp_path / "other.sqlite", root) as index:
        index.update()
        above, below = trends(index, RunFilter(drill="cut"), "", 10)
    assert (above.is_upper, [(each.limit, each.outcome) for each in above.points]) == (True, [(50, "fail")])
    assert (below.is_upper, [(each.limit, each.outcome) for each in below.points]) == (False, [(55, "pass")])
    assert str(trend_parts(below, 80)[1]).endswith("; limit: at least 55 %")
    assert (above.more_is_worse, below.more_is_worse) == (False, False), "whatever the limits"


def test_runs_of_one_name_on_two_fabrics_are_two_series(root: Path, tmp_path: Path) -> None:
    """They were one line, whose median was of neither."""
    digests = {"fabric": "f1", "drill": "d", "settings": "s"}
    for at, changes in enumerate(({}, {}, {"fabric": "f2"})):
        run = RunFolder(add(root, f"new/{at}", 10, drill="cut"))
        run.write_manifest(replace(run.manifest(), digests=digests | changes))
    add(root, "new/old", drill="cut")
    with opened(tmp_path / "other.sqlite", root) as index:
        index.update()
        found = set_apart(trends(index, RunFilter(drill="cut"), "worst outage", 10))
        alone = set_apart(trends(index, RunFilter(drill="link-down"), "worst outage", 10))
    assert sorted(len(trend.points) for trend in found) == [1, 1, 2]
    words = [str(part) for trend in found for part in trend_parts(trend, 80)[1:2]]
    assert sum(line.startswith("  experiment ") for line in words) == 2
    assert "  fabric tiny, by name: these run folders lack digests" in words
    assert [trend.apart for trend in alone] == [""]


def test_a_run_in_virtual_time_has_the_date_of_the_machine(root: Path, tmp_path: Path) -> None:
    """Its own clock begins with 2026, so that it was older than others or newer."""
    virtual = {"drill": "cut", "engine": "uml-virtual-time", "started_at": "2026-01-01T00:00:01+00:00"}
    for day in (1, 3, 2):
        add(root, f"virtual/{day}", 20, **virtual, wall_begin=f"2026-11-0{day}T12:00:00.000+01:00")
    add(root, "virtual/old", 20, **virtual)
    with opened(tmp_path / "other.sqlite", root) as index:
        index.update()
        found = runs(index, RunFilter(drill="cut"), 10)
        since = runs(index, RunFilter(drill="cut", since="2026-11-02"), 10)
        (trend,) = trends(index, RunFilter(drill="cut"), "worst outage", 10)
        old = prune.old_runs(index, "cut", 1)
    assert [Path(run.path).name for run in found] == ["3", "2", "1", "old"]
    assert [Path(run.path).name for run in since] == ["3", "2"]
    assert [run.started_at[:10] for run in found] == ["2026-11-03", "2026-11-02", "2026-11-01", ""]
    assert [point.started_at[:10] for point in trend.points] == ["", "2026-11-01", "2026-11-02", "2026-11-03"]
    assert [run.path.name for run in old] == ["2", "1", "old"]


def test_figures_of_a_run_that_cannot_be_trusted_are_in_no_median(index: Index) -> None:
    (trend,) = trends(index, RunFilter(drill="tor-crash"), "worst outage", 10)
    lines = as_text(Group(*trend_parts(trend, 80)), 80).splitlines()
    assert lines[1].startswith("  1 run (1 that cannot be trusted left out), median")
    assert ["started", "measured", "the", "run"] in [line.split() for line in lines[2:4]]
    assert lines[-1].endswith("not trusted")


@pytest.mark.parametrize("width", [60, 80, 160])
def test_a_trend_fits_its_terminal(index: Index, width: int) -> None:
    for trend in trends(index, RunFilter(drill="link-down"), "", 10):
        *_, shown = trend_parts(trend, width)
        lines = as_text(shown, width).splitlines()
        assert len(lines) == 1 + len(trend.points), "a row for each run, in one line"
        assert max(map(len, lines)) <= width


def test_somebody_s_query_reads_and_nothing_else(index: Index, tmp_path: Path) -> None:
    columns, rows = index.ask("select drill, count(*) n from runs group by 1 order by 1", 10)
    assert (columns, rows) == (["drill", "n"], [("link-down", 2), ("tor-crash", 1)])
    for query in (
        "delete from runs",
        "update runs set outcome = 'pass'",
        f"attach '{tmp_path}/other' as other",
        "pragma user_version = 9",
        "select 1; drop table runs",
        "create table mine (x)",
        "select writefile('x', 'y')",
        "nonsense",
        "",
    ):
        with pytest.raises(InputError, match="the index"):
            index.ask(query, 10)
    assert len(runs(index, RunFilter(), 10)) == 3
    assert not (tmp_path / "other").exists()


def test_a_query_without_end_is_ended(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hpn.results.index.store._MOST_STEPS", 10)
    with pytest.raises(InputError, match="interrupted"):
        index.ask("with recursive a(x) as (select 1 union all select x + 1 from a) select count(*) from a", 1)


def test_a_damaged_index_is_made_again(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "index.sqlite"
    file.write_bytes(b"no database at all, " * 100)
    with opened(file, root) as index:
        assert index.update().read == 3
    with sqlite3.connect(file) as other:
        other.execute("pragma user_version = 99")
    with opened(file, root) as index:
        assert index.update().read == 3


def test_an_index_that_cannot_be_kept_answers_and_says_so(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with opened(tmp_path / "file" / "a.sqlite", root) as index:
        changes = index.update()
        assert len(runs(index, RunFilter(), 10)) == 3
    assert (changes.read, changes.unkept) == (3, "File exists")


def test_run_folders_are_found_in_order_and_not_below_each_other(root: Path) -> None:
    inner = root / "one" / "link-down" / "records"
    inner.mkdir()
    (inner / "manifest.json").write_text("{}")
    found = [str(Path(each.path).relative_to(root)) for each in run_folders(root)]
    assert found == ["one/link-down", "two/link-down", "two/tor-crash"]


def test_pruning_keeps_the_newest_of_each_drill_and_engine(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPN_CACHE_DIR", str(tmp_path / "cache"))
    said = CliRunner().invoke(results, ["prune", "--runs", str(root), "--keep", "1"])
    assert said.output.splitlines() == [f"would delete {root}/one/link-down", "1 run folders; --yes deletes them"]
    assert (root / "one" / "link-down").exists()
    CliRunner().invoke(results, ["prune", "--runs", str(root), "--keep", "1", "--yes"])
    assert not (root / "one" / "link-down").exists()
    assert (root / "two" / "link-down").exists()
    assert (root / "two" / "tor-crash").exists()


def test_pruning_keeps_the_newest_of_each_experiment(root: Path, tmp_path: Path) -> None:
    for at, fabric in enumerate(("f1", "f1", "f2")):
        run = RunFolder(add(root, f"new/{at}", drill="cut", started_at=f"2025-01-0{at + 1}T00:00:00+00:00"))
        run.write_manifest(replace(run.manifest(), digests={"fabric": fabric, "drill": "d", "settings": "s"}))
    with opened(tmp_path / "other.sqlite", root) as index:
        index.update()
        assert [old.path.name for old in prune.old_runs(index, "cut", 1)] == ["0"]


def test_a_run_that_is_under_way_is_not_deleted_nor_one_that_began_in_an_old_one_s_folder(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verdict comes last and goes first, so a folder without one is a run's that writes it right now."""
    monkeypatch.setenv("HPN_CACHE_DIR", str(tmp_path / "cache"))
    create(root / "now").write_manifest(MANIFEST)

    def meanwhile(folder: Path) -> object:
        if folder.parent.name == "one":
            create(folder).write_manifest(MANIFEST)
        return stamp_of(folder)

    monkeypatch.setattr("hpn.results.index.prune.stamp_of", meanwhile)
    said = CliRunner().invoke(results, ["prune", "--runs", str(root), "--keep", "0", "--yes"])
    lines = said.output.splitlines()
    assert f"kept, for it has changed or is in use: {root}/one/link-down" in lines
    assert lines[-1] == "2 run folders"
    assert sorted(path.parent.name for path in root.rglob("manifest.json")) == ["link-down", "now"]
    assert (root / "one" / "link-down" / "manifest.json").exists()
    assert not list(root.rglob(".*")), "nothing is left of those deleted"


@pytest.mark.parametrize("claimed_folder", ["two", "two/link-down"])
def test_a_run_that_is_not_whole_yet_or_whose_command_makes_more_of_them_is_not_deleted(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claimed_folder: str
) -> None:
    monkeypatch.setenv("HPN_CACHE_DIR", str(tmp_path / "cache"))
    with claimed(root / claimed_folder):
        said = CliRunner().invoke(results, ["prune", "--runs", str(root), "--keep", "0", "--yes"])
    assert f"kept, for it has changed or is in use: {root}/two/link-down" in said.output.splitlines()
    assert (root / "two" / "link-down" / "verdict.json").exists()
    assert not (root / "one" / "link-down").exists()


def test_what_ends_while_it_deletes_leaves_no_half_a_run(
    root: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(_: Path) -> None:
        raise OSError(5, "Input/output error")

    old = prune.old_runs(index, "link-down", 1)
    monkeypatch.setattr("hpn.results.index.prune.shutil.rmtree", ends)
    with pytest.raises(InputError, match="Input/output error; delete it by hand"):
        prune.delete(old[0])
    assert [found.path for found in run_folders(root)] == [f"{root}/two/link-down", f"{root}/two/tor-crash"]


@pytest.mark.parametrize("text", ["</script>", "'; drop table runs; --", "\x1b[2J\n\u202e", "h" * 500_000, "%s{0}"])
def test_a_text_of_a_run_is_one_in_the_index_too(root: Path, tmp_path: Path, text: str) -> None:
    add(root, "hostile", 20, text, drill=text, fabric=text, engine=text, kernel=text)
    with opened(tmp_path / "other.sqlite", root) as index:
        assert index.update().runs == 4
        (found,) = runs(index, RunFilter(drill=text[:1000]), 10)
        assert found.fabric == found.kernel == text[:1000]
        shown = as_text(runs_table([replace(found, path="x")]), 160)
        assert all(line.isprintable() for line in shown.splitlines())
        assert len(shown) < 20_000
        assert index.ask("select count(*) from runs", 1)[1] == [(4,)]


def test_a_folder_of_another_format_is_there_with_its_reason(root: Path, tmp_path: Path) -> None:
    (root / "new").mkdir()
    (root / "new" / "manifest.json").write_text('{"format": 99}')
    with opened(tmp_path / "other.sqlite", root) as index:
        index.update()
        (found,) = runs(index, RunFilter(outcome="none"), 10)
    assert found.why == "manifest.json has format 99, this hpn reads 1 and 2; use the hpn that made the run"


def test_duckdb_counts_the_same_in_the_folders_json(root: Path, index: Index) -> None:
    duckdb = pytest.importorskip("duckdb", reason="needs DuckDB: pip install duckdb")
    for at in range(7):
        add(root, f"more/{at}", 10 * at, *["the machine was full"] * (at % 3 == 0), drill=f"drill-{at % 2}")
    index.update()
    judged = duckdb.sql(f"""
        with manifests as (select *, parse_path(filename)[:-2] folder
                           from read_json('{root}/**/manifest.json', filename = true, union_by_name = true)),
             verdicts as (select *, parse_path(filename)[:-2] folder
                          from read_json('{root}/**/verdict.json', filename = true, union_by_name = true))
        select drill, verdicts.outcome, count(*) from manifests join verdicts using (folder) group by all order by all
    """).fetchall()
    assert tuple(judged) == counts(index, RunFilter())
    figures = duckdb.sql(f"""
        select check_.text, count(*), round(sum(check_.measured), 3) from
        (select unnest(checks) check_ from read_json('{root}/**/verdict.json')) group by 1 order by 1
    """).fetchall()
    sql = "select expectation, count(*), round(sum(measured), 3) from figures group by 1 order by 1"
    assert figures == index.ask(sql, 100)[1]


def test_every_outcome_is_a_column(index: Index) -> None:
    assert {outcome for _, outcome, _ in counts(index, RunFilter())} <= {*map(str, Outcome), "none"}
