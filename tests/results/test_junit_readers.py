"""JUnit as CI systems read it: Jenkins' schema, what GitLab shows, totals, repeats that can be told apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from junitparser import JUnitXml

from hpn.results.export.ci import ci_junit
from hpn.results.export.ci_runs import CiRun, grouped
from hpn.results.export.junit import Judged, Unmade, judged, junit_xml
from hpn.results.judge.repeats.judging import judge_repeats
from hpn.results.judge.verdict import Check, Outcome, Verdict, at_most, decide, holds
from hpn.results.run.folder import create
from tests.results.jenkins import check_with_the_schema_itself, problems, shown_by_gitlab
from tests.results.sample import MANIFEST

TEXT = "worst outage at failure below 50 ms"


def checked(worst_ms: float) -> Check:
    return at_most(TEXT, worst_ms, 50, unit="ms", evidence="p0.s0.h0.r0>p0.s1.h0.r0#0")


def run(number: int, *checks: Check, reasons: tuple[str, ...] = ()) -> Judged:
    """A run of the sample's drill, one of several where it has a number."""
    return Judged(replace(MANIFEST, repeat=number), decide(checks, reasons))


def reports() -> Iterator[str]:
    """A report of every kind: single runs, repeats, a suite with runs that could not be made."""
    fine, broken, unsure = checked(20), checked(80), holds("state restored", None, evidence="links")
    runs = [run(1, fine, unsure), run(2, broken, unsure), run(3, fine, reasons=("starved of CPU", "a gap"))]
    yield junit_xml([run(0, fine), run(0), run(0, broken)])
    yield junit_xml(runs, [judge_repeats("link-down", [each.verdict for each in runs])])
    made = [
        CiRun("link-down", "host", each.manifest.repeat, 4, f"link-down.host.{n}", 2.5, each)
        for n, each in enumerate(runs)
    ]
    dead = CiRun("link-down", "host", 4, 4, "link-down.host.4", 0.00004, None, "no \x1b[31m guest\ud800", 3)
    silent = CiRun("quiet", "uml", 1, 1, "quiet.uml", 1e-5, None, "every queue pair died", 4)
    yield ci_junit("nightly", grouped([*made, dead, silent]))


REPORTS = list(reports())
EACH = pytest.mark.parametrize("text", REPORTS, ids=["runs", "repeats", "suite"])


@EACH
def test_jenkins_schema_takes_it(text: str) -> None:
    assert problems(text) == []


@EACH
def test_jenkins_schema_itself_takes_it(text: str, tmp_path: Path) -> None:
    check_with_the_schema_itself(text, tmp_path)


@EACH
def test_times_have_three_decimals(text: str) -> None:
    root = ElementTree.fromstring(text)
    times = [element.get("time") for tag in ("testsuites", "testsuite", "testcase") for element in root.iter(tag)]
    assert [time for time in times if re.fullmatch(r"\d+\.\d{3}", time or "") is None] == []


@EACH
def test_totals_are_those_of_the_cases(text: str) -> None:
    root = ElementTree.fromstring(text)
    for element in root.iter():
        if element.tag in {"testsuites", "testsuite"}:
            cases = list(element.iter("testcase"))
            failed, errors = ([case for case in cases if case.find(tag) is not None] for tag in ("failure", "error"))
            assert (element.get("tests"), element.get("failures"), element.get("errors")) == tuple(
                str(len(found)) for found in (cases, failed, errors)
            )
    assert JUnitXml.fromstring(text).tests == len(list(root.iter("testcase")))


@EACH
def test_no_case_hides_another_from_gitlab(text: str) -> None:
    cases = list(ElementTree.fromstring(text).iter("testcase"))
    assert len(shown_by_gitlab(text)) == len(cases)
    assert len({(case.get("classname"), case.get("name")) for case in cases}) == len(cases), "Jenkins looks at no suite"


@EACH
def test_what_a_case_says_is_content_where_gitlab_looks_for_it(text: str) -> None:
    shown = [said for status, said in shown_by_gitlab(text).values() if status != "success"]
    assert shown
    assert "" not in shown


def test_a_failure_says_what_was_measured_and_a_skipped_case_why() -> None:
    shown = shown_by_gitlab(junit_xml([run(0, checked(80)), run(1, checked(20), reasons=("starved of CPU",))]))
    said = {(suite, name): (status, text) for (suite, _, name), (status, text) in shown.items()}
    status, text = said["link-down", TEXT]
    assert (status, "measured 80.0 ms, limit 50.0 ms" in text, "p0.s0.h0.r0>p0.s1.h0.r0#0" in text) == (
        "failure",
        True,
        True,
    )
    assert said["link-down #1", TEXT] == ("skipped", "inconclusive: starved of CPU")


STALLED = holds("flows of plane 1 untouched", None, evidence="its sender paused 20.5 ms")


@pytest.mark.parametrize(
    ("checks", "reasons", "status"),
    [
        ((checked(80),), (), "success"),
        ((checked(80), STALLED), (), "success"),  # what failed, failed, whatever another check could tell
        ((checked(20), STALLED), ("its sender paused 20.5 ms",), "skipped"),
        ((checked(80),), ("starved of CPU", "a gap of 3 s"), "skipped"),
    ],
)
def test_each_run_says_whether_its_measurement_can_be_trusted(
    checks: tuple[Check, ...], reasons: tuple[str, ...], status: str
) -> None:
    made = run(0, *checks, reasons=() if STALLED in checks else reasons)
    shown = shown_by_gitlab(junit_xml([made]))
    [(found, said)] = [told for (_, _, name), told in shown.items() if name == "the measurement can be trusted"]
    assert found == status
    assert all(reason in said for reason in reasons)


@pytest.mark.parametrize(("noisy", "status"), [(False, "error"), (True, "skipped")])
def test_a_run_that_could_not_be_made_is_in_the_report(noisy: bool, status: str) -> None:
    text = junit_xml([run(1, checked(20))], (), [Unmade("link-down", 2, "no namespaces here", noisy)])
    [(found, said)] = [told for (suite, _, _), told in shown_by_gitlab(text).items() if suite == "link-down #2"]
    assert (found, "no namespaces here" in said) == (status, True)
    assert problems(text) == []


def test_a_run_that_tells_a_check_twice_shows_both() -> None:
    shown = shown_by_gitlab(junit_xml([run(0, checked(20), checked(80))]))
    assert [status for (_, _, name), (status, _) in shown.items() if name.startswith(TEXT)] == ["success", "failure"]


@pytest.mark.parametrize(
    "text", ["\ud800", "\x00\x1b[31m", "]]>", "<![CDATA[", "</failure><script>", "\ufffe", "a\rb\nc"]
)
def test_no_text_breaks_the_report(text: str) -> None:
    check = holds(f"x{text}", False, evidence=text)
    manifest = replace(MANIFEST, drill=text, command=(text,), versions={text: text})
    written = junit_xml([Judged(manifest, Verdict(Outcome.FAIL, (check,), (text,)))])
    assert problems(written) == []
    ElementTree.fromstring(written.encode())


def test_a_minute_of_console_is_kept_short() -> None:
    dead = CiRun("a", "uml", 1, 1, "a.uml", 1.0, None, "x" * 10_000_000, 3)
    assert len(ci_junit("nightly", grouped([dead]))) < 100_000


def attached(text: str) -> dict[str, list[str]]:
    """The files that each case names where Jenkins and GitLab look for them."""
    found = {}
    for case in ElementTree.fromstring(text).iter("testcase"):
        lines = case.findtext("system-out", "").splitlines()
        found[case.get("name", "")] = [line[13:-2] for line in lines if re.fullmatch(r"\[\[ATTACHMENT\|.+\]\]", line)]
    return found


def test_files_of_a_run_are_attached_to_what_failed_and_to_the_run_itself(tmp_path: Path) -> None:
    folder = create(tmp_path / "link-down")
    folder.write_manifest(MANIFEST)
    folder.write_verdict(decide([checked(80), holds("state restored", True)]))
    log = tmp_path / "output.txt"
    log.write_text("what it printed")
    found = attached(junit_xml([judged(folder, log, tmp_path / "absent.txt")]))
    files = [str(log), str(folder.path / "verdict.json")]
    assert found == {"the measurement can be trusted": files, TEXT: files, "state restored": []}


def test_a_path_that_would_end_its_line_is_not_attached() -> None:
    [files] = [
        found
        for name, found in attached(junit_xml([replace(run(0, checked(20)), files=("a]]b", "a\nb", "good"))])).items()
        if name.startswith("the measurement")
    ]
    assert files == ["good"]


def test_repeats_have_class_names_of_their_own() -> None:
    classes = [{case.get("classname") for case in suite} for suite in map(_cases_of, REPORTS)]
    assert classes == [
        {"link-down"},
        {*(f"link-down.run-{n}" for n in (1, 2, 3)), "link-down.all-runs"},
        {*(f"host.link-down.run-{n}" for n in (1, 2, 3, 4)), "host.link-down.all-runs", "uml.quiet"},
    ]


def _cases_of(text: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(text).iter("testcase"))
