"""Auxiliary files of a run folder: drill, fabric, host, paths, and the counters of queue pairs and workers.

Changes when a run writes another such file. They are written after the run from data already in memory, so they do not
affect the measurement.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from hpn.failover.analysis.hostload import course
from hpn.failover.analysis.paths import Paths
from hpn.results.run.files import content, write
from hpn.results.run.folder import RunFolder
from hpn.results.run.identity import Identity, identity_of
from hpn.results.run.manifest import Manifest
from hpn.scenarios.drill.planned import PlannedRun
from hpn.scenarios.run.counters import queue_pairs_of, workers_of
from hpn.scenarios.run.observation import Observation
from hpn.scenarios.run.rdma_counters import FILE as DEVICES
from hpn.scenarios.run.stored_drill import asked_of
from hpn.testbed.errors import InputError
from hpn.testbed.events import Event

_FILES = ("fabric.json", "drill.json", "host.jsonl", "paths.jsonl", "queue_pairs.jsonl", "workers.json")


def write_beside(
    folder: RunFolder, planned: PlannedRun, observed: Observation, events: Sequence[Event], manifest: Manifest
) -> Identity:
    """Write all auxiliary files and return the identity of the experiment; ``events`` must be in order of time.

    OSError when a file cannot be written.
    """
    fabric = planned.fabric
    asked = asked_of(planned.drill, fabric)
    folder.write_fabric(fabric)
    folder.write_drill(asked)
    folder.write_host(course(observed.samples, os.cpu_count() or 1))
    folder.write_counts(queue_pairs_of(observed.report, observed.flows), workers_of(observed.report))
    begin = observed.paths
    if begin is not None:
        span_ns = observed.start_ns, observed.end_ns
        folder.write_paths(Paths(fabric, begin).over((*events, *observed.edges, *observed.looked), span_ns))
    return identity_of(fabric, asked, manifest.phase_ms)


def copy_beside(folder: RunFolder, to: RunFolder) -> None:
    """Copy the auxiliary files of a run to the folder of its new analysis; files that the run lacks are skipped."""
    for name in (*_FILES, DEVICES):
        try:
            write(to.path / name, content(folder.path / name))
        except InputError:
            continue
