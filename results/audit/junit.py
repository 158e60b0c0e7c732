"""JUnit report of an audit: a suite for each kind of failure, a case for each failure. Pure.

Changes when a CI system should receive something else. Inconclusive is ``skipped``, as for drills.
"""

from __future__ import annotations

from collections.abc import Mapping

from hpn.results.audit.model import ERROR, Answer, Row
from hpn.results.audit.text import some, why
from hpn.results.export.junit_xml import Case, Status, Suite, report
from hpn.results.judge.verdict import Outcome
from hpn.results.text.checks import describe

_STATUS: Mapping[str, Status] = {
    Outcome.PASS.value: Status.PASS,
    Outcome.FAIL.value: Status.FAILURE,
    Outcome.INCONCLUSIVE.value: Status.SKIPPED,
    ERROR: Status.ERROR,
}


def audit_junit(answer: Answer) -> str:
    """Return the whole report as text."""
    name = f"audit.{answer.topology.name}"
    kinds = dict.fromkeys(row.kind for row in answer.rows)
    properties = {"fabric": answer.topology.name, "engine": answer.engine}
    suites = [
        Suite(kind, [_case(row, f"{name}.{kind}") for row in answer.rows if row.kind == kind], properties)
        for kind in kinds
    ]
    untried = [Case(key, f"{name}.left-out", Status.SKIPPED, reason, "left out") for key, reason in answer.left_out]
    return report(name, [*suites, *([Suite("left out", untried)] if untried else [])])


def _case(row: Row, classname: str) -> Case:
    status = _STATUS[row.outcome]
    told = [f"{check.outcome.value}: {check.text}: {describe(check)}" for check in row.checks]
    if row.cut_off:
        told.append(f"cuts off {some(row.cut_off)}")
    said = "" if status is Status.PASS else "\n".join((why(row), *told))
    return Case(row.words, classname, status, said, "promise", "\n".join(told) if status is Status.PASS else "")
