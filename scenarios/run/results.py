"""Results of a finished run: analysed, judged, and written to its folder. Imports numpy.

Changes when a run folder has another file that follows from the measurement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hpn.results.run.folder import RunFolder
from hpn.results.run.manifest import Manifest
from hpn.scenarios.drill.planned import PlannedRun
from hpn.scenarios.run.auxiliary_files import write_beside
from hpn.scenarios.run.judgement import judge_measured, series_of, timelines_of, traces_of
from hpn.scenarios.run.measurement import measured_of
from hpn.scenarios.run.observation import Observation
from hpn.scenarios.run.stored_records import keep
from hpn.testbed.events import Event


def write_results(
    folder: RunFolder,
    planned: PlannedRun,
    observed: Observation,
    events: Sequence[Event],
    manifest: Manifest,
    *,
    keep_records: bool,
) -> None:
    """Write metrics, series, verdict and the final manifest; the files of the run's packets are removed. OSError."""
    measured = measured_of(planned, observed, events)
    if keep_records:
        keep(folder.path, measured)
    traces = traces_of(measured)
    metrics, verdict = judge_measured(measured, traces)
    folder.write_metrics(metrics, timelines_of(measured))
    folder.write_series(series_of(measured, traces))
    identity = write_beside(folder, planned, observed, measured.events, manifest)
    folder.write_manifest(replace(manifest, digests=identity.digests, files=folder.sizes()))
    folder.write_verdict(verdict)
    for path in observed.report.files:
        Path(path).unlink(missing_ok=True)
