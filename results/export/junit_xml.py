"""JUnit report as text, valid for junit-10.xsd of Jenkins' xunit plugin and for GitLab. Pure.

Changes when a reader of such reports needs something else. Times are seconds with three decimals. A case's text is the
content of its failure, error or skipped element, as GitLab shows only that. The ``message`` attribute has its
beginning, for other readers. A line '[[ATTACHMENT|path]]' in system-out attaches a file. GitLab, which looks in the
project's folder, and the junit-attachments plugin of Jenkins support that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from xml.etree import ElementTree

from hpn.results.text.width import shortened
from hpn.results.text.xml import possible

_MOST = 20_000  # maximum characters of a text: CI systems limit reports, GitLab to 30 MB a file
_MESSAGE = 500


class Status(StrEnum):
    """Status of a case; except for a pass it is the name of the XML element."""

    PASS = "pass"
    FAILURE = "failure"
    ERROR = "error"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Case:
    """A test case. ``said``: why it is no pass; ``kind``: the type of failure; ``out``: its output."""

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
    """A test suite. ``timestamp``: its start, ISO 8601, '' if unknown."""

    name: str
    cases: Sequence[Case]
    properties: Mapping[str, str] = field(default_factory=dict)
    timestamp: str = ""
    time_s: float = 0.0


def report(name: str, suites: Iterable[Suite]) -> str:
    """Return the complete report. Suites and cases with equal names get numbers."""
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
    """Set the counts of the cases below, as ``testsuites`` has them too."""
    element.set("tests", str(len(list(element.iter("testcase")))))
    for name, tag in (("failures", "failure"), ("errors", "error")):
        element.set(name, str(len(list(element.iter(tag)))))
    element.set("time", f"{time_s:.3f}")


def _numbered(seen: dict[tuple[str, ...], int], name: str, *within: str) -> str:
    """Return the name, with a number appended if it is not the first of that name there."""
    clean = _clean(name)
    count = seen[(*within, clean)] = seen.get((*within, clean), 0) + 1
    return clean if count == 1 else _numbered(seen, f"{clean} ({count})", *within)


def _can_be_attached(path: str) -> bool:
    return "]]" not in path and path.isprintable()


def _clean(text: str) -> str:
    found = possible(text[:_MOST])
    return found if len(text) <= _MOST else f"{found} ... ({len(text):,} characters)"
