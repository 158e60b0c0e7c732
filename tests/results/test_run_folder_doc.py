"""docs/run-folder.md names every file, the reference every field, and what is said to work without us works."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from docs.site.records import FILES, name_of, records, run_folder
from hpn.results.run import lifecycle
from tests.results import whole

DOC = (Path(__file__).parents[2] / "docs" / "run-folder.md").read_text()
REFERENCE = run_folder()


@pytest.mark.parametrize(
    "record", [r for seen in [set[type]()] for kind in FILES.values() for r in records(kind, seen)]
)
def test_every_field_of_every_record_is_in_the_reference(record: type) -> None:
    part = REFERENCE.split(f"\n### {name_of(record)}\n", 1)[1].split("\n## ", 1)[0].split("\n### ", 1)[0]
    assert re.findall(r"^\| `(\w+)` \| [^|]+ \|", part, re.M) == [field.name for field in dataclasses.fields(record)]


def test_the_reference_says_of_a_field_what_it_holds_and_means() -> None:
    assert "| `checks` | list of [Check](#check) |  |" in REFERENCE
    assert "| `outcome` | `pass` or `fail` or `inconclusive` |  |" in REFERENCE
    assert "| `plane` | integer or null | that carried its data as the edge came; null: " in REFERENCE
    assert "| `worst_outage_interval_ms` | list of `low`, `high` | " in REFERENCE
    assert set(re.findall(r"\(#(\w+)\)", REFERENCE)) <= {
        name.lower() for name in re.findall(r"^### (\w+)$", REFERENCE, re.M)
    }


def test_every_file_is_documented(tmp_path: Path) -> None:
    run = whole.whole_run(tmp_path / "run")
    written = {path.name for path in run.path.iterdir()}
    assert {name for name in lifecycle._RESULTS if "." in name} >= written - {"manifest.json", "events.jsonl"}
    for name in written | {*lifecycle._RESULTS}:
        assert f"`{name}" in DOC


def test_series_are_read_without_us_as_the_page_says(tmp_path: Path) -> None:
    run = whole.whole_run(tmp_path / "run")
    (code,) = re.findall(r"Without hpn:\n\n((?:    .*\n)+)", DOC)
    script = f"{textwrap.dedent(code)}\nprint(received.tolist())"
    told = subprocess.run([sys.executable, "-c", script], cwd=run.path, capture_output=True, text=True, check=True)
    found = run.series().streams
    assert found is not None
    assert np.array_equal(np.array(json.loads(told.stdout)), found.received)
