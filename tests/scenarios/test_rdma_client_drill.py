"""A drill whose client speaks verbs: it has Soft-RoCE, nothing of hpn receives beside it, its devices are counted."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from hpn.scenarios.drill.load import load_drill
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.run.rdma_counters import FILE, DeviceCounters
from hpn.testbed.errors import InputError

VERBS = "workload: {client: {run: verbs, size: 256 KiB}}"


def load(tmp_path: Path, work: str, topology: str = "tiny") -> Drill:
    file = tmp_path / "mine.yaml"
    file.write_text(
        f"drill: mine\nsummary: s\ndescription: d\ntopology: {topology}\n{work}\n"
        "timeline: {healthy: 2 s, settle: 2 s, faults:"
        " [{id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 2 s, for: 2 s}]}\n"
        "expect:\n  - state_restored: yes\n"
    )
    return load_drill(file)


def test_a_client_that_needs_rdma_gets_it_and_others_do_not(tmp_path: Path) -> None:
    assert load(tmp_path, VERBS).topology.soft_roce
    assert not load(tmp_path, "workload: {client: {run: command, command: [ls]}}").topology.soft_roce
    asked = load(tmp_path, "workload: {client: {run: command, command: [ls]}}", "{preset: tiny, soft_roce: yes}")
    assert asked.topology.soft_roce


@pytest.mark.parametrize(
    ("work", "topology", "words"),
    [
        (
            "workload: {load: 30 %, client: {run: verbs}}",
            "tiny",
            "leave the other keys of workload out",
        ),
        ("workload: {load: 30 %}", "{preset: tiny, soft_roce: yes}", "streams of hpn .* leave topology.soft_roce out"),
        (
            "job: {collective: {kind: all-reduce, size: 1 MB}}",
            "{preset: tiny, soft_roce: yes}",
            "a job of hpn cannot receive where Soft-RoCE does",
        ),
    ],
)
def test_what_receives_at_the_drivers_port_is_refused_at_its_line(
    tmp_path: Path, work: str, topology: str, words: str
) -> None:
    with pytest.raises(InputError, match=f"mine.yaml:5.*{words}"):
        load(tmp_path, work, topology)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("size: 0 B", "size"),
        ("size: 1 GiB", "size"),
        ("path_mtu: 1500", "path_mtu"),
        ("ib_timeout: 32", "ib_timeout"),
        ("retry_count: 8", "retry_count"),
        ("pause: 11 s", "pause"),
        ("color: red", "color"),
    ],
)
def test_keys_of_verbs_are_checked_with_their_line(tmp_path: Path, keys: str, words: str) -> None:
    with pytest.raises(
        InputError, match=f"mine.yaml:5.*(workload.client.{words}|unknown key '{words}' in workload.client)"
    ):
        load(tmp_path, f"workload: {{client: {{run: verbs, {keys}}}}}")


def test_a_runs_counters_are_what_it_added_and_the_folder_has_both(tmp_path: Path) -> None:
    readings = [
        {"a": {"sent_pkts": 5, "rcvd_pkts": 1}, "gone": {"sent_pkts": 3}},
        {"a": {"sent_pkts": 25, "rcvd_pkts": 1}},
    ]
    lab = SimpleNamespace(soft_roce=SimpleNamespace(counters=lambda: readings.pop(0)))
    counters = DeviceCounters(lab)  # type: ignore[arg-type]  # of a lab it asks nothing else
    counters.before()
    counters.after()
    assert counters.counted() == {"a": {"sent_pkts": 20, "rcvd_pkts": 0}}
    counters.write(tmp_path)
    assert json.loads((tmp_path / FILE).read_text()) == {
        "a": {"sent_pkts": {"before": 5, "after": 25}, "rcvd_pkts": {"before": 1, "after": 1}},
        "gone": {"sent_pkts": {"before": 3, "after": None}},
    }


def test_a_lab_without_devices_leaves_no_file(tmp_path: Path) -> None:
    counters = DeviceCounters(SimpleNamespace(soft_roce=None))  # type: ignore[arg-type]
    counters.before()
    counters.after()
    counters.write(tmp_path)
    assert counters.counted() == {}
    assert list(tmp_path.iterdir()) == []
