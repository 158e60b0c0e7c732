"""What CI systems read of a JUnit report, restated from the programs that read it.

Jenkins validates against junit-10.xsd of its xunit plugin (jenkinsci/xunit-plugin on GitHub): its elements, attributes
and the form of times are the table below. With that file itself at hand, HPN_JUNIT_XSD=PATH has xmllint (Debian:
libxml2-utils) check the same reports against it.
GitLab (lib/gitlab/ci/parsers/test/junit.rb) shows the text of the first failure, error or skipped of a case and nothing
of their attributes, an attachment where a failed case's system-out names one, and one case for each suite, class, name.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

_TIME = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?")  # the plugin's pattern of a duration in seconds
_TOTALS = {"name", "time", "tests", "failures", "errors"}
_TOLD = frozenset({"type", "message"})
_ELEMENTS: dict[str, tuple[set[str], set[str], set[str]]] = {  # children, attributes needed, attributes allowed
    "testsuites": ({"testsuite"}, set(), _TOTALS),
    "testsuite": (
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
        {"name", "tests", "failures", "errors"},
        _TOTALS | {"group", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url"},
    ),
    "properties": ({"property"}, set(), set()),
    "property": (set(), {"name", "value"}, {"name", "value"}),
    "testcase": (
        {"skipped", "error", "failure", "system-out", "system-err"},
        {"name"},
        {"name", "time", "classname", "group"},
    ),
    **{name: (set(), set(), set(_TOLD)) for name in ("failure", "error", "skipped")},
    **{name: (set(), set(), set()) for name in ("system-out", "system-err")},
}
_WITH_TEXT = {"failure", "error", "skipped", "system-out", "system-err"}


def problems(text: str) -> list[str]:
    """What the schema would refuse in a report."""
    root = ElementTree.fromstring(text)
    found = [] if root.tag in {"testsuites", "testsuite"} else [f"it begins with {root.tag}"]
    return found + [problem for element in root.iter() for problem in _of(element)]


def _of(element: ElementTree.Element) -> Iterator[str]:
    if element.tag not in _ELEMENTS:
        yield f"no element {element.tag}"
        return
    children, needed, allowed = _ELEMENTS[element.tag]
    yield from (f"{element.tag} has no {name}" for name in needed - set(element.keys()))
    yield from (f"{element.tag} may not have {name}" for name in set(element.keys()) - allowed)
    yield from (f"{element.tag} may not hold {child.tag}" for child in element if child.tag not in children)
    time = element.get("time", "")
    if element.tag != "testcase" and _TIME.fullmatch(time) is None:
        yield f"{element.tag}: {time} is no time"
    if (element.text or "").strip() and element.tag not in _WITH_TEXT:
        yield f"{element.tag} may not hold text"


def check_with_the_schema_itself(text: str, folder: Path) -> None:
    """Have xmllint say whether junit-10.xsd takes a report; skips where either is not here."""
    schema, xmllint = os.environ.get("HPN_JUNIT_XSD"), shutil.which("xmllint")
    if schema is None or xmllint is None:
        pytest.skip("HPN_JUNIT_XSD names no junit-10.xsd, or xmllint is not here: apt install libxml2-utils")
    (folder / "report.xml").write_text(text, encoding="utf-8")
    command = [xmllint, "--noout", "--schema", schema, str(folder / "report.xml")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr


def shown_by_gitlab(text: str) -> dict[tuple[str, str, str], tuple[str, str]]:
    """By suite, class and name of a case, its status and what is shown of it; of several the first, as GitLab does."""
    found: dict[tuple[str, str, str], tuple[str, str]] = {}
    for suite in ElementTree.fromstring(text).iter("testsuite"):
        for case in suite.iter("testcase"):
            key = (suite.get("name", ""), case.get("classname", ""), case.get("name", ""))
            result = next(
                (case.find(tag) for tag in ("failure", "error", "skipped") if case.find(tag) is not None), None
            )
            said = ("success", "") if result is None else (result.tag, (result.text or "").strip())
            found.setdefault(key, said)
    return found
