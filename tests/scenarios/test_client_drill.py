"""A drill with a client: read, described, refused where the machine lacks it, analysed again; its page of docs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from hpn.failover.analysis.client import ClientFacts, RankEnd, client_doubts
from hpn.failover.analysis.job import DeathFact
from hpn.results.judge.verdict import Outcome
from hpn.results.text.terminal import summary
from hpn.scenarios.drill.describe import describe
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.workload import queue_pairs_of
from hpn.scenarios.run import client_site, clients_on_lab
from hpn.scenarios.run.analyse import analyse
from hpn.scenarios.run.judgement import judge_measured
from hpn.scenarios.run.measurement import Measurement
from hpn.scenarios.run.stored_records import FOLDER, kept
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.files.document import parse
from hpn.traffic.client import lines
from hpn.traffic.client.client import Client
from hpn.traffic.client.registry import CLIENTS
from tests.failover.synthetic import S
from tests.product.hpn import Hpn
from tests.results.sample import MANIFEST
from tests.results.shown import as_text
from tests.scenarios.client_runs import client_alone
from tests.scenarios.run_folders import judged_run

DOC = (Path(__file__).parents[2] / "docs" / "clients.md").read_text()
DRILL = """
drill: ring
summary: a link is cut while a program runs
topology: tiny
workload: {WORKLOAD}
timeline:
  faults: [{id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 1 s, for: 2 s}]
expect:
  - iteration_time: {below: 300 ms}
  - job_survives: yes
"""
ALONE = "{client: {run: command, command: [no-such-program]}}"


def drill(workload: str = ALONE) -> Drill:
    return drill_from(parse(DRILL.replace("{WORKLOAD}", workload), "d.yaml"), Path())


def test_a_client_alone_has_no_streams_and_beside_it_they_are_the_workload_s() -> None:
    alone, beside = drill(), drill("{client: {run: command, command: [a]}, pattern: pairs, load: 10 %}")
    fabric = build(alone.topology)
    assert (alone.streams, queue_pairs_of(alone, fabric)) == (False, ())
    assert beside.streams
    assert beside.workload.pattern == "pairs"
    assert len(queue_pairs_of(beside, fabric)) == 16
    assert beside.client is not None


def test_a_slow_kernel_gives_a_client_more_time_to_get_ready() -> None:
    slowed = drill().slowed(10).client
    assert slowed is not None
    assert slowed.deadline == 300 * S


def test_a_client_is_described() -> None:
    lines_of = "\n".join(describe(drill("{client: {run: command, per: nic, command: [a]}}")))
    assert "client command (any program, one process a rank): 8 ranks, one a NIC; ready within 30 s" in lines_of


def test_a_client_that_is_empty_is_no_client() -> None:
    with pytest.raises(InputError, match=r"workload.client is empty; write run: command"):
        drill("{client: }")


def test_what_the_machine_lacks_is_said_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="'no-such-program' is not in PATH; install it, or write"):
        client_site.check(drill())
    file = tmp_path / "d.yaml"
    file.write_text(DRILL.replace("{WORKLOAD}", ALONE))
    process = Hpn(tmp_path).start("drill", "run", str(file), "--out", str(tmp_path / "out"))
    said = "".join(process.communicate(timeout=60))
    assert process.returncode == MachineError.exit_code
    assert "client command: 'no-such-program' is not in PATH" in said
    assert "starting" not in said
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


def _measured(deaths: tuple[DeathFact, ...] = (), misread: int = 0) -> Measurement:
    return client_alone(drill().expectations, deaths, misread)


def test_steps_are_iterations_and_come_again_from_the_records_byte_for_byte(tmp_path: Path) -> None:
    run = judged_run(tmp_path / "run", _measured())
    found = analyse(run)
    assert found.differences == ()
    assert found.metrics.job is not None
    assert len(found.metrics.job.iterations) == 80
    assert found.metrics.job.wrong == 1
    span = found.metrics.job.spans[0]
    assert (span.label, span.wrong, span.mean_ms) == ("all-reduce 1 MB", 1, 99.0)
    assert span.busbw_bps == pytest.approx(8e6 / 0.099)
    assert [check.text for check in found.verdict.checks if check.outcome is Outcome.FAIL] == [
        "wrong results at most 0"
    ]


def test_records_of_a_client_that_no_run_can_have_are_refused(tmp_path: Path) -> None:
    run = judged_run(tmp_path / "run", _measured())
    path = run.path / FOLDER / "facts.json"
    path.write_text(path.read_text().replace('"reporting": 2', '"reporting": -2'))
    with pytest.raises(InputError, match="its client has counts or times that are none"):
        kept(run)


def test_the_terminal_shows_ranks_their_ends_and_who_died() -> None:
    death = DeathFact(5 * S, "rank 1 in p0.s0.h1: killed by signal 11")
    metrics, verdict = judge_measured(_measured((death,)))
    said = as_text(summary(MANIFEST, metrics, verdict), 160)
    assert "client command: 2 ranks, 2 of which tell steps, 80 steps done by all of these, one every 100 ms" in said
    assert "the client died: rank 1 in p0.s0.h1: killed by signal 11" in said
    assert "used its retries up" not in said
    assert metrics.job is not None
    assert [metrics.job.cause_of(each) for each in metrics.job.deaths] == [death.queue_pair]
    assert verdict.outcome is Outcome.FAIL


@pytest.mark.parametrize("ranks", [4, 16])
def test_the_table_of_ranks_fits_a_terminal_of_80_columns_and_words_are_told_once(ranks: int) -> None:
    metrics, verdict = judge_measured(_measured())
    assert metrics.job is not None
    assert metrics.job.client is not None
    step = f"hpn step 34 begin={12 * S} end={13 * S} kind=all-gather bytes=250000 sum=0b4a521014230401"
    ends = [RankEnd(rank, f"p0.s{rank}.h0", f"p0.s{rank}.h0.r0", 35, "", None, False, step) for rank in range(ranks)]
    for gone in (1, 3):
        ends[gone] = replace(ends[gone], how="exit code 1, and left 2 processes behind", died=True, last_words="lost")
    facts = replace(metrics.job.client.facts, ranks=tuple(ends))
    job = replace(metrics.job, client=replace(metrics.job.client, facts=facts))
    said = as_text(summary(MANIFEST, replace(metrics, job=job), verdict), 80).split("ranks of the client\n")[1]
    table, below, *_ = said.split("\n\n")
    assert len(table.splitlines()) == ranks + 1, "no row is broken, and the table is whole"
    assert below.splitlines()[0] == "last words of ranks 1, 3: lost"
    assert "hpn step" not in said


def test_a_line_that_cannot_be_read_makes_the_run_inconclusive() -> None:
    _, verdict = judge_measured(_measured(misread=3))
    assert "3 lines of the client were to be steps and are none, first 'step x'" in verdict.reasons


def test_work_that_is_done_too_early_and_steps_that_nobody_told_say_nothing() -> None:
    end = RankEnd(0, "h", "n", 5, "exit code 0", 7 * S, False, "")
    facts = ClientFacts("command", (end,), 1, True)
    (said,) = client_doubts(facts, 9 * S, measured=True)
    assert said.startswith("rank 0 of the client had done its work 2 s before the run's end")
    assert list(client_doubts(facts, 8 * S, measured=True)) == []
    assert list(client_doubts(replace(facts, reporting=0, ranks=()), 9 * S, measured=False)) == []
    (said,) = client_doubts(replace(facts, ranks=()), 9 * S, measured=False)
    assert said.startswith("no step of the client was done by all of its ranks")


@pytest.mark.parametrize("key", CLIENTS)
def test_every_key_of_a_client_is_explained(key: str) -> None:
    own = [field.alias or name for name, field in CLIENTS[key].model_fields.items()]
    rows = " ".join(line.split("|")[1] for line in DOC.splitlines() if line.startswith("| `"))
    assert [name for name in own if f"`{name}`" not in rows] == []
    assert f"`{key}`" in next(line for line in DOC.splitlines() if line.startswith("| `run` |"))
    assert [name for name in Client.model_fields if f"`{name}`" not in rows] == []


def test_every_variable_and_every_word_of_a_line_is_explained() -> None:
    source = Path(clients_on_lab.__file__).read_text()
    for name in re.findall(r'"(HPN_[A-Z_]+)"', source):
        assert f"`{name}`" in DOC, f"docs/clients.md does not name {name}"
    for key in lines._KEYS:
        assert f"{key}=" in DOC, f"docs/clients.md does not explain {key}="
