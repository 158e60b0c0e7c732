"""Run folders of what a test has measured, as a run leaves them."""

from __future__ import annotations

from pathlib import Path

from hpn.results.run.folder import RunFolder, create
from hpn.scenarios.run.judgement import judge_measured, series_of, timelines_of, traces_of
from hpn.scenarios.run.measurement import Measurement
from hpn.scenarios.run.stored_records import keep
from tests.results.sample import MANIFEST


def judged_run(folder: Path, measured: Measurement) -> RunFolder:
    """The folder of a run with its records kept: judged and written."""
    run = create(folder)
    run.write_events(measured.events)
    keep(folder, measured)
    traces = traces_of(measured)
    metrics, verdict = judge_measured(measured, traces)
    run.write_metrics(metrics, timelines_of(measured))
    run.write_series(series_of(measured, traces))
    run.write_manifest(MANIFEST)
    run.write_verdict(verdict)
    return run
