"""What a drill's guest gets: more memory and time for a lab of many links, more memory for what its client takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.load import load_drill
from hpn.scenarios.run import guest_need
from hpn.scenarios.run.guest_need import more_mb, times_as_long
from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.build import build

DRILL = """
drill: size
summary: a lab of some size
{more}topology: {{segments: {segments}, hosts: 32, rails: 2, aggs: 4}}
timeline: {{faults: [{{id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 1 s, for: 1 s}}]}}
expect: [{{{expect}}}]
"""


@pytest.mark.parametrize(("segments", "links"), [(1, 144), (4, 576), (8, 1152)])
def test_a_lab_of_many_links_gets_a_guest_of_more_memory_and_time(tmp_path: Path, segments: int, links: int) -> None:
    file = tmp_path / "size.yaml"
    file.write_text(
        DRILL.format(segments=segments, more="workload: {load: 1 %}\n", expect="worst_outage: {below: 1 s}")
    )
    drill = load_drill(file)
    assert len(build(drill.topology).links) == links
    assert more_mb(drill) == {144: 0, 576: 77, 1152: 768}[links]
    assert times_as_long(drill) == {144: 1.0, 576: 1.125, 1152: 2.25}[links]


def test_a_client_gets_what_its_processes_take_besides(tmp_path: Path) -> None:
    file = tmp_path / "client.yaml"
    client = 'workload: {client: {run: command, command: ["true"], ranks: 3}}\n'
    file.write_text(DRILL.format(segments=1, more=client, expect="job_survives: yes"))
    assert more_mb(load_drill(file)) == 3 * 24


@pytest.mark.parametrize(("limit", "refused"), [(65_530, True), (78_399, True), (78_400, False)])
def test_a_machine_that_allows_too_few_mappings_is_told_how_many_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, refused: bool
) -> None:
    (tmp_path / "limit").write_text(f"{limit}\n")
    monkeypatch.setattr(guest_need, "_MAP_LIMIT", tmp_path / "limit")
    drill = catalogue.load("segment-tor-crash")
    if not refused:
        guest_need.check_maps(drill)
        return
    with pytest.raises(MachineError, match=f"needs 78400 mappings .* allows {limit}: as root, sysctl -w vm.max_map_"):
        guest_need.check_maps(drill)


def test_a_usual_lab_fits_and_a_machine_that_tells_no_limit_is_taken_to_have_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guest_need.check_maps(catalogue.load("tor-crash"))
    monkeypatch.setattr(guest_need, "_MAP_LIMIT", tmp_path / "none")
    guest_need.check_maps(catalogue.load("segment-tor-crash"))
