"""JUnit as junitparser and any XML reader see it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from junitparser import Failure, JUnitXml, Skipped, TestCase, TestSuite

from hpn.results.export.junit import Judged, check_place, junit_xml
from hpn.results.judge.verdict import Outcome, Verdict, at_most, decide, holds
from hpn.testbed.errors import InputError
from tests.results.sample import MANIFEST, metrics, verdict
from tests.results.test_terminal import check_golden


def suites(text: str) -> list[TestSuite]:
    return [suite for suite in JUnitXml.fromstring(text) if isinstance(suite, TestSuite)]


def cases(suite: TestSuite) -> Iterator[TestCase]:
    return (case for case in suite if isinstance(case, TestCase))


def judged(*outcomes: Outcome, reasons: tuple[str, ...] = ()) -> Judged:
    truth = {Outcome.PASS: True, Outcome.FAIL: False, Outcome.INCONCLUSIVE: None}
    checks = [holds(f"expectation {n}", truth[outcome]) for n, outcome in enumerate(outcomes)]
    return Judged(MANIFEST, decide(checks, reasons))


def test_the_report_reads_as_agreed() -> None:
    found = metrics(80)
    text = junit_xml([Judged(MANIFEST, verdict(found))])
    ElementTree.indent(root := ElementTree.fromstring(text))
    check_golden("junit.xml", ElementTree.tostring(root, encoding="unicode") + "\n")


def test_one_suite_per_run_one_case_per_expectation() -> None:
    second = replace(judged(Outcome.PASS), manifest=replace(MANIFEST, repeat=1))
    found = suites(junit_xml([judged(Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE), second]))
    assert [(suite.name, suite.tests, suite.failures, suite.skipped) for suite in found] == [
        ("link-down", 4, 1, 1),
        ("link-down #1", 2, 0, 0),
    ]
    results = [[type(result) for result in case.result] for case in cases(found[0])]
    assert results == [[], [], [Failure], [Skipped]], "whether it can be trusted comes first"
    assert found[0].time == 12.5


def test_a_run_that_cannot_be_trusted_skips_every_case() -> None:
    [suite] = suites(junit_xml([judged(Outcome.PASS, Outcome.FAIL, reasons=("starved of CPU",))]))
    assert (suite.tests, suite.failures, suite.skipped) == (3, 0, 3)
    assert {case.result[0].message for case in cases(suite)} == {"inconclusive: starved of CPU"}


def test_a_drill_that_checked_nothing_is_still_seen() -> None:
    [suite] = suites(junit_xml([judged()]))
    assert (suite.tests, suite.skipped) == (1, 1)


def test_the_manifest_travels_as_properties() -> None:
    [suite] = suites(junit_xml([judged(Outcome.PASS)]))
    found = {one.name: one.value for one in suite.properties()}  # type: ignore[no-untyped-call]  # junitparser
    assert found["datapath"] == "nft"
    assert found["versions.bird"] == "2.0.12"
    assert found["command"] == "hpn drill run link-down"
    assert found["verdict"] == "pass"


def test_text_from_a_drill_cannot_break_the_xml() -> None:
    nasty = at_most('worst <outage> & "co"', 80, 50, unit="ms", evidence="]]> \x00 flow")
    text = junit_xml([Judged(MANIFEST, Verdict(Outcome.FAIL, (nasty,)))])
    [suite] = suites(text)
    assert [case.name for case in cases(suite)][1] == 'worst <outage> & "co"'


def test_a_place_where_no_report_can_be_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    check_place(tmp_path / "new.xml")
    for wrong in (tmp_path, tmp_path / "nowhere" / "report.xml"):
        with pytest.raises(InputError, match="choose another --junit"):
            check_place(wrong)


def test_a_suite_in_virtual_time_has_the_date_of_the_machine_or_none() -> None:
    virtual = replace(MANIFEST, engine="uml-virtual-time", started_at="2026-01-01T00:00:01+00:00")
    dated = replace(virtual, wall_begin="2026-11-24T12:00:00.000+00:00")
    for manifest, said in ((dated, dated.wall_begin), (virtual, None), (MANIFEST, MANIFEST.started_at)):
        report = ElementTree.fromstring(junit_xml([Judged(manifest, decide([holds("it holds", True)]))]))
        assert [suite.get("timestamp") for suite in report.iter("testsuite")] == [said]
