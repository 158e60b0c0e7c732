"""Which experiment a run is of: what was asked of which fabric decides, not what anything is called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hpn.results.run.folder import RunFolder, create
from hpn.results.run.identity import Identity, differences, experiment_of, identity_in, identity_of, sets_apart, since
from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.run.phase import in_phase, phase_of
from hpn.scenarios.run.stored_drill import asked_of
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import load_topology
from tests.results.sample import MANIFEST

_BASE = """
drill: cut
summary: one link is cut
topology: {preset: tiny}
workload: {pattern: permutation, queue_pairs: 2, load: 40 %}
profile: quick
timeline:
  healthy: 1500 ms
  faults:
    - {id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 1500 ms, for: 8 s}
  settle: 9 s
expect:
  - queue_pair_deaths: {at_most: 0}
"""
_JOB = _BASE.replace(
    "workload: {pattern: permutation, queue_pairs: 2, load: 40 %}",
    "job: {collective: {kind: all-reduce, size: 4 MB}, ib_timeout: 16}",
).replace("queue_pair_deaths: {at_most: 0}", "state_restored: yes")

DIGESTS = {
    "link-down": {"fabric": "7943a20e536cd76a", "drill": "e38518e6b7ade90f", "settings": "779aca9b9559f709"},
    "job-restarts": {"fabric": "0e09600d99fa0319", "drill": "f33eec546d47a67f", "settings": "8b4ba870810938bc"},
}


def drill(path: Path, text: str) -> Drill:
    (path / "cut.yaml").write_text(text)
    return catalogue.load(str(path / "cut.yaml"))


def identity(asked: Drill, number: int = 1) -> Identity:
    """Of repeat ``number`` of a drill."""
    made, phase = in_phase(asked, number), phase_of(asked.topology, number)
    fabric = build(made.topology)
    return identity_of(fabric, asked_of(made, fabric), phase.shift_ns / 1e6)


def test_buffers_of_switches_make_another_experiment_and_are_named(tmp_path: Path) -> None:
    switch = "topology: {preset: tiny, switch: {buffer: 2 MB}}"
    none, small = (
        identity(drill(tmp_path, _BASE.replace("topology: {preset: tiny}", text)))
        for text in ("topology: {preset: tiny}", switch)
    )
    large, watched = (
        identity(drill(tmp_path, _BASE.replace("topology: {preset: tiny}", text)))
        for text in (switch.replace("2 MB", "3 MB"), switch.replace("2 MB", "2 MB, watchdog: {detect_ms: 100}"))
    )
    assert len({experiment_of(each.digests) for each in (none, small, large, watched)}) == 4
    assert differences(small.told, large.told) == "switch.buffer: 2000000 | 3000000"
    assert "switch.watchdog.detect_ms: none | 100" in differences(small.told, watched.told)
    assert not [key for key in none.told if key.startswith("switch.")]


@pytest.mark.parametrize("name", ["link-down", "flap-storm", "job-restarts", "host-replaced", "link-down-bursts"])
def test_repeats_of_a_drill_are_one_experiment(name: str) -> None:
    found = [identity(catalogue.load(name), number) for number in (1, 2, 7)]
    assert found[1:] == [found[0]] * 2
    assert experiment_of(found[0].digests)


def test_another_architecture_is_told_with_the_rates_of_its_links(tmp_path: Path) -> None:
    one, other = (
        identity(drill(tmp_path, _BASE.replace("preset: tiny", f"preset: tiny, architecture: {name}")))
        for name in ("hpn", "single-tor")
    )
    found = differences(one.told, other.told)
    assert "links.access: 16 of 200 Gbit/s | 8 of 400 Gbit/s" in found, found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("drill: cut", "drill: another"),
        ("summary: one link is cut", "summary: whatever\ndescription: at length"),
        ("{preset: tiny}", "{preset: tiny, name: mine}"),
        ("{preset: tiny}", "{preset: tiny, lag: nft}"),
        ("at_most: 0", "at_most: 9"),
        ("id: cut", "id: other"),
        ("8 s}", "8000 ms}"),
    ],
)
def test_names_texts_and_limits_make_no_other_experiment(tmp_path: Path, before: str, after: str) -> None:
    assert before in _BASE
    other = identity(drill(tmp_path, _BASE.replace(before, after)))
    assert other == identity(drill(tmp_path, _BASE))


@pytest.mark.parametrize(
    ("text", "before", "after", "part", "words"),
    [
        (_BASE, "tiny}", "tiny, path_control: {enabled: no}}", "fabric", "path_control.enabled: true | false"),
        (_BASE, "tiny}", "tiny, bgp: {bfd: {}}}", "fabric", "bgp.bfd.interval_ms: none | 100"),
        (_BASE, "tiny}", "tiny, seed: 7}", "fabric", "seed: 1 | 7"),
        (_BASE, "h0.r0.0", "h0.r0.1", "drill", "timeline.faults[0].target: p0.s0.h0.r0.0 | p0.s0.h0.r0.1"),
        (_BASE, "for: 8 s", "for: 7 s", "drill", "timeline.faults[0]: failure at 1.5 s then repair at 9.5 s | "),
        (_BASE, "load: 40 %", "load: 20 %", "settings", "workload.load: 40 % | 20 %"),
        (_BASE, "profile: quick", "profile: full", "settings", "profile: quick | full"),
        (_JOB, "size: 4 MB", "size: 8 MB", "settings", "job.collective.size: 4 MB | 8 MB"),
        (_JOB, "ib_timeout: 16", "ib_timeout: 16, queue_pairs: 2", "settings", "job.queue_pairs: none | 2"),
    ],
)
def test_what_is_asked_otherwise_is_another_experiment_and_named(
    tmp_path: Path, text: str, before: str, after: str, part: str, words: str
) -> None:
    one, other = identity(drill(tmp_path, text)), identity(drill(tmp_path, text.replace(before, after, 1)))
    assert {key for key, digest in one.digests.items() if other.digests[key] != digest} == {part}
    assert differences(one.told, other.told).startswith(words)


def test_a_drill_put_on_two_fabrics_is_two_experiments() -> None:
    one, other = (identity(catalogue.load("tor-crash", load_topology(name))) for name in ("tiny", "small"))
    assert one.digests["fabric"] != other.digests["fabric"]
    assert experiment_of(one.digests) != experiment_of(other.digests)


def test_digests_stay_from_version_to_version() -> None:
    """A new key of topologies or drills that is as usual leaves them: else baselines and trends end with an update."""
    assert identity(catalogue.load("link-down")).digests == DIGESTS["link-down"]
    assert identity(catalogue.load("job-restarts")).digests == DIGESTS["job-restarts"]


def _folder(path: Path, name: str, **old: object) -> RunFolder:
    asked = catalogue.load(name)
    fabric = build(asked.topology)
    run = create(path)
    run.write_fabric(fabric)
    run.write_drill(replace(asked_of(asked, fabric), **old))  # type: ignore[arg-type]  # a test names fields
    run.write_manifest(MANIFEST)
    return run


def test_of_an_older_folder_it_is_made_of_what_the_folder_has(tmp_path: Path) -> None:
    run = _folder(tmp_path / "run", "link-down", asks={}, seed=None)
    assert identity_in(run, run.manifest()) == identity(catalogue.load("link-down"))
    kept = identity_in(run, replace(run.manifest(), digests={"fabric": "kept"}))
    assert kept.digests == {"fabric": "kept"}, "the manifest's own come first"


def test_what_an_older_folder_does_not_tell_has_no_digest(tmp_path: Path) -> None:
    run = _folder(tmp_path / "run", "job-restarts", asks={}, seed=None)
    found = identity_in(run, run.manifest())
    assert set(found.digests) == {"fabric", "drill"}, "it did not say what the job's ranks do"
    assert experiment_of(found.digests) == ""
    (run.path / "fabric.json").unlink()
    assert identity_in(run, run.manifest()) == Identity({}, {})


@pytest.mark.parametrize(
    ("key", "values", "words"),
    [
        ("nic_port_rate", ("200000000000", "400000000000"), "nic_port_rate was 200G, is 400G"),
        ("uplink_rate", ("25500000", "400"), "uplink_rate was 25.5M, is 400"),
        ("job.work.Training.data_bytes", ("1000000", "2097152"), "job.training.data_size was 1 MB, is 2 MiB"),
        ("job.work.Training.compute_ns", ("120000000", "1500"), "job.training.compute was 120 ms, is 1.5 us"),
        ("job.work.MessageWork.size_bytes", ("1000000",), "job.messages.size was 1 MB, is none"),
        ("job.restart.RestartPolicy.after_ns", ("4000000000",), "job.restart.after was 4 s, is none"),
        ("ecn.kmin_bytes", ("60000", "70000"), "ecn.kmin_bytes was 60000, is 70000"),
        ("workload.load", ("0.4", "1.0"), "workload.load was 40 %, is 100 %"),
        ("faults.0.kind", ("link-down", "flap"), "timeline.faults[0].fault was link-down, is flap"),
        ("faults.1.share", ("0.01", "0.5"), "timeline.faults[1].share was 1 %, is 50 %"),
        ("faults.1.period", ("800000000", "0"), "timeline.faults[1].period was 800 ms, is 0"),
        ("faults.1.count", ("3", "4"), "timeline.faults[1].count was 3, is 4"),
        ("faults.1.count", ("1e999", "9" * 70), f"timeline.faults[1].count was 1e999, is {'9' * 70}"),
        ("faults.0.moments", ("12 of digest 00ff", "[]"), "timeline.faults[0] was 12 of digest 00ff, is []"),
        ("healthy_ns", ("1000000000", "x"), "timeline.healthy was 1 s, is x"),
        ("delay_threshold_ns", ("100000000", "9"), "delay_threshold was 100 ms, is 9 ns"),
        ("bgp.hold_s", ("9", "30"), "bgp.hold_s was 9, is 30"),
    ],
)
def test_what_differs_is_told_as_files_write_it(key: str, values: Sequence[str], words: str) -> None:
    """A refusal said 'nic_port_rate was 200000000000': bits a second are in no file."""
    one, *others = [{"seed": "1", key: value} for value in values]
    assert since(one, others[0] if others else {"seed": "1"}) == words


def test_only_what_differs_is_told_and_not_without_end() -> None:
    one, other = ({f"key{at}": str(at + more) for at in range(20)} | {"same": "x"} for more in (0, 1))
    text = differences(one, other)
    assert text.startswith("key0: 0 | 1; key1: 1 | 2; ")
    assert text.endswith("; and 12 more")
    assert differences(one, {}) == differences(one, one) == ""
    assert sets_apart([one, {}, other]) == [
        "key0 0, key1 1, key2 2, and 17 more",
        "",
        "key0 1, key1 2, key2 3, and 17 more",
    ]
