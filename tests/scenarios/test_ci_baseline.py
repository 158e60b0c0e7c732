"""`hpn ci run --save` keeps what a suite measured; `--baseline` is red where a later one measures worse."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest

from hpn import cli
from hpn.failover.analysis.model import DrillMetrics
from hpn.results.run.folder import RunFolder, create
from hpn.results.run.identity import identity_of
from hpn.results.run.progress import Progress
from hpn.scenarios.batch.pool.task import Task
from hpn.scenarios.expect.evidence import RunFacts
from hpn.scenarios.expect.verdict import judge
from hpn.scenarios.run import calibrate, session
from hpn.scenarios.run.run_order import Order
from hpn.scenarios.run.stored_drill import asked_of
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from tests.results.sample import MANIFEST
from tests.scenarios.measured import link_down
from tests.scenarios.pool.pretended import Pretended, here

DRILL = """
drill: cut
summary: one link is cut
topology: {preset: tiny}
workload: {load: 40 %}
timeline:
  faults: [{id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 1 s, for: 2 s}]
expect:
  - worst_outage: {below: 50 ms}
"""

ECN = "ecn: {kmin_bytes: 10000, kmax_bytes: 20000, pmax: 0.5, marker: nft}"


def measures(found: DrillMetrics) -> Callable[[Order, Callable[[Progress], None]], RunFolder]:
    """What ``session.run`` would leave behind."""

    def run(order: Order, _listen: Callable[[Progress], None]) -> RunFolder:
        fabric = build(order.drill.topology)
        asked, folder = asked_of(order.drill, fabric), create(order.out)
        folder.write_fabric(fabric)
        folder.write_drill(asked)
        digests = identity_of(fabric, asked).digests
        folder.write_manifest(replace(MANIFEST, drill=order.drill.name, digests=digests))
        folder.write_metrics(found)
        folder.write_verdict(judge(order.drill, found, RunFacts((), 0, ())))
        return folder

    return run


@pytest.fixture
def ci(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """``hpn ci run`` of a suite of the drill, which measures an outage of so many ms."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setattr(calibrate, "check", lambda *_: None)
    monkeypatch.setattr("hpn.commands.ci.pool_for", lambda *_: Pretended(here))
    Path("suite.yaml").write_text("suite: s\nruns: [{drills: [./cut.yaml]}]\n")
    Path("cut.yaml").write_text(DRILL)

    def run(*arguments: str, outage_ms: int = 20, change: tuple[str, str] = ("", "")) -> int:
        Path("cut.yaml").write_text(DRILL.replace(*change))
        monkeypatch.setattr(session, "run", measures(link_down(receiver=outage_ms)))
        code = cli.command_line.main(["ci", "run", "suite.yaml", *arguments], prog_name="hpn", standalone_mode=False)
        assert isinstance(code, int)
        return code

    return run


def test_what_is_measured_again_is_green_and_the_file_is_the_same(
    ci: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert ci("--save", "baseline") == 0
    kept = Path("baseline/cut.host.json")
    before = kept.read_bytes()
    assert len(before) < 8_000
    assert "kept: baseline/cut.host.json\n" in capsys.readouterr().out
    assert ci("--baseline", "baseline", "--save", "baseline") == 0
    assert kept.read_bytes() == before
    assert "cut on host: no figure differs: each interval overlaps that of the baseline" in capsys.readouterr().out
    summary = Path("ci-out/summary.md").read_text()
    assert "<details><summary>Figures, baseline and now" in summary, "a green one has figures too"
    row = next(line for line in summary.splitlines() if line.startswith("| cut on host | worst outage |"))
    was, now = (cell.strip() for cell in row.split("|")[3:5])
    assert was == now
    assert was.startswith("20.0 ms (")


def test_what_is_worse_than_the_baseline_is_red_with_figure_both_values_and_margin(
    ci: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """All limits hold: the baseline alone is red."""
    assert ci("--save", "baseline") == 0
    assert ci("--baseline", "baseline", "--save", "new", outage_ms=45) == 1
    sentence = "worse: worst outage: 45.0 ms, 20.0 ms before: worse by at least 23.0 ms"
    assert f"cut on host: {sentence}\n" in capsys.readouterr().out
    assert f"cut on host: {sentence}" in Path("ci-out/summary.md").read_text()
    case = ElementTree.parse("ci-out/junit.xml").find(".//testcase[@name='no figure is worse than its baseline']")
    assert case is not None
    assert sentence in (case.findtext("failure") or "")
    assert Path("new/cut.host.json").exists(), "to be committed where it is meant"
    assert ci("--baseline", "new", outage_ms=45) == 0
    assert ci("--baseline", "new", outage_ms=20) == 0, "better is not red"


def test_what_is_worse_by_no_more_than_the_tolerance_is_told_and_green(
    ci: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """BFD at 60 instead of 50 ms was red by 5.53 ms of a figure that no limit is on."""
    assert ci("--save", "baseline") == 0
    assert ci("--baseline", "baseline", "--tolerance", "120%", outage_ms=45) == 0
    sentence = "worse: worst outage: 45.0 ms, 20.0 ms before: worse by at least 23.0 ms"
    within = f"cut on host: within the tolerance of 120 %: {sentence}"
    out = capsys.readouterr().out
    assert f"{within}\n" in out
    assert "no figure is worse or better" not in out
    assert within in Path("ci-out/summary.md").read_text()
    assert f"within the tolerance of 120 %: {sentence}" in Path("ci-out/report.html").read_text()
    assert ci("--baseline", "baseline", "--tolerance", "110 %", outage_ms=45) == 1
    assert f"cut on host: {sentence} (tolerance 110 %)\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("share", "told"),
    [
        ("-5 %", "'-5 %' is not a percentage"),
        ("1001 %", "1001 % is out of range; write 0 % to 1000 %"),
        ("0.1", "'0.1' is not a percentage; write a number and '%'"),
        ("nan %", "'nan %' is not a percentage"),
    ],
)
def test_a_tolerance_that_is_no_percentage_is_refused(ci: Callable[..., int], share: str, told: str) -> None:
    with pytest.raises(click.BadParameter) as caught:
        ci("--baseline", "baseline", "--tolerance", share)
    assert told in caught.value.message
    with pytest.raises(InputError, match="write --baseline DIR too"):
        ci("--tolerance", "10 %")


def test_one_run_against_one_is_told_to_be_weak_and_so_is_a_baseline_of_one(
    ci: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    weak = "one run each: the phase of a timer alone can make this difference"
    assert ci("--save", "baseline") == 0
    assert "of one run: the phase of a timer alone can move its figures" in capsys.readouterr().out
    assert ci("--baseline", "baseline", outage_ms=45) == 1
    assert weak in capsys.readouterr().out
    Path("suite.yaml").write_text("suite: s\nruns: [{drills: [./cut.yaml], repeats: 5}]\n")
    assert ci("--baseline", "baseline", "--save", "five", outage_ms=45) == 1
    told = capsys.readouterr().out
    assert weak not in told
    assert "of one run" not in told


def test_what_breaks_its_limits_and_is_worse_says_both(ci: Callable[..., int]) -> None:
    assert ci("--save", "baseline") == 0
    assert ci("--baseline", "baseline", outage_ms=80) == 1
    row = next(line for line in Path("ci-out/summary.md").read_text().splitlines() if line.startswith("| cut"))
    assert "below 50 ms: measured" in row
    assert "; against its baseline worse: worst outage" in row


def test_the_table_names_its_suite_and_cuts_a_reason_that_was_told(
    ci: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    ci("--save", "baseline")
    assert ci("--baseline", "baseline", outage_ms=80) == 1
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("suite s", lines.index("starting cut on host", 4))
    assert lines[at + 2].endswith(" ...")


def test_timers_may_differ_and_are_told(ci: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    ci("--save", "baseline")
    slower = ("preset: tiny", "preset: tiny, bgp: {hold_s: 30}")
    assert ci("--baseline", "baseline", change=slower) == 0
    assert ci("--baseline", "baseline", change=slower, outage_ms=45) == 1
    out = capsys.readouterr().out
    changed = "timers or policies of the fabric changed since the baseline: "
    assert f"{changed}bgp.hold_s was 9, is 30" in out
    for text in (out, *(Path(f"ci-out/{name}").read_text() for name in ("summary.md", "report.html", "junit.xml"))):
        assert "worse: worst outage" in text[text.rindex(changed) :], "what was changed comes before what it did"


def test_another_kernel_or_hpn_is_named_though_no_figure_differs(
    ci: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    ci("--save", "baseline")
    kept = Path("baseline/cut.host.json")
    setting = json.loads(kept.read_text())["setting"]
    other = kept.read_text().replace(f'"kernel":"{setting["kernel"]}"', '"kernel":"5.4.0"')
    kept.write_text(other.replace(f'"kernel": "{setting["kernel"]}"', '"kernel": "5.4.0"'))
    assert ci("--baseline", "baseline") == 0
    said = f"kernel or hpn changed since the baseline: kernel was 5.4.0, is {setting['kernel']}"
    for text in (
        capsys.readouterr().out,
        *(Path(f"ci-out/{name}").read_text() for name in ("summary.md", "report.html")),
    ):
        assert said in text


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("preset: tiny", "preset: tiny, hosts: 3"), "fabric 'tiny (hpn)', these runs of another (hosts was 2, is 3)"),
        (("preset: tiny", "preset: tiny, seed: 7"), "fabric 'tiny (hpn)', these runs of another (seed was 1, is 7)"),
        (("for: 2 s", "for: 3 s"), "drill 'cut', these runs of another (timeline.faults[0] was "),
        (("load: 40 %", "load: 20 %"), "settings 'quick', these runs of another (workload.load was 40 %, is 20 %)"),
    ],
)
def test_another_experiment_is_refused_before_anything_runs_with_the_key_that_differs(
    ci: Callable[..., int], change: tuple[str, str], told: str
) -> None:
    ci("--save", "baseline")
    with pytest.raises(InputError) as caught:
        ci("--baseline", "baseline", "--out", "later", change=change)
    assert str(caught.value).startswith(f"baseline/cut.host.json: the baseline is of {told}")
    assert str(caught.value).endswith("; if that is meant: hpn ci run suite.yaml --save baseline")
    assert sorted(os.listdir("later")) == ["junit.xml", "summary.md"]
    summary = Path("later/summary.md").read_text()
    assert summary.startswith("# s: a baseline is refused, nothing was run\n")
    assert "these runs of another" in summary
    case = ElementTree.parse("later/junit.xml").find(".//testcase/error")
    assert case is not None
    assert "these runs of another" in (case.text or "")


@pytest.mark.parametrize(
    ("before", "marker", "change", "told"),
    [
        ("host/kernel", "", "lag: nft", "engine 'host/kernel', these runs of another (lag was kernel, is nft)"),
        ("host/nft", "", "lag: kernel", "engine 'host/nft', these runs of another (lag was nft, is kernel)"),
        ("qemu/kvm/ours", "", "", "engine 'qemu/kvm/ours', these runs of 'host'"),
        ("host/ours", "", "", "engine 'host/ours', these runs of another (lag was ours, is auto)"),
        ("host/nft", "red", ECN, "these runs of another (ecn.marker was red, is nft)"),
    ],
)
def test_what_the_topology_names_is_refused_before_anything_runs(
    ci: Callable[..., int], before: str, marker: str, change: str, told: str
) -> None:
    """A suite ran for 162 s before 'lag: nft' was refused."""
    ecn = change.startswith("ecn")
    named = ("preset: tiny", f"preset: tiny, {change}" if change else "preset: tiny")
    ci("--save", "baseline", change=named if ecn else ("", ""))
    file = Path("baseline/cut.host.json")
    kept = json.loads(file.read_text())
    kept["setting"]["engine"] = before
    kept["digests"]["settings"] += f" {marker}" if marker else ""
    file.write_text(json.dumps(kept))
    with pytest.raises(InputError) as caught:
        ci("--baseline", "baseline", "--out", "later", change=named)
    assert told in str(caught.value)
    assert sorted(os.listdir("later")) == ["junit.xml", "summary.md"]


@pytest.mark.parametrize("lag", ["auto", "kernel"])
def test_a_lag_that_may_be_the_baselines_is_run(ci: Callable[..., int], lag: str) -> None:
    ci("--save", "baseline")
    file = Path("baseline/cut.host.json")
    file.write_text(file.read_text().replace('"engine": "host/nft"', '"engine": "host/kernel"'))
    code = ci("--baseline", "baseline", change=("preset: tiny", f"preset: tiny, lag: {lag}"))
    assert code == 2, "after the run, which had another datapath"
    assert Path("ci-out/suite.json").is_file()


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("suite.yaml", "suite: s\nruns: [{drills: [./cut.yaml], repeat: 2}]\n", "unknown key 'repeat' in runs[0]"),
        ("suite.yaml", "- 1\n", "suite.yaml"),
        ("cut.yaml", DRILL.replace("link-down", "link-don"), "link-don"),
        ("cut.yaml", DRILL.replace("preset: tiny", "preset: tiny, hots: 3"), "unknown key 'hots'"),
    ],
)
def test_mistakes_in_files_are_in_the_reports_that_a_ci_system_keeps(
    ci: Callable[..., int], file: str, text: str, told: str
) -> None:
    """Only refusals of baselines were."""
    change = (DRILL, text) if file == "cut.yaml" else ("", "")
    Path(file).write_text(text)
    with pytest.raises(InputError) as caught:
        ci("--out", "later", change=change)
    assert told in str(caught.value)
    assert sorted(os.listdir("later")) == ["junit.xml", "summary.md"]
    assert Path("later/summary.md").read_text().startswith("# suite.yaml: files have mistakes, nothing was run\n")
    case = ElementTree.parse("later/junit.xml").find(".//testcase[@name='the files have no mistakes']/error")
    assert case is not None
    assert case.text == "\n".join(caught.value.problems)


def test_mistakes_in_a_drill_are_in_the_reports_of_drill_run(ci: Callable[..., int]) -> None:
    Path("cut.yaml").write_text(DRILL.replace("link-down", "link-don"))
    reports = ["--junit", "report.xml", "--summary", "page.md"]
    with pytest.raises(InputError) as caught:
        cli.command_line.main(["drill", "run", "cut.yaml", *reports], prog_name="hpn", standalone_mode=False)
    case = ElementTree.parse("report.xml").find(".//testcase/error")
    assert case is not None
    assert case.text == "\n".join(caught.value.problems)
    assert (
        Path("page.md").read_text().startswith("# hpn drill run: files have mistakes, nothing was run\n\n* cut.yaml:")
    )


def test_no_folder_is_made_for_a_suite_that_is_not_there(ci: Callable[..., int]) -> None:
    Path("suite.yaml").unlink()
    with pytest.raises(InputError, match="no such file"):
        ci()
    assert not Path("ci-out").exists()


def test_an_interrupted_suite_says_so_and_has_its_page(ci: Callable[..., int], monkeypatch: pytest.MonkeyPatch) -> None:
    Path("suite.yaml").write_text("suite: s\nruns: [{drills: [./cut.yaml], repeats: 2}]\n")

    def cut_short(task: Task, folder: Path) -> int:
        if task.name.endswith("#2"):
            raise KeyboardInterrupt
        return here(task, folder)

    monkeypatch.setattr("hpn.commands.ci.pool_for", lambda *_: Pretended(cut_short))
    with pytest.raises(click.Abort):
        ci()
    assert Path("ci-out/summary.md").read_text().startswith("# s: ended early, 1 of 2 runs made: pass\n")
    assert Path("ci-out/report.html").is_file()


def test_a_suite_that_no_run_could_be_made_of_has_its_page(
    ci: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_kernel(_task: Task, folder: Path) -> int:
        (folder / "output.txt").write_text("hpn: there is no kernel\n")
        return 3

    monkeypatch.setattr("hpn.commands.ci.pool_for", lambda *_: Pretended(no_kernel))
    assert ci() == 3
    assert "there is no kernel" in Path("ci-out/report.html").read_text()


def test_a_baseline_of_another_engine_or_format_is_refused(ci: Callable[..., int]) -> None:
    ci("--save", "baseline")
    kept = Path("baseline/cut.host.json")
    text = kept.read_text()
    kept.write_text(text.replace('"engine": "host/nft"', '"engine": "qemu/kernel"'))
    with pytest.raises(InputError, match=r"the baseline is of engine 'qemu/kernel', these runs of 'host'"):
        ci("--baseline", "baseline")
    kept.write_text(text.replace("{", '{"format": 7,', 1))
    with pytest.raises(InputError, match=r"baseline/cut.host.json has format 7, this hpn reads 1"):
        ci("--baseline", "baseline")
    kept.write_text(text)
    kept.rename("baseline/cut.uml-virtual-time.json")
    with pytest.raises(
        InputError, match=r"the baseline is of engine 'uml-virtual-time', the suite runs cut on 'host'$"
    ):
        ci("--baseline", "baseline")


def test_what_only_a_run_can_tell_is_refused_after_it(
    ci: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    ci("--save", "baseline")
    kept = Path("baseline/cut.host.json")
    kept.write_text(kept.read_text().replace('"engine": "host/nft"', '"engine": "host/kernel"'))
    assert ci("--baseline", "baseline") == 2
    told = "baseline/cut.host.json is refused: the baseline is of engine 'host/kernel', these runs of 'host/nft'"
    assert told in capsys.readouterr().out
    assert "# s: a baseline is refused, 1 run\n" in Path("ci-out/summary.md").read_text()
    assert "<error" in Path("ci-out/junit.xml").read_text()


def test_a_drill_without_a_baseline_says_how_to_write_it(
    ci: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("baseline").mkdir()
    Path("baseline/gone.host.json").write_text("{}")
    assert ci("--baseline", "baseline") == 0
    out, err = capsys.readouterr()
    line = "cut on host: no baseline baseline/cut.host.json; hpn ci run suite.yaml --save baseline writes it"
    assert line in out
    unused = "no drill of this suite has the baseline baseline/gone.host.json"
    assert unused in err
    assert f"* {unused}\n" in Path("ci-out/summary.md").read_text()
    case = ElementTree.parse("ci-out/junit.xml").find(".//testsuite[@name='baselines of no drill']/testcase")
    assert case is not None
    assert case.findtext("skipped") == unused
    page = Path("ci-out/report.html").read_text()
    assert f"<h2>Baselines of no drill</h2>\n<ul><li>{unused}</li></ul>" in page, "a part by itself, of no drill"
    with pytest.raises(InputError, match=r"there is no folder none; hpn ci run suite.yaml --save none writes it"):
        ci("--baseline", "none")


def test_what_breaks_its_own_limits_is_not_kept(ci: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert ci("--save", "baseline", outage_ms=80) == 1
    assert "not kept, for the drill is no pass: baseline/cut.host.json" in capsys.readouterr().out
    assert list(Path("baseline").iterdir()) == []
