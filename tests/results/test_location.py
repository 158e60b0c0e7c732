"""Location in a stored run: whose word is doubted, which host a rank is on, and what an edited folder is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydantic import JsonValue

from hpn.failover.analysis.job import SpanTime
from hpn.failover.analysis.metrics.series import MessageSeries, StreamSeries
from hpn.failover.analysis.paths import PathAt
from hpn.failover.analysis.series import Bins, SeriesFlow
from hpn.failover.locating.sources import SOURCES
from hpn.results.run.figures import SPAN
from hpn.results.run.files import lines_of
from hpn.results.run.folder import RunFolder
from hpn.results.run.location import located_in, recorded_in
from hpn.results.run.series import RunSeries
from hpn.results.text.location import columns, document, lines
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.presets import PRESETS
from tests.results.whole import whole_run

S = 10**9
FABRIC = build(PRESETS["tiny"].spec)
BINS = Bins(S, S // 100, 400)
FLOWS = (SeriesFlow(0, "one", "p0.s0.h0.r0", "p0.s0.h1.r0", 256),)
PATH = PathAt(S, 0, "begin", 50_000, 0, 0, ("p0.s0.h0.r0.0", "p0.s0.h1.r0.0"))


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run of one stream that loses nothing, and of a queue pair of a job whose rank 2 computes longest."""
    found = whole_run(tmp_path / "run")
    sent = np.ones((1, BINS.count), np.uint32)
    streams = StreamSeries(BINS, FLOWS, sent, sent, sent * 100)
    messages = MessageSeries(BINS, FLOWS, sent.astype(np.uint64), sent * 2000)
    found.write_series(RunSeries(streams=streams, messages=messages))
    found.write_fabric(FABRIC)
    found.write_paths([PATH])
    spans = [SpanTime(rank, 0, "compute", "compute", S, (70 + 30 * (rank == 2)) * S // 20, 0) for rank in range(3)]
    found.write_metrics(found.metrics())
    (found.path / "spans.jsonl").write_bytes(lines_of(SPAN, spans))
    return found


def test_what_a_run_that_cannot_be_trusted_says_is_inconclusive(run: RunFolder) -> None:
    sure, load = located_in(run, "likelihood")
    assert not any("inconclusive" in line for line in lines(sure, load))
    starved = "our processes waited for a CPU 40 % of the time they could have run (limit 5 %)"
    run.write_verdict(replace(run.verdict(), reasons=(starved,)))
    found, load = located_in(run, "likelihood")
    assert next(lines(found, load)) == f"inconclusive: {starved}"
    assert document(found, load)["doubts"] == [starved]


@pytest.mark.parametrize("source", ["loss", "delay", "rate"])
def test_an_answer_says_its_source_and_what_it_counted(run: RunFolder, source: str) -> None:
    found, load = located_in(run, "likelihood", source)
    told = next(lines(found, load))
    assert f"1 paths, 300 {SOURCES[source].counted}" in told  # of 400; the LAG changed during the rest
    assert f"source {source}, method likelihood" in told
    assert f">{SOURCES[source].bad}" in columns(source)


def test_a_rank_is_on_the_host_that_the_job_s_order_gives_it(run: RunFolder) -> None:
    asks: dict[str, JsonValue] = {"job": {"order": "interleaved", "gpus": 1, "hosts": 3}}
    run.write_drill(replace(run.drill(), asks=asks))
    assert recorded_in(run).hosts == {0: "p0.s0.h0", 1: "p0.s1.h0", 2: "p0.s0.h1"}
    run.write_drill(replace(run.drill(), asks={"job": {}}))
    assert recorded_in(run).hosts == {at: f"p0.s{at // 4}.h{at // 2 % 2}" for at in range(8)}


@pytest.mark.parametrize("source", ["job", "counters"])
def test_a_run_without_records_of_a_source_is_named_in_the_refusal(run: RunFolder, source: str) -> None:
    with pytest.raises(InputError, match=f"{run.path}: no "):
        located_in(run, "likelihood", source)


def test_a_path_over_a_link_that_the_fabric_does_not_have_is_refused(run: RunFolder) -> None:
    run.write_paths([replace(PATH, links=("p0.s0.h0.r0.0", "nowhere"))])
    with pytest.raises(InputError, match="nowhere"):
        located_in(run, "likelihood")


def test_how_long_messages_were_under_way_is_read_back_and_missing_in_older_runs(run: RunFolder) -> None:
    series = run.series()
    assert series.messages is not None
    assert series.messages.busy_us is not None
    assert series.messages.busy_us.tolist() == [[2000] * BINS.count]
    run.write_series(replace(series, messages=replace(series.messages, busy_us=None)))
    older = run.series().messages
    assert older is not None
    assert older.busy_us is None
    with pytest.raises(InputError, match="timed"):
        located_in(run, "likelihood", "rate")
