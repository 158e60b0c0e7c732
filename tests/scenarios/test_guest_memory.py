"""How much memory a drill's guest gets: more for a lab of many links, and for what its client takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.drill.load import load_drill
from scenarios.run.guest_memory import more_mb
from testbed.fabric.build import build

DRILL = """
drill: size
summary: a lab of some size
{more}topology: {{segments: {segments}, hosts: 32, rails: 2, aggs: 4}}
timeline: {{faults: [{{id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 1 s, for: 1 s}}]}}
expect: [{{{expect}}}]
"""


@pytest.mark.parametrize(("segments", "links"), [(1, 144), (4, 576), (8, 1152)])
def test_a_lab_of_many_links_gets_a_guest_of_more_memory(tmp_path: Path, segments: int, links: int) -> None:
    file = tmp_path / "size.yaml"
    file.write_text(
        DRILL.format(segments=segments, more="workload: {load: 1 %}\n", expect="worst_outage: {below: 1 s}")
    )
    drill = load_drill(file)
    assert len(build(drill.topology).links) == links
    assert more_mb(drill) == {144: 0, 576: 77, 1152: 768}[links]


def test_a_client_gets_what_its_processes_take_besides(tmp_path: Path) -> None:
    file = tmp_path / "client.yaml"
    client = 'workload: {client: {run: command, command: ["true"], ranks: 3}}\n'
    file.write_text(DRILL.format(segments=1, more=client, expect="job_survives: yes"))
    assert more_mb(load_drill(file)) == 3 * 24
