"""A complete run folder read at once, with a list of the parts that are missing. Imports numpy.

Changes when a folder has another part. Reports, pictures and exports take only a ``Run``, so they work wherever the
folder is. One missing or damaged part leaves the others readable; an older format lacks some by design.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from hpn.failover.analysis.hostload import HostMoment
from hpn.failover.analysis.job import SpanTime
from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.analysis.paths import PathAt
from hpn.results.judge.verdict import Verdict
from hpn.results.run.counters import QueuePairCounts, Workers
from hpn.results.run.drill import AskedDrill
from hpn.results.run.folder import RunFolder, load
from hpn.results.run.manifest import Manifest
from hpn.results.run.series import RunSeries
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.events import Event
from hpn.testbed.fabric.model import Fabric

T = TypeVar("T")

_MANY_PATHS = {"spray_ports", "multipath_paths"}
"""Settings of jobs whose queue pairs take many paths."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A part of a run that its folder lacks, and the reason in one line."""

    part: str
    why: str
    by_format: bool = False  # folders of that format do not have it; else it is missing or damaged


@dataclass(frozen=True, eq=False)
class Run:
    """One run. A part is None if the run had no such data, or if one of ``gaps`` has its name."""

    path: Path
    manifest: Manifest
    drill: AskedDrill | None
    fabric: Fabric | None
    events: tuple[Event, ...] | None
    metrics: DrillMetrics | None
    verdict: Verdict | None
    series: RunSeries | None
    host: tuple[HostMoment, ...] | None
    paths: tuple[PathAt, ...] | None
    queue_pairs: tuple[QueuePairCounts, ...] | None
    workers: Workers | None
    spans: tuple[SpanTime, ...] | None
    client_spans: tuple[SpanTime, ...] | None
    devices: Mapping[str, Mapping[str, Mapping[str, int | None]]] | None
    gaps: tuple[Gap, ...]


class _Reader:
    """Reader of the parts of one folder, which records those that cannot be read."""

    def __init__(self, folder: RunFolder, manifest: Manifest) -> None:
        self.gaps: list[Gap] = []
        self._folder = folder
        self._format = manifest.format
        self._sizes = manifest.files

    def part(self, name: str, file: str, read: Callable[[], T], since: int = 1) -> T | None:
        """Return a part of a run from ``file``; ``since``: the first format that has it.

        None, and a gap, if unreadable.
        """
        if self._format < since:
            self.gaps.append(Gap(name, f"format {self._format} of run folders has none", by_format=True))
            return None
        try:
            found = read()
            if file in self._sizes:
                self._folder.check_size(file, self._sizes[file])
        except (InputError, MachineError) as error:
            self.gaps.append(Gap(name, str(error)))
            return None
        return found

    def perhaps(self, name: str, file: str, read: Callable[[], T], there: object, since: int = 1) -> T | None:
        """Return the same for a part that a run has only if ``there`` is true."""
        return self.part(name, file, read, since) if there else None


def read(path: Path) -> Run:
    """Return the run at ``path``. InputError when it is no run folder, or for an unknown format."""
    folder = load(path)
    manifest = folder.manifest()
    reader = _Reader(folder, manifest)
    fabric = reader.part("fabric", "fabric.json", folder.fabric, 2)
    has_devices = fabric is not None and fabric.spec.soft_roce
    return Run(
        path=path,
        manifest=manifest,
        drill=reader.part("drill", "drill.json", folder.drill, 2),
        fabric=fabric,
        events=reader.part("events", "events.jsonl", folder.events),
        metrics=reader.part("metrics", "metrics.json", folder.metrics),
        verdict=reader.part("verdict", "verdict.json", folder.verdict),
        series=reader.part("series", "series.json", folder.series, 2),
        host=reader.part("host", "host.jsonl", folder.host, 2),
        paths=reader.perhaps("paths", "paths.jsonl", folder.paths, not _MANY_PATHS & manifest.job.keys(), 2),
        queue_pairs=reader.part("queue pairs", "queue_pairs.jsonl", folder.queue_pairs, 2),
        workers=reader.part("workers", "workers.json", folder.workers, 2),
        spans=reader.perhaps("spans", "spans.jsonl", folder.spans, manifest.job or manifest.client),
        client_spans=reader.perhaps(
            "client spans", "client-spans.jsonl", folder.client_spans, manifest.job and manifest.client
        ),
        devices=reader.perhaps("devices", "hw_counters.json", folder.devices, has_devices),
        gaps=tuple(reader.gaps),
    )
