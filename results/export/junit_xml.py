"""A JUnit report as text: what junit-10.xsd of Jenkins' xunit plugin takes, and GitLab shows. Pure.

Changes when a reader of such reports wants something else. Times are seconds with three decimals. What a case has to
say is the content of its failure, error or skipped, as GitLab shows that and no attribute; ``message`` has its
beginning, as others show that. A file is attached by a line of system-out, '[[ATTACHMENT|path]]': so do GitLab, which
looks from the project's folder, and the junit-attachments plugin of Jenkins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from xml.etree import ElementTree

from hpn.results.text.fitting import shortened
from hpn.results.text.xml import possible

_MOST = 20_000  # characters of any text: reports of CI systems have limits, 30 MB a file in GitLab
_MESSAGE = 500


class Status(StrEnum):
    """How a case ended; but for a pass it is the name of the element that says so."""

    PASS = "pass"
    FAILURE = "failure"
    ERROR = "error"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Case:
    """A test case. ``said``: why it is no pass; ``kind``: the sort of failure; ``out``: what it printed."""

    name: str
    classname: str
    status: Status = Status.PASS
    said: str = ""
    kind: str = ""
    out: str = ""
    time_s: float = 0.0
    attachments: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Suite:
    """A test suite. ``timestamp``: when it began, ISO 8601, '' where nobody knows."""

    name: str
    cases: Sequence[Case]
    properties: Mapping[str, str] = field(default_factory=dict)
    timestamp: str = ""
    time_s: float = 0.0


def report(name: str, suites: Iterable[Suite]) -> str:
    """The whole report. Suites and cases whose names would hide each other get numbers."""
    root = ElementTree.Element("testsuites", {"name": _clean(name)})
    seen: dict[tuple[str, ...], int] = {}
    found = [(suite, _numbered(seen, suite.name)) for suite in suites]
    for suite, title in found:
        root.append(_suite(suite, title, seen))
    _total(root, sum(suite.time_s for suite, _ in found))
    text = ElementTree.tostring(root, encoding="unicode")
    return f"<?xml version='1.0' encoding='utf-8'?>\n{text}\n"


def _suite(suite: Suite, title: str, seen: dict[tuple[str, ...], int]) -> ElementTree.Element:
    made = ElementTree.Element("testsuite", {"name": title})
    if suite.timestamp:
        made.set("timestamp", _clean(suite.timestamp))
    if suite.properties:
        properties = ElementTree.SubElement(made, "properties")
        for key, value in suite.properties.items():
            ElementTree.SubElement(properties, "property", {"name": _clean(key), "value": _clean(value)})
    for case in suite.cases:
        made.append(_case(case, seen))
    _total(made, suite.time_s)
    made.set("skipped", str(len(made.findall("testcase/skipped"))))
    return made


def _case(case: Case, seen: dict[tuple[str, ...], int]) -> ElementTree.Element:
    classname = _clean(case.classname)
    named = {"name": _numbered(seen, case.name, classname), "classname": classname, "time": f"{case.time_s:.3f}"}
    made = ElementTree.Element("testcase", named)
    if case.status is not Status.PASS:
        said = case.said or case.status.value
        told = {"message": _clean(shortened(said, _MESSAGE))} | ({"type": case.kind} if case.kind else {})
        ElementTree.SubElement(made, case.status.value, told).text = _clean(said)
    lines = [case.out, *(f"[[ATTACHMENT|{path}]]" for path in case.attachments if _can_be_attached(path))]
    if out := "\n".join(filter(None, lines)):
        ElementTree.SubElement(made, "system-out").text = _clean(out)
    return made


def _total(element: ElementTree.Element, time_s: float) -> None:
    """Counts of the cases below, which ``testsuites`` has too."""
    element.set("tests", str(len(list(element.iter("testcase")))))
    for name, tag in (("failures", "failure"), ("errors", "error")):
        element.set(name, str(len(list(element.iter(tag)))))
    element.set("time", f"{time_s:.3f}")


def _numbered(seen: dict[tuple[str, ...], int], name: str, *within: str) -> str:
    """The name, with a number behind it when it is not the first of that name there."""
    clean = _clean(name)
    count = seen[(*within, clean)] = seen.get((*within, clean), 0) + 1
    return clean if count == 1 else _numbered(seen, f"{clean} ({count})", *within)


def _can_be_attached(path: str) -> bool:
    return "]]" not in path and path.isprintable()


def _clean(text: str) -> str:
    found = possible(text[:_MOST])
    return found if len(text) <= _MOST else f"{found} ... ({len(text):,} characters)"
