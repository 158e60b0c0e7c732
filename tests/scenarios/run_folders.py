"""Run folders of what a test has measured, as a run leaves them."""

from __future__ import annotations

from pathlib import Path

from results.run.folder import RunFolder, create
from scenarios.run.judgement import judge_measured, timeline_of
from scenarios.run.kept import keep
from scenarios.run.measured import Measured
from tests.results.sample import MANIFEST


def judged_run(folder: Path, measured: Measured) -> RunFolder:
    """The folder of a run with its records kept: judged and written."""
    run = create(folder)
    run.write_events(measured.events)
    keep(folder, measured)
    metrics, verdict = judge_measured(measured)
    run.write_metrics(metrics, timeline_of(measured))
    run.write_manifest(MANIFEST)
    run.write_verdict(verdict)
    return run
