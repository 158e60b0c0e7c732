"""Each repeat's phase and seeds are drawn from its number, and nothing else of the drill changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hpn import cli
from hpn.results.run.folder import RunFolder, create
from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.workload import flows_of
from hpn.scenarios.run import calibrate, session
from hpn.scenarios.run.phase import in_phase, phase_of, span_ns
from hpn.scenarios.run.run_order import Order
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.spec import BgpSpec, FabricSpec, LacpSpec
from tests.results.sample import MANIFEST, metrics, verdict

SPEC = FabricSpec()


def test_the_first_repeat_is_the_drill_as_its_file_has_it() -> None:
    for drill in catalogue.ls():
        assert in_phase(drill, 1) is drill


@pytest.mark.parametrize("name", catalogue.names())
def test_a_repeat_shifts_every_fault_alike_and_keeps_traffic_and_limits(name: str) -> None:
    drill = catalogue.load(name)
    for number in range(2, 5):
        phase, found = phase_of(drill.topology, number), in_phase(drill, number)
        shifts = {b.at_ns - a.at_ns for a, b in zip(drill.timeline.faults, found.timeline.faults, strict=True)}
        assert shifts <= {phase.shift_ns}
        assert found.timeline.end_ns == drill.timeline.end_ns + phase.shift_ns
        assert [f.fault for f in found.timeline.faults] == [f.fault for f in drill.timeline.faults]
        assert found.expectations == drill.expectations
        fabric, other = build(drill.topology), build(found.topology)
        assert flows_of(drill.workload, fabric) == flows_of(found.workload, other), "who sends to whom is the drill's"
        assert [n.ecmp_seed for n in fabric.switches] != [n.ecmp_seed for n in other.switches]


def test_shifts_are_spread_evenly_over_the_longest_timer_and_the_same_every_time() -> None:
    shifts = [phase_of(SPEC, number).shift_ns for number in range(2, 1002)]
    assert span_ns(SPEC) == 3 * 10**9, "BGP's keepalive"
    for tenth in range(10):
        held = sum(tenth <= 10 * shift / span_ns(SPEC) < tenth + 1 for shift in shifts)
        assert 60 < held < 140
    assert len({phase_of(SPEC, number).seed for number in range(1, 1001)}) == 1000
    assert [phase_of(SPEC, n).shift_ns for n in (1, 2, 3)] == [0, 2_110_554_548, 384_826_437]


@pytest.mark.parametrize(
    ("spec", "span_s"),
    [
        (FabricSpec(lacp=LacpSpec(rate="slow")), 30),
        (FabricSpec(bgp=BgpSpec(hold_s=3, keepalive_s=1)), 1),
        (FabricSpec(bgp=BgpSpec(hold_s=90, keepalive_s=30)), 30),
    ],
)
def test_the_span_is_the_longest_period_of_the_fabrics_timers(spec: FabricSpec, span_s: int) -> None:
    assert span_ns(spec) == span_s * 10**9


def ordered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> list[tuple[str, int, int]]:
    """Folder, repeat and phase of every run that the command makes."""
    made: list[tuple[str, int, int]] = []

    def run(order: Order, _listen: object) -> RunFolder:
        made.append((order.out.name, order.repeat, order.phase))
        folder = create(order.out)
        folder.write_manifest(replace(MANIFEST, drill=order.drill.name, repeat=order.repeat, phase=order.phase))
        folder.write_metrics(metrics())
        folder.write_verdict(verdict(metrics()))
        return folder

    monkeypatch.setattr(session, "run", run)
    monkeypatch.setattr(calibrate, "check", lambda *_: None)
    arguments = ["drill", "run", "link-down", "--out", str(tmp_path), *options]
    cli.command_line.main(arguments, prog_name="hpn", standalone_mode=False)
    return made


@pytest.mark.parametrize(
    ("options", "runs"),
    [
        ((), [("link-down", 0, 1)]),
        (("--phase", "7"), [("link-down", 0, 7)]),
        (("--repeat", "2"), [("link-down-1", 1, 1), ("link-down-2", 2, 2)]),
        (("--repeat", "2", "--phase", "7"), [("link-down-7", 7, 7), ("link-down-8", 8, 8)]),
    ],
)
def test_any_run_of_a_series_can_be_made_again_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: Sequence[str], runs: list[tuple[str, int, int]]
) -> None:
    assert ordered(tmp_path, monkeypatch, *options) == runs


def test_the_phase_of_a_run_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ordered(tmp_path, monkeypatch, "--phase", "7")
    assert "phase 7: faults" in capsys.readouterr().out
