"""One run, ordered by two commands: its fabric is the drill's own, or the same file given as --topology."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.product.hpn import Hpn, skip_without_virtual_time

TOPOLOGY = "name: theirs\nsegments: 1\nhosts: 3\nrails: 2\naggs: 2\n"
DRILL = """
drill: mine
summary: a dirty link and a cut on a fabric of its own
topology: theirs.yaml
workload: {pattern: permutation, load: 10 %}
profile: quick
timeline:
  healthy: 1 s
  faults:
    - {id: dirty, fault: silent-drop, target: p0.s0.h0.r0.0, at: 1 s, for: 2 s, share: 5 %}
    - {id: cut, fault: link-down, target: p0.s0.h1.r1.0, at: 1500 ms, for: 1 s}
  settle: 1 s
expect:
  - worst_outage: {fault: cut, below: 100 ms, edge: failure}
"""
MADE = ("events.jsonl", "flows.jsonl", "paths.jsonl", "queue_pairs.jsonl", "series.npz", "metrics.json")


@pytest.mark.guest
def test_the_figures_of_a_run_do_not_depend_on_how_its_fabric_was_named(tmp_path: Path) -> None:
    """Every file that a command reads moves the guest's clock."""
    skip_without_virtual_time()
    (tmp_path / "theirs.yaml").write_text(TOPOLOGY)
    (tmp_path / "mine.yaml").write_text(DRILL)
    command = ("drill", "run", "mine.yaml", "--engine", "uml-virtual-time", "--out")
    Hpn(tmp_path).run(*command, "plain")
    Hpn(tmp_path).run(*command, "named", "--topology", "theirs.yaml")
    plain, named = tmp_path / "plain" / "mine", tmp_path / "named" / "mine"
    assert [name for name in MADE if (plain / name).read_bytes() != (named / name).read_bytes()] == []
