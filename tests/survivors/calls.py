"""Which tests call which functions of hpn: a pytest plugin, ``-p tests.survivors.calls --calls FILE``."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType

import pytest

_PACKAGE = f"{Path(__file__).resolve().parents[2] / 'hpn'}/"
_called: set[CodeType] = set()
_tests: dict[str, set[str]] = defaultdict(set)
_seconds: dict[str, float] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add where to write what was seen."""
    parser.addoption("--calls", required=True)


def _note(frame: FrameType, event: str, _argument: object) -> None:
    if event == "call" and frame.f_code.co_filename.startswith(_PACKAGE):
        _called.add(frame.f_code)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Note what fixtures call: for all tests of the file, as only the first of them sees a shared fixture made."""
    yield from _watched(item.nodeid.split("::", 1)[0])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Note what a test itself calls."""
    yield from _watched(item.nodeid)


def _watched(test: str) -> Iterator[None]:
    _called.clear()
    sys.setprofile(_note)
    try:
        yield
    finally:
        sys.setprofile(None)
        for code in _called:
            _tests[function_of(code)].add(test)


def function_of(code: CodeType) -> str:
    """'results/judge/verdict.py Judge.verdict': what is defined within a function counts as the function."""
    return f"{code.co_filename.removeprefix(_PACKAGE)} {code.co_qualname.split('.<locals>', 1)[0]}"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how long a test took; one that did not pass tells nothing of a mutant."""
    if report.when == "call" and report.passed:
        _seconds[report.nodeid] = report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write both down."""
    seen = {"tests": {name: sorted(tests) for name, tests in sorted(_tests.items())}, "seconds": _seconds}
    Path(session.config.getoption("--calls")).write_text(json.dumps(seen))
