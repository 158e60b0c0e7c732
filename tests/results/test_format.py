"""Format 2 letter by letter: who changes it sees here what a reader of old folders will meet. HPN_UPDATE_GOLDEN=1."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpn.results.run.manifest import manifest_from
from tests.results.test_terminal import check_golden
from tests.results.whole import whole_run

SMALL = (
    *("drill.json", "series.json", "host.jsonl", "paths.jsonl", "queue_pairs.jsonl", "workers.json", "spans.jsonl"),
    *("events.jsonl", "verdict.json"),
)


@pytest.mark.parametrize("name", SMALL)
def test_a_file_of_format_2_is_as_agreed(tmp_path: Path, name: str) -> None:
    check_golden(f"format-2/{name}", (whole_run(tmp_path / "run").path / name).read_text())


def test_a_fabric_has_these_keys(tmp_path: Path) -> None:
    found = json.loads((whole_run(tmp_path / "run").path / "fabric.json").read_text())
    first = {key: rows[0] for key, rows in found.items() if isinstance(rows, list) and rows}
    check_golden("format-2/fabric-first.json", json.dumps({**found, **first, "spec": sorted(found["spec"])}, indent=1))


def test_a_manifest_of_format_1_as_an_older_hpn_left_it_is_read() -> None:
    path = Path(__file__).parent / "golden" / "format-1" / "manifest.json"
    found = manifest_from(path, path.read_bytes())
    assert (found.format, found.drill, found.command, found.engine) == (
        1,
        "link-down",
        ("drill", "run", "link-down"),
        "uml-virtual-time",
    )
    assert (found.commit, found.machine, found.files, found.slow) == ("", {}, {}, 1)
