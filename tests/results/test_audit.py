"""The answer of an audit: worst first, its exit code, its reports, its page, and its comparison with another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from hpn.failover.analysis.dark import DarkNic, Way
from hpn.results.audit.comparison import Change, compare, comparison_exit_code, comparison_line
from hpn.results.audit.junit import audit_junit
from hpn.results.audit.model import ERROR, Answer, Figure, Moment, Row, answer_json, load_answer
from hpn.results.audit.page import audit_page, costs_of
from hpn.results.audit.sarif import audit_sarif
from hpn.results.audit.text import audit_table, cells, lines
from hpn.results.graph.cost import Cost
from hpn.results.judge.verdict import at_most, holds
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import load_topology
from tests.results.shown import as_text

LINK, TOR, NIC = "p0.s0.h0.r0.0", "p0.s0.t0.0", "p0.s0.h0.r0"
KEPT = (at_most("worst outage at most 500 ms", 0.0, 500, unit="ms", high=20.0), holds("state restored", True))
BROKEN = (at_most("worst outage at most 500 ms", 3500.0, 500, unit="ms", evidence="a flow"), holds("restored", True))
QUIET = Moment(Figure(0.0, 0.0, 20.1), 0, 0, 64, (), Figure(120.0, 119.0, 121.0))
DARK = (DarkNic(NIC, Way.UP, 3500.0, True),)
LOSSY = replace(QUIET, outage=Figure(3500.0, 3480.0, 3520.0), lost=700, lossy=8, dark=DARK)


def _row(kind: str, target: str, outcome: str, **more: object) -> Row:
    plain = Row(f"{kind}: x of {target}", kind, target, f"x of {target}", (target,), outcome, f"runs/{target}")
    checks = {"pass": KEPT, "fail": BROKEN}.get(outcome, ())
    moment = LOSSY if outcome == "fail" else QUIET if outcome == "pass" else None
    return replace(plain, checks=checks, failure=moment, back=QUIET if moment else None, **more)  # type: ignore[arg-type]


GOOD = _row("link", LINK, "pass")
SINGLE = _row("link", "p0.s0.h0.r0.1", "fail", cut_off=("p0.s0.h0",))
BAD = _row("switch", TOR, "fail")
UNSURE = _row("switch", "p0.a0.0", "inconclusive", reasons=("no stream crossed it",))
UNMADE = _row("host", "p0.s0.h0", ERROR, reasons=("no <kernel>",))


def _answer(*rows: Row, waiting: int = 0) -> Answer:
    return Answer(load_topology("tiny"), "uml-virtual-time", ("a promise",), rows, (("link: y", "no drill"),), waiting)


ALL = _answer(GOOD, UNSURE, BAD, UNMADE, SINGLE)


def test_the_most_costly_failure_comes_first() -> None:
    assert [row.element for row in ALL.worst_first] == [row.element for row in (SINGLE, BAD, UNMADE, UNSURE, GOOD)]


@pytest.mark.parametrize(
    ("rows", "code"),
    [((GOOD,), 0), ((GOOD, UNSURE), 4), ((UNSURE, UNMADE), 3), ((UNMADE, BAD, UNSURE), 1), ((), 4)],
)
def test_a_broken_promise_outweighs_what_could_not_be_run(rows: Sequence[Row], code: int) -> None:
    assert _answer(*rows).exit_code == code


def test_an_audit_that_is_not_over_is_no_pass() -> None:
    assert _answer(GOOD, waiting=1).exit_code == 4


def test_the_answer_is_read_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "audit.json").write_bytes(answer_json(ALL))
    assert load_answer(tmp_path / "audit.json") == ALL
    (tmp_path / "audit.json").write_text("{}")
    with pytest.raises(InputError, match="no answer of hpn audit"):
        load_answer(tmp_path / "audit.json")


def test_the_terminal_tells_figures_single_points_and_what_was_left_out() -> None:
    assert cells(SINGLE)[3:] == (
        "3500", "3500", "700", "120", "0", "120", "p0.s0.h0", "worst outage at most 500 ms",
    )  # fmt: skip
    assert cells(GOOD)[3] == "< 20.1", "nothing lost is a bound, not zero"
    text = as_text(audit_table(ALL), 300)
    assert text.index(SINGLE.element) < text.index(GOOD.element)
    assert any(
        "2 failures noticed by timers alone" in line for line in lines(_answer(*[replace(GOOD, by_timers=True)] * 2))
    )
    told = list(lines(ALL))
    assert told[0] == "5 failures tried: 1 pass, 2 fail, 1 inconclusive, 1 error"
    assert "single points: 1; " in told[1]
    assert told[-1] == "left out: link: y: no drill"


def test_pairs_that_cut_off_are_counted_and_are_no_single_points() -> None:
    pair = replace(GOOD, kind="pair", targets=(LINK, TOR), cut_off=(NIC,))
    told = list(lines(_answer(GOOD, pair)))
    assert "pairs that cut off a NIC or host: 1 of 1 tried" in told
    assert any(line.startswith("no single point") for line in told)


def test_no_single_point_is_told_only_when_all_was_tried() -> None:
    assert any("no single point" in line for line in lines(_answer(GOOD)))
    assert not any("no single point" in line for line in lines(_answer(GOOD, waiting=3)))


def test_junit_has_a_case_for_each_failure_with_its_status() -> None:
    root = ElementTree.fromstring(audit_junit(ALL))
    cases = {case.get("name"): case for case in root.iter("testcase")}
    status = {name: [each.tag for each in case if each.tag != "system-out"] for name, case in cases.items()}
    assert status[GOOD.words] == []
    assert status[BAD.words] == ["failure"]
    assert status[UNSURE.words] == ["skipped"]
    assert status[UNMADE.words] == ["error"]
    assert status["link: y"] == ["skipped"]
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("6", "2", "1")


_TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
_LOCATION = {
    "type": "object",
    "required": ["logicalLocations"],
    "properties": {
        "logicalLocations": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["name"]}},
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation", "region"],
            "properties": {
                "artifactLocation": {"properties": {"uri": {"type": "string", "format": "uri-reference"}}},
                "region": {"properties": {"startLine": {"type": "integer", "minimum": 1}}},
            },
        },
    },
}
_RESULT = {
    "type": "object",
    "required": ["message", "ruleId", "level", "locations"],
    "properties": {
        "message": _TEXT,
        "level": {"enum": ["none", "note", "warning", "error"]},
        "locations": {"type": "array", "items": _LOCATION},
        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
_RULE = {"required": ["id"], "properties": {"shortDescription": _TEXT}}
_DRIVER = {"required": ["name"], "properties": {"rules": {"uniqueItems": True, "items": _RULE}}}
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "items": {
                "required": ["tool"],
                "properties": {"tool": {"properties": {"driver": _DRIVER}}, "results": {"items": _RESULT}},
            }
        },
    },
}
"""What section 3 of SARIF 2.1.0 demands of the parts that are written; the OASIS schema itself may not be copied."""


@pytest.mark.parametrize("file", ["nets/my fabric.yaml", "tiny"])
def test_sarif_tells_broken_promises_and_single_points_where_the_topology_is(file: str) -> None:
    document = json.loads(audit_sarif(ALL, file, "1.0"))
    jsonschema.Draft202012Validator(SARIF).validate(document)
    (run,) = document["runs"]
    told = [(each["ruleId"], each["level"]) for each in run["results"]]
    assert told == [
        ("single-point", "warning"),
        ("worst-outage-at-most-500-ms", "error"),
        ("worst-outage-at-most-500-ms", "error"),
        ("inconclusive", "note"),
        ("inconclusive", "note"),
    ]
    assert {each["ruleId"] for each in run["results"]} == {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    prints = [each["partialFingerprints"]["hpnFailure/v1"] for each in run["results"]]
    assert len(set(prints)) == len(prints)
    place = run["results"][0]["locations"][0].get("physicalLocation")
    if file == "tiny":
        assert place is None
    else:
        assert place["artifactLocation"]["uri"] == "nets/my%20fabric.yaml"


def test_the_picture_has_each_part_in_the_colour_of_its_worst_failure() -> None:
    fabric = build(ALL.topology)
    lossy = _row("link", TOR, "pass")
    found = costs_of(_answer(GOOD, SINGLE, BAD, UNSURE, replace(lossy, back=LOSSY)), fabric)
    assert found[LINK] is Cost.NOTHING
    assert found[SINGLE.element] is Cost.SINGLE_POINT
    assert found[TOR] is Cost.BROKEN, "the worst of its failures"
    assert found["p0.a0.0"] is Cost.UNKNOWN
    assert found["p0.s1.h0"] is Cost.UNKNOWN, "not tried"
    assert costs_of(_answer(replace(lossy, back=LOSSY)), fabric)[TOR] is Cost.LOSS


def test_the_page_has_picture_rows_and_escaped_texts(tmp_path: Path) -> None:
    page = audit_page(ALL, tmp_path, tmp_path / "report.html")
    assert 'class="link plane1 cost4"' in page
    assert "single point: its failure cuts off a NIC or host" in page
    assert "No: 2 of 5 failures break a promise. Single points: 1." in page
    assert "no &lt;kernel&gt;" in page
    assert "no <kernel>" not in page
    assert f'href="./runs/{SINGLE.element}"' in page
    assert audit_page(ALL, tmp_path, tmp_path / "report.html") == page


def test_texts_of_a_file_are_no_style(tmp_path: Path) -> None:
    bad = replace(GOOD, kind="x{}body{display:none}", outcome="pass</style>")
    page = audit_page(_answer(bad, GOOD), tmp_path, tmp_path / "report.html")
    styles = "".join(part.partition("</style>")[0] for part in page.split("<style>")[1:])
    assert "body{display:none}" not in styles
    assert "pass</style>" not in page


def test_a_comparison_tells_worse_new_better_gone_and_same() -> None:
    now_bad = replace(BAD, key=GOOD.key)
    before = _answer(GOOD, SINGLE, UNSURE)
    now = _answer(now_bad, replace(GOOD, key=SINGLE.key), BAD)
    found = compare(before, now)
    assert [(row.change, row.key) for row in found] == [
        (Change.WORSE, GOOD.key),
        (Change.NEW, BAD.key),
        (Change.BETTER, SINGLE.key),
        (Change.GONE, UNSURE.key),
    ]
    assert found[0].told == ("pass -> fail", "outage at failure 0.00 ms -> 3500 ms")
    assert "cuts off p0.s0.h0 -> none" in found[2].told
    assert comparison_line(found) == "against the base: 1 worse, 1 new, 1 better, 1 gone, 0 same"
    assert comparison_exit_code(found, now) == 1


def test_a_failure_that_was_broken_before_does_not_fail_a_comparison() -> None:
    found = compare(_answer(BAD, GOOD), _answer(BAD, GOOD))
    assert {row.change for row in found} == {Change.SAME}
    assert comparison_exit_code(found, _answer(BAD, GOOD)) == 0
    assert comparison_exit_code(compare(_answer(BAD, UNSURE), _answer(BAD, UNSURE)), _answer(BAD, UNSURE)) == 4


@pytest.mark.parametrize(
    ("now", "change"),
    [
        (replace(QUIET, outage=Figure(25.0, 5.0, 45.0)), Change.SAME),  # within the measurement error
        (replace(QUIET, outage=Figure(29.0, 28.0, 30.0)), Change.SAME),  # less than 10 ms more
        (replace(QUIET, outage=Figure(60.0, 40.0, 80.0)), Change.WORSE),
        (replace(QUIET, outage=Figure(5.0, 5.0, 5.0, open=True)), Change.WORSE),  # never over
        (replace(QUIET, converged=Figure(220.0, 219.0, 221.0)), Change.SAME),  # another phase of a timer
        (replace(QUIET, lost=1, lossy=1), Change.SAME),  # a packet under way
    ],
)
def test_only_outages_that_differ_for_certain_are_worse(now: Moment, change: Change) -> None:
    found = compare(_answer(GOOD), _answer(replace(GOOD, failure=now)))
    assert [row.change for row in found] == [change]
    timers = compare(_answer(GOOD), _answer(replace(GOOD, failure=now, by_timers=True)))
    assert [row.change for row in timers] == [Change.SAME]


def test_a_return_that_begins_to_cost_packets_is_worse() -> None:
    found = compare(_answer(GOOD), _answer(replace(GOOD, back=replace(QUIET, lost=3))))
    assert [(row.change, row.told) for row in found] == [(Change.WORSE, ("lost at return 0 -> 3",))]


SHORT = "before any fault leaf1 lacks next hops of 3 host routes: 10.0.0.1/32 by 1 of 2 links"


def test_routes_that_lack_next_hops_are_told_everywhere(tmp_path: Path) -> None:
    short = replace(_answer(GOOD), short_routes=(SHORT,))
    assert SHORT in list(lines(short))
    place = tmp_path / "report.html"
    assert SHORT in audit_page(short, tmp_path, place)
    path = tmp_path / "audit.json"
    path.write_bytes(answer_json(short))
    assert load_answer(path).short_routes == (SHORT,)
    (found,) = json.loads(audit_sarif(short, "net.yaml", "1"))["runs"][0]["results"]
    assert (found["ruleId"], found["level"], found["message"]["text"]) == ("short-route", "warning", f"{SHORT}.")
    assert short.exit_code == 0, "no promise is about them"


def test_a_route_that_lost_next_hops_since_the_base_is_worse() -> None:
    whole, short = _answer(GOOD), replace(_answer(GOOD), short_routes=(SHORT,))
    changed = compare(whole, short)
    assert [(each.change, each.key) for each in changed] == [(Change.WORSE, SHORT), (Change.SAME, GOOD.key)]
    assert comparison_exit_code(changed, short) == 1
    assert [each.change for each in compare(short, whole)] == [Change.BETTER, Change.SAME]
    assert {each.change for each in compare(short, short)} == {Change.SAME}
