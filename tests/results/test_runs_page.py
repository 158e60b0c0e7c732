"""Pages over many runs: what they come to, a line for each run that leads to its page, figures and their limits."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest
from click.testing import CliRunner
from pydantic import TypeAdapter

from hpn.commands.report import report
from hpn.results.comparison.gate import Gate
from hpn.results.export.ci_runs import CiRun, grouped
from hpn.results.judge.verdict import Check, Outcome, at_most, held
from hpn.results.page.listing import Mark, href
from hpn.results.page.overview import Head
from hpn.results.page.runs_page import many_view
from hpn.results.page.strip import Figure, Track, charts, reading_of
from hpn.results.page.suite import Gated, Suite, write_suite
from hpn.results.run.drill import AskedDrill
from hpn.results.run.files import dumped, write
from hpn.results.run.folder import RunFolder, create
from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.load import load_fabric
from tests.results.hostile import NASTY
from tests.results.sample import MANIFEST, metrics, verdict
from tests.results.test_page import HOSTILE, seen
from tests.results.whole import DRILL

PASS, FAIL = verdict(metrics()), verdict(metrics(80))
UNTRUSTED = verdict(metrics(), "the machine was full")


def made(folder: Path, judged: object = PASS, **changes: object) -> Path:
    run = create(folder)
    run.write_manifest(replace(MANIFEST, **changes))  # type: ignore[arg-type]  # a test names fields
    run.write_verdict(judged)  # type: ignore[arg-type]  # likewise
    return folder


def repeats(out: Path, *judged: object) -> Path:
    """A folder as ``hpn drill run --repeat`` leaves it."""
    for number, each in enumerate(judged, 1):
        made(out / f"link-down-{number}", each, repeat=number, phase=number)
    (out / "repeats.json").write_text("[]")
    return out


def written(*arguments: object) -> str:
    """The page that ``hpn report`` writes."""
    shown = CliRunner().invoke(report, [*map(str, arguments)])
    assert shown.exit_code == 0, (shown.output, shown.exception)
    return Path(shown.output.splitlines()[-1]).read_text()


def test_repeats_are_judged_as_one_and_lead_to_their_runs(tmp_path: Path) -> None:
    out = repeats(tmp_path / "out", PASS, FAIL, PASS)
    (out / "link-down-1" / "report.html").write_text("")
    text = written(out)
    assert "<title>FAIL: link-down on host over 3 repeats</title>" in text
    assert "No: 1 of 4 expectations were broken. 3 repeats: 2 pass, 1 fail." in text
    assert "Unstable: some runs pass and some fail." in text
    links = [of["href"] for tag, of in seen(text).tags if tag == "a" and "tabindex" not in of]
    assert links == ["./link-down-1/report.html", "./link-down-2", "./link-down-3"]
    assert f"2 of these runs have no page of their own and lead to their folders: hpn report {out} --each" in text


def test_each_writes_the_pages_that_runs_lack_and_no_other(tmp_path: Path) -> None:
    out = repeats(tmp_path / "out", PASS, FAIL)
    (out / "link-down-1" / "report.html").write_text("kept")
    text = written(out, "--each")
    assert (out / "link-down-1" / "report.html").read_text() == "kept"
    assert "FAIL" in (out / "link-down-2" / "report.html").read_text()
    assert "./link-down-2/report.html" in text
    assert "--each" not in text


def test_a_page_elsewhere_leads_to_the_runs_from_there(tmp_path: Path) -> None:
    out = repeats(tmp_path / "out", PASS, FAIL)
    (tmp_path / "deep").mkdir()
    assert 'href="./../out/link-down-1"' in written(out, "--out", tmp_path / "deep" / "page.html")


def test_what_its_faults_cost_is_said_of_each_pass_and_of_the_worst_run_of_each_drill(tmp_path: Path) -> None:
    cheap, dear = (replace(each, cost=f"A cut: {what}.") for each, what in ((PASS, "none died"), (FAIL, "8 died")))
    view = many_view(repeats(tmp_path / "out", cheap, dear, cheap), tmp_path / "report.html")
    assert [row[2] for row in view.runs.rows][::2] == ["A cut: none died."] * 2
    (section,) = view.sections
    assert section.lines == ("link-down #2: A cut: 8 died.",)
    one = many_view(repeats(tmp_path / "one", cheap), tmp_path / "report.html")
    assert one.sections[0].lines == ("A cut: none died.",)


def test_one_drill_on_several_fabrics_is_told_apart_by_their_names(tmp_path: Path) -> None:
    for at, fabric in enumerate(("review", "review-single-tor")):
        made(tmp_path / str(at), PASS, fabric=fabric, digests={"fabric": f"{at:016x}", "drill": "1" * 16})
    view = many_view(tmp_path, tmp_path / "report.html")
    titles = sorted(section.title for section in view.sections)
    assert titles == ["link-down on host: review", "link-down on host: review-single-tor"]


def test_an_earlier_try_is_listed_and_not_judged(tmp_path: Path) -> None:
    out = repeats(tmp_path / "out", PASS, PASS)
    made(out / "link-down-1.doubtful-1", UNTRUSTED, repeat=1)
    view = many_view(out, out / "report.html")
    assert (view.head.outcome, len(view.runs.rows)) == ("pass", 3)
    assert view.head.answer.endswith("2 repeats: 2 pass.")


def test_a_bound_is_a_bar_and_never_a_dot() -> None:
    """What was not seen, what had not ended and what never came back: of none a value is known."""
    unseen = at_most("outage below 50 ms", 0.0, 50, unit="ms", low=0.0, high=1.2)
    lasting = held(replace(unseen, measured=4000.0, low=4000.0, high=None, open_ended=True))
    never = held(replace(unseen, measured=None, low=None, high=None, never=True))
    seen_ = at_most("outage below 50 ms", 20.0, 50, unit="ms", low=19.0, high=21.0)
    none = Check("outage below 50 ms", Outcome.INCONCLUSIVE, limit=50.0, unit="ms", bound="below")
    found = [reading_of(check, "#1", "") for check in (unseen, lasting, never, seen_, none)]
    assert found[-1] is None
    readings = [each for each in found if each is not None]
    assert [(each.measured, each.low, each.high) for each in readings] == [
        (None, 0.0, 1.2),
        (None, 4000.0, math.inf),
        (None, 0.0, math.inf),
        (20.0, 19.0, 21.0),
    ]
    (chart,) = charts([Figure("outage", "ms", [Track("", "", readings)], 50.0)])
    (track,) = chart.strips[0].tracks
    assert [each.at_pct is None for each in track.placed] == [True, True, True, False]
    assert [each.is_open for each in track.placed] == [False, True, True, False]
    assert track.placed[1].low_pct + track.placed[1].width_pct == 100
    assert chart.strips[0].beyond[0] == chart.strips[0].limit_pct


def test_the_side_that_breaks_a_limit_is_the_shaded_one() -> None:
    share = reading_of(Check("a", Outcome.PASS, 97.0, 95.0, unit="%", bound="at_least"), "", "")
    assert share is not None
    (chart,) = charts([Figure("goodput", "%", [Track("", "", [share])], 95.0, is_upper=False)])
    assert chart.strips[0].beyond == (0.0, chart.strips[0].limit_pct)


def drilled(folder: Path, drill: AskedDrill, fabric: str, **changes: object) -> Path:
    run = RunFolder(made(folder, drill=drill.name, **changes))
    run.write_drill(drill)
    run.write_fabric(load_fabric(fabric))
    return folder


def test_one_picture_has_what_all_drills_broke_on_the_fabric_that_they_share(tmp_path: Path) -> None:
    (fault,) = DRILL.faults[:1]
    for name, target in (("cut", "p0.s0.h0.r0.0"), ("crash", "p0.s0.t0.1")):
        drilled(tmp_path / name, replace(DRILL, name=name, faults=(replace(fault, target=target),)), "tiny")
    text = written(tmp_path)
    assert f"p0.s0.h0.r0.0, cut: {fault.kind}" in text
    assert f"p0.s0.t0.1, crash: {fault.kind}" in text
    drilled(tmp_path / "other", replace(DRILL, name="other"), "small")
    assert "<svg" not in written(tmp_path)


def test_a_damaged_fabric_leaves_the_picture_out_and_not_the_page(tmp_path: Path) -> None:
    (drilled(tmp_path / "cut", DRILL, "tiny") / "fabric.json").write_text("{")
    text = written(tmp_path)
    assert "<svg" not in text
    assert "1 run of 1 drill" in text


def test_too_little_memory_for_the_fabric_leaves_the_picture_out_and_not_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short_of_memory(path: Path) -> bytes:
        raise MachineError(f"{path} is larger than memory allows")

    drilled(tmp_path / "cut", DRILL, "tiny")
    assert "<svg" in written(tmp_path)
    monkeypatch.setattr("hpn.results.page.picture.content", short_of_memory)
    text = written(tmp_path)
    assert "<svg" not in text
    assert "1 run of 1 drill" in text


def test_a_stranger_s_name_in_the_picture_is_text(tmp_path: Path) -> None:
    drilled(tmp_path / "cut", replace(DRILL, name="a<b>[c]&amp;"), "tiny")
    picture = written(tmp_path).partition("<svg")[2].partition("</svg>")[0]
    assert "a&lt;b&gt;[c]&amp;amp;" in picture
    assert "<b>" not in picture


def test_other_runs_are_listed_the_newest_first_and_can_be_narrowed_without_a_script(tmp_path: Path) -> None:
    made(tmp_path / "a", PASS, wall_begin="2025-01-02T03:04:05+00:00")
    made(tmp_path / "b", FAIL, wall_begin="2025-01-03T02:04:05+00:00")
    made(tmp_path / "c", PASS, drill="tor-crash", wall_begin="2025-01-03T03:04:05+02:00")
    text = written(tmp_path)
    assert (
        "3 runs of 2 drills: 2 pass, 1 fail. Each drill, fabric and engine apart, the newest run passes for 1 of 2."
        in text
    )
    assert "<li>link-down on host, the newest: worst outage at failure below 50 ms: measured" in text
    assert text.index("./b") < text.index("./c") < text.index("./a")
    rows = [of.get("class") for tag, of in seen(text).tags if tag == "tr" and of.get("class")]
    assert rows == ["fail d0", "pass d1", "pass d0"]
    assert ".runs:has(#f1-fail:checked) tbody tr:not(.fail){display:none}" in text
    assert "<script" not in text


def test_a_clock_that_nobody_waits_by_is_named(tmp_path: Path) -> None:
    out = repeats(tmp_path / "out", PASS)
    made(out / "b", PASS, engine="uml-virtual-time", duration_s=8.9)
    view = many_view(out, out / "report.html")
    assert sorted(str(row[view.runs.columns.index(">took")]) for row in view.runs.rows)[-1] == "8.9 s (virtual)"


def test_what_all_runs_share_is_told_once(tmp_path: Path) -> None:
    view = many_view(repeats(tmp_path / "out", PASS, FAIL), tmp_path / "out" / "report.html")
    assert view.runs.columns == ("run", "outcome", "what it says", "phase")
    assert dict(view.common)["engine"] == "host"


def _suite_run(drill: str, folder: str, error: str = "") -> CiRun:
    return CiRun(drill, "host", 1, 1, folder, 1.0, None, error, 3 if error else 0)


def test_a_suite_tells_what_could_not_be_made(tmp_path: Path) -> None:
    made(tmp_path / "link-down.host" / "link-down", PASS)
    runs = [_suite_run("tor-crash", "tor-crash.host", "no bird"), _suite_run("link-down", "link-down.host/link-down")]
    write_suite(tmp_path, "nightly", grouped(runs))
    view = many_view(tmp_path, tmp_path / "report.html")
    assert (view.head.title, view.head.outcome) == ("nightly", "error")
    assert view.head.answer == "1 drill: 1 pass. 1 run could not be made or read."
    assert view.head.broken == ["tor-crash on host: no bird"]


def test_a_suite_whose_figures_are_worse_than_kept_fails_though_limits_are_kept(tmp_path: Path) -> None:
    made(tmp_path / "link-down.host" / "link-down", PASS)
    runs = grouped([_suite_run("link-down", "link-down.host/link-down")])
    worse = Gate("link-down.host.json", said="it is of another fabric", is_refused=True)
    write_suite(tmp_path, "nightly", [replace(group, gate=worse) for group in runs])
    head = many_view(tmp_path, tmp_path / "report.html").head
    assert (head.outcome, head.answer.startswith("No. 1 drill did not hold against the baseline.")) == ("refused", True)
    (part,) = head.parts
    assert (part.title, part.lines) == ("link-down on host against its baseline", ("it is of another fabric",))


def test_a_drill_that_is_worse_than_its_baseline_is_no_green_row(tmp_path: Path) -> None:
    gate = Gated("link-down on host", "fail", ("worse: detect: 9 ms",), reason="worse: detect: 9 ms; 3 more worse")
    for drill in ("link-down", "tor-crash"):
        made(tmp_path / f"{drill}.host" / drill, PASS, drill=drill)
    write(tmp_path / "suite.json", dumped(TypeAdapter(Suite), Suite("nightly", (), (gate,))))
    view = many_view(tmp_path, tmp_path / "report.html")
    (drills,) = view.overview
    why = "against its baseline worse: detect: 9 ms; 3 more worse"
    assert [(row[1], row[4]) for row in drills.rows] == [(Mark("fail"), why), (Mark("pass"), "-")]
    rows = [(row[1], row[2]) for row in view.runs.rows]
    assert rows[0] == (Mark("fail"), why)
    assert [each.text for each in view.filters[0].choices] == ["all (2)", "fail (1)", "pass (1)"]


def test_a_gate_s_page_tells_the_changed_setting_first_folds_what_is_better_and_cuts_nothing(tmp_path: Path) -> None:
    made(tmp_path / "link-down.host" / "link-down", PASS)
    worse, better = tuple(f"worse: {at}" for at in range(20)), tuple(f"better: {at}" for at in range(5))
    gate = Gated("link-down on host", "fail", worse, "bgp.keepalive_s: 3 | 2", better, "worse: 0")
    write(tmp_path / "suite.json", dumped(TypeAdapter(Suite), Suite("nightly", (), (gate,))))
    (part,) = many_view(tmp_path, tmp_path / "report.html").head.parts
    assert part.lines == ("bgp.keepalive_s: 3 | 2", *worse)
    assert (part.summary, part.folded) == ("5 better", better)
    text = written(tmp_path)
    assert (
        text.index("keepalive_s") < text.index("worse: 19") < text.index("<summary>5 better") < text.index("better: 4")
    )
    assert text.count("link-down on host against its baseline") == 1


def test_what_failed_besides_the_first_dozen_is_folded_and_not_cut() -> None:
    head = Head("a", "fail", "?", "No.", [str(at) for at in range(15)])
    assert [*head.told, *head.folded] == [str(at) for at in range(15)]
    assert len(head.folded) == 3


def test_a_run_without_a_verdict_that_its_suite_knows_is_counted_once(tmp_path: Path) -> None:
    begun = create(tmp_path / "link-down.host" / "link-down")
    begun.write_manifest(MANIFEST)
    write_suite(tmp_path, "nightly", grouped([_suite_run("link-down", "link-down.host", "no kernel")]))
    view = many_view(tmp_path, tmp_path / "report.html")
    assert [(row[1], row[2]) for row in view.runs.rows] == [(Mark("error"), "no kernel")]


def test_a_suite_s_file_cannot_lead_out_of_its_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    made(out / "run", PASS)
    (tmp_path / "secret").mkdir()
    runs = [_suite_run("a", "../secret", "x"), _suite_run("b", str(tmp_path / "secret"), "x")]
    write_suite(out, "nightly", grouped(runs))
    assert "secret" not in written(out)


@pytest.mark.parametrize("kind", ["repeats.json", "suite.json", ""])
def test_texts_and_names_are_text_and_no_address_is_a_scheme(tmp_path: Path, kind: str) -> None:
    names = ["javascript:alert(1)", 'a"><img src=x onerror=alert(1)>', "%2e%2e", "#x?y", "\udcff\n"]
    hostile = replace(FAIL, checks=tuple(replace(check, text=NASTY, evidence=NASTY) for check in FAIL.checks))
    for at, name in enumerate(names):
        made(tmp_path / name, hostile, drill=HOSTILE, fabric=NASTY, repeat=at, seeds={NASTY: at}, engine=HOSTILE)
    if kind == "suite.json":
        write_suite(tmp_path, NASTY, grouped([_suite_run(NASTY, names[0]), _suite_run(NASTY, "gone", NASTY)]))
    elif kind:
        (tmp_path / kind).write_text("[]")
    text = written(tmp_path, "--out", tmp_path / "page.html")
    found = seen(text)
    assert not {"script", "img", "link", "iframe", "form"} & {tag for tag, _ in found.tags}
    assert not any(name.startswith("on") for _, of in found.tags for name in of)
    links = {of["href"] or "" for tag, of in found.tags if tag == "a" and "href" in of}
    assert all(link.startswith("./") and ":" not in link for link in links)
    there = {tmp_path / unquote(link[2:], errors="surrogateescape") for link in links}
    assert there == {tmp_path / name for name in names}
    assert "\x1b" not in text


def test_an_address_is_relative_and_holds_no_markup(tmp_path: Path) -> None:
    assert href(tmp_path / "a b" / "c", tmp_path / "page.html") == "./a%20b/c"


def test_two_hundred_runs_are_a_page_below_a_megabyte(tmp_path: Path) -> None:
    out = repeats(tmp_path / "out", *[PASS, PASS, PASS, FAIL] * 50)
    (out / "repeats.json").unlink()  # 200 repeats are judged within a second, which others wait for
    text = written(out)
    assert len(text.encode()) < 1_000_000
    assert "200 runs of 1 drill: 150 pass, 50 fail." in text


def test_a_folder_without_runs_is_refused_with_the_way_out(tmp_path: Path) -> None:
    shown = CliRunner().invoke(report, [str(tmp_path)])
    assert shown.exit_code == 1
    assert "holds no run; name a folder that hpn drill run, ci run or campaign run made" in str(shown.exception)
