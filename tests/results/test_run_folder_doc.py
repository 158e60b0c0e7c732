"""docs/run-folder.md names every file and every field, and what it says works without us works."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
import textwrap
import typing
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hpn.failover.analysis.hostload import HostMoment
from hpn.failover.analysis.job import SpanTime
from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.analysis.paths import PathAt
from hpn.results.run import fabric, place, series
from hpn.results.run.counted import QueuePairCounts, Workers
from hpn.results.run.drill import AskedDrill
from hpn.results.run.manifest import Manifest
from hpn.results.verdict import Verdict
from hpn.testbed.events import Event
from tests.results import whole

DOC = (Path(__file__).parents[2] / "docs" / "run-folder.md").read_text()
ROWS = {
    name: re.findall(r"(?:^|; )`(\w+)`", fields) for name, fields in re.findall(r"^\| ([^|`]+) \| (`.*) \|$", DOC, re.M)
}
FILES = (
    *(Manifest, AskedDrill, fabric._Fabric, Event, series._About, HostMoment, PathAt),
    *(QueuePairCounts, Workers, SpanTime, Verdict, DrillMetrics),
)
SHOWN = {"PathAt": "path", "_About": "series.json", "_Rows": "streams, messages"}


def _records(kind: object, seen: set[type]) -> Iterator[type]:
    """Every dataclass that a file is made of."""
    for part in typing.get_args(kind):
        yield from _records(part, seen)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind not in seen:
        seen.add(kind)
        yield kind
        for part in typing.get_type_hints(kind).values():
            yield from _records(part, seen)


@pytest.mark.parametrize("record", [r for seen in [set[type]()] for kind in FILES for r in _records(kind, seen)])
def test_every_field_of_every_record_is_documented(record: type) -> None:
    name = SHOWN.get(record.__name__, record.__name__.lstrip("_"))
    assert ROWS[name] == [field.name for field in dataclasses.fields(record)]


def test_every_file_is_documented(tmp_path: Path) -> None:
    run = whole.whole_run(tmp_path / "run")
    written = {path.name for path in run.path.iterdir()}
    assert {name for name in place._RESULTS if "." in name} >= written - {"manifest.json", "events.jsonl"}
    for name in written | {*place._RESULTS}:
        assert f"`{name}" in DOC


def test_series_are_read_without_us_as_the_page_says(tmp_path: Path) -> None:
    run = whole.whole_run(tmp_path / "run")
    (code,) = re.findall(r"Without hpn:\n\n((?:    .*\n)+)", DOC)
    script = f"{textwrap.dedent(code)}\nprint(received.tolist())"
    told = subprocess.run([sys.executable, "-c", script], cwd=run.path, capture_output=True, text=True, check=True)
    found = run.series().streams
    assert found is not None
    assert np.array_equal(np.array(json.loads(told.stdout)), found.received)
