"""An audit's folder: what is left to run, what a row takes from a run, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.analysis.short_routes import SHORT
from hpn.results.judge.verdict import decide, holds
from hpn.results.run.folder import RunFolder
from hpn.scenarios.audit.answer import answer_of
from hpn.scenarios.audit.audit import Audit, check_place, left_of, plan, wanted_of, write
from hpn.scenarios.audit.drill import PlannedFailure
from hpn.scenarios.audit.promises import default_promises
from hpn.testbed.errors import HpnError, InputError, MachineError, NoisyError
from hpn.testbed.events import Event, EventKind
from hpn.testbed.fabric.load import load_topology
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.vm.engines import named
from tests.fabric import own_network
from tests.results.sample import MANIFEST, metrics

ENGINE = "uml-virtual-time"


def _audit(out: Path, *kinds: str, spec: FabricSpec | None = None) -> Audit:
    return plan(spec or load_topology("tiny"), kinds or ("link",), 0, default_promises(), out)


def _made(audit: Audit, failure: PlannedFailure, found: DrillMetrics) -> None:
    folder = audit.folder(failure)
    folder.mkdir(parents=True)
    run = RunFolder(folder)
    run.write_manifest(MANIFEST)
    run.write_metrics(found)
    run.write_verdict(decide([holds("state restored", True)]))


def _crossed(found: DrillMetrics, *flows: int) -> DrillMetrics:
    edges = tuple(replace(each, edge=replace(each.edge, crossed=flows, acks_crossed=())) for each in found.edges)
    return replace(found, edges=edges)


def test_a_run_is_left_until_it_is_whole_and_of_the_same_drill(tmp_path: Path) -> None:
    audit = _audit(tmp_path)
    assert left_of(audit) == audit.failures
    write(audit, left_of(audit), ENGINE)
    first, second = audit.failures[:2]
    _made(audit, first, metrics())
    _made(audit, second, metrics())
    (audit.folder(second) / "verdict.json").unlink()
    assert left_of(audit) == audit.failures[1:]
    audit.kept.drill_file(first.name).write_text(first.text + "# other\n")
    assert left_of(audit) == audit.failures
    write(audit, left_of(audit), ENGINE)
    assert left_of(audit) == audit.failures, "its run is of another drill"


def test_the_command_of_a_run_names_its_drill_file(tmp_path: Path) -> None:
    audit = _audit(tmp_path)
    wanted = wanted_of(audit, audit.failures[:1], named(ENGINE))
    (request,) = wanted.values()
    assert request.order.command == ("drill", "run", "drills/link-p0-s0-h0-r0-0.yaml", "--engine", ENGINE)
    assert request.order.out == tmp_path / "runs" / "link-p0-s0-h0-r0-0"


def test_a_row_has_the_figures_of_its_run(tmp_path: Path) -> None:
    audit = _audit(tmp_path)
    write(audit, audit.failures, ENGINE)
    _made(audit, audit.failures[0], _crossed(metrics(outage_ms=600), 0))
    answer = answer_of(audit, ENGINE, {})
    (row,) = answer.rows
    assert answer.waiting == 31
    assert (row.outcome, row.run, row.crossed) == ("pass", "runs/link-p0-s0-h0-r0-0", 1)
    assert row.failure is not None
    assert row.failure.outage.low <= 600 <= row.failure.outage.high
    assert (row.failure.lossy, row.failure.flows) == (1, 3)
    assert [(dark.nic, dark.way.value, dark.cut_off) for dark in row.failure.dark] == [("p0.s0.h0.r0", "up", False)]
    assert row.cut_off == ()
    assert row.back is not None
    assert row.back.lost == 0


def test_a_lost_member_is_told_to_be_one_draw_of_a_timer(tmp_path: Path) -> None:
    for kind, drawn in (("member", True), ("switch", False)):
        audit = _audit(tmp_path / kind, kind)
        write(audit, audit.failures, ENGINE)
        _made(audit, audit.failures[0], _crossed(metrics(), 0))
        assert [row.by_timers for row in answer_of(audit, ENGINE, {}).rows] == [drawn]


def test_a_nic_that_stays_dark_until_the_repair_is_cut_off(tmp_path: Path) -> None:
    audit = _audit(tmp_path)
    write(audit, audit.failures, ENGINE)
    _made(audit, audit.failures[0], _crossed(metrics(outage_ms=2500), 0))
    (row,) = answer_of(audit, ENGINE, {}).rows
    assert row.cut_off == ("p0.s0.h0.r0",)
    assert row.single_point


def test_the_nics_of_a_host_that_fails_itself_do_not_count(tmp_path: Path) -> None:
    audit = _audit(tmp_path, "host")
    write(audit, audit.failures, ENGINE)
    _made(audit, audit.failures[0], _crossed(metrics(outage_ms=2500), 0))
    (row,) = answer_of(audit, ENGINE, {}).rows
    assert row.failure is not None
    assert (row.element, row.cut_off, row.failure.lost, row.failure.flows) == ("p0.s0.h0", (), 0, 1)


def test_a_failure_that_no_stream_crossed_is_no_pass(tmp_path: Path) -> None:
    audit = _audit(tmp_path)
    write(audit, audit.failures, ENGINE)
    _made(audit, audit.failures[0], _crossed(metrics(outage_ms=0)))
    (row,) = answer_of(audit, ENGINE, {}).rows
    assert (row.outcome, row.crossed) == ("inconclusive", 0)
    assert "no stream crossed it" in row.reasons[0]


def test_runs_that_were_refused_are_rows_too(tmp_path: Path) -> None:
    audit = _audit(tmp_path)
    names = [failure.name for failure in audit.failures]
    refused: dict[str, HpnError] = {names[0]: MachineError("no kernel"), names[1]: NoisyError("too noisy")}
    answer = answer_of(audit, ENGINE, refused)
    assert [(row.outcome, row.reasons) for row in answer.rows] == [
        ("error", ("no kernel",)),
        ("inconclusive", ("too noisy",)),
    ]
    assert (answer.waiting, answer.exit_code) == (30, 3)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("x")
    with pytest.raises(InputError, match="holds no audit; choose another --out"):
        check_place(tmp_path)


def test_a_folder_of_another_audit_is_refused(tmp_path: Path) -> None:
    audit = _audit(tmp_path)
    write(audit, (), ENGINE)
    check_place(tmp_path)
    write(_audit(tmp_path, "host"), (), ENGINE)
    with pytest.raises(InputError, match="another engine"):
        write(audit, (), "host")
    with pytest.raises(InputError, match="another topology"):
        write(_audit(tmp_path, spec=load_topology("tiny-rail-only")), (), ENGINE)
    (tmp_path / "plan.json").write_text("[]")
    with pytest.raises(InputError, match="damaged"):
        write(audit, (), ENGINE)


def test_only_elements_that_are_named_fail(tmp_path: Path) -> None:
    def targets(*patterns: str) -> list[tuple[str, ...]]:
        found = plan(load_topology("tiny"), ("link", "switch"), 20, default_promises(), tmp_path, patterns)
        return [each.failure.targets for each in found.failures]

    assert targets("p0.s0.t0.0", "p0.s0.h0.r0.?")[:3] == [("p0.s0.h0.r0.0",), ("p0.s0.h0.r0.1",), ("p0.s0.t0.0",)]
    assert all({"p0.s0.t0.0"} & {*each} for each in targets("p0.s0.t0.0")), "pairs too"
    assert targets("p0.s0.h0:r0p0")[0] == targets("p0.s0.t0.0:h0r0")[0] == ("p0.s0.h0.r0.0",), "by an end"
    with pytest.raises(InputError, match="no failure of these kinds is of 'leaf9'; --list shows what there is"):
        targets("p0.s0.t0.0", "leaf9")


def test_routes_that_a_configuration_leaves_short_are_those_of_the_first_run(tmp_path: Path) -> None:
    audit = _audit(tmp_path / "out", spec=load_topology(str(own_network.write(tmp_path))))
    write(audit, audit.failures, ENGINE)
    short = [
        Event(1, EventKind.ROUTE, "leaf1", f"10.0.0.{at}/32", SHORT, {"next_hops": at % 2, "links_allow": 2})
        for at in (1, 2)
    ]
    for failure in audit.failures[:2]:
        _made(audit, failure, _crossed(metrics(), 0))
        RunFolder(audit.folder(failure)).write_events(short)
    assert answer_of(audit, ENGINE, {}).short_routes == (
        "before any fault leaf1 lacks next hops of 2 host routes: 10.0.0.2/32 by 0 of 2 links",
    )
