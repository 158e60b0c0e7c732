"""The run folder: everything one drill writes, stored atomically and read back typed.

Changes when a file is added to it; docs/run-folder.md describes each file. Files of one kind have modules of their own:
figures, fabric, series.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from hpn.failover.analysis.hostload import HostMoment
from hpn.failover.analysis.job import SpanTime
from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.analysis.paths import PathAt
from hpn.results.judge.verdict import Verdict
from hpn.results.run.claim import Claim, claimed
from hpn.results.run.counters import QUEUE_PAIR, WORKERS, QueuePairCounts, Workers
from hpn.results.run.drill import DRILL, AskedDrill
from hpn.results.run.fabric import fabric_from, fabric_json
from hpn.results.run.figures import (
    NO_TIMELINES,
    SOMETIMES,
    SPAN,
    VERDICT,
    Timelines,
    metrics_files,
    verdict_files,
)
from hpn.results.run.files import content, dumped, lines_of, read, read_lines, write
from hpn.results.run.lifecycle import take, with_all_above
from hpn.results.run.manifest import Manifest, manifest_from
from hpn.results.run.metrics import metrics_in
from hpn.testbed.errors import InputError
from hpn.testbed.events import Event
from hpn.testbed.fabric.model import Fabric

if TYPE_CHECKING:
    from hpn.results.run.series import RunSeries

_MANIFEST = TypeAdapter(Manifest)
_EVENT = TypeAdapter(Event)
_HOST = TypeAdapter(HostMoment)
_PATH = TypeAdapter(PathAt)
_DEVICES = TypeAdapter(Mapping[str, Mapping[str, Mapping[str, int | None]]])


@dataclass(frozen=True, slots=True)
class RunFolder:
    """One run on disk. Writers replace complete files; readers raise InputError for missing or damaged ones."""

    path: Path

    def write_manifest(self, manifest: Manifest) -> None:
        """Write ``manifest.json``; its presence makes the folder a run folder."""
        write(self.path / "manifest.json", dumped(_MANIFEST, manifest, indent=2))

    def write_events(self, events: Iterable[Event]) -> None:
        """Write ``events.jsonl``: the timeline, one event a line."""
        write(self.path / "events.jsonl", lines_of(_EVENT, events))

    def write_metrics(self, metrics: DrillMetrics, timelines: Timelines = NO_TIMELINES) -> None:
        """Write ``metrics.json``, ``flows.jsonl``, and the optional files that have content, such as those of a job."""
        files = metrics_files(metrics, timelines)
        for name in sorted({*SOMETIMES} - files.keys()):
            (self.path / name).unlink(missing_ok=True)  # of an earlier analysis
        for name, found in files.items():
            write(self.path / name, found)

    def write_verdict(self, verdict: Verdict) -> None:
        """Write ``verdict.json``."""
        for name, found in verdict_files(verdict).items():
            write(self.path / name, found)

    def write_fabric(self, fabric: Fabric) -> None:
        """Write ``fabric.json``."""
        write(self.path / "fabric.json", fabric_json(fabric))

    def write_drill(self, drill: AskedDrill) -> None:
        """Write ``drill.json``."""
        write(self.path / "drill.json", dumped(DRILL, drill, indent=1))

    def write_series(self, series: RunSeries) -> None:
        """Write ``series.json`` and ``series.npz``."""
        from hpn.results.run.series import write_series  # numpy, which no other file needs

        write_series(self.path, series)

    def write_host(self, course: Iterable[HostMoment]) -> None:
        """Write ``host.jsonl``: the machine's load, sample by sample."""
        write(self.path / "host.jsonl", lines_of(_HOST, course))

    def write_paths(self, paths: Iterable[PathAt]) -> None:
        """Write ``paths.jsonl``: each flow's initial path and every change."""
        write(self.path / "paths.jsonl", lines_of(_PATH, paths))

    def write_counts(self, queue_pairs: Iterable[QueuePairCounts], workers: Workers) -> None:
        """Write ``queue_pairs.jsonl`` and ``workers.json``."""
        write(self.path / "queue_pairs.jsonl", lines_of(QUEUE_PAIR, queue_pairs))
        write(self.path / "workers.json", WORKERS.dump_json(workers, indent=1))

    def sizes(self) -> Mapping[str, int]:
        """Return the bytes of each ``.jsonl`` file, for ``Manifest.files``: they reveal a file cut between lines."""
        found = sorted(self.path.glob("*.jsonl"))
        return {path.name: path.stat().st_size for path in found}

    def check_size(self, name: str, wanted: int) -> None:
        """Raise InputError when a file's size differs, for example when it was cut between two lines."""
        path = self.path / name
        if (size := path.stat().st_size) != wanted:
            raise InputError(f"{path} has {size} bytes and the run left {wanted}: it was cut or edited; repeat the run")

    def manifest(self) -> Manifest:
        """Return the facts of the run. InputError also for a format that this hpn does not know."""
        path = self.path / "manifest.json"
        return manifest_from(path, content(path))

    def events(self) -> tuple[Event, ...]:
        """Return the timeline."""
        return read_lines(self.path / "events.jsonl", _EVENT)

    def metrics(self) -> DrillMetrics:
        """Return the measurements."""
        path = self.path / "metrics.json"
        return metrics_in(path, content(path))

    def fabric(self) -> Fabric:
        """Return the fabric that was measured, spare hosts included."""
        path = self.path / "fabric.json"
        return fabric_from(path, content(path))

    def drill(self) -> AskedDrill:
        """Return the drill as it ran."""
        return read(self.path / "drill.json", DRILL)

    def series(self) -> RunSeries:
        """Return flows and ports over time; imports numpy."""
        from hpn.results.run.series import read_series

        return read_series(self.path)

    def host(self) -> tuple[HostMoment, ...]:
        """Return the load of the machine, sample by sample."""
        return read_lines(self.path / "host.jsonl", _HOST)

    def paths(self) -> tuple[PathAt, ...]:
        """Return source port, NIC port and plane of each flow: the initial ones and every change, in order of time."""
        return read_lines(self.path / "paths.jsonl", _PATH)

    def queue_pairs(self) -> tuple[QueuePairCounts, ...]:
        """Return the counters of each queue pair's sending end."""
        return read_lines(self.path / "queue_pairs.jsonl", QUEUE_PAIR)

    def workers(self) -> Workers:
        """Return the counters of each worker process."""
        return read(self.path / "workers.json", WORKERS)

    def spans(self) -> tuple[SpanTime, ...]:
        """Return the activity of each rank of a job, or of a client, over time."""
        return read_lines(self.path / "spans.jsonl", SPAN)

    def client_spans(self) -> tuple[SpanTime, ...]:
        """Return the activity over time of each rank of a client that ran alongside a job."""
        return read_lines(self.path / "client-spans.jsonl", SPAN)

    def devices(self) -> Mapping[str, Mapping[str, Mapping[str, int | None]]]:
        """Return the counters of RDMA devices: by NIC and by the driver's name, 'before' and 'after' the run."""
        return read(self.path / "hw_counters.json", _DEVICES)

    @property
    def has_verdict(self) -> bool:
        """True if the run reached a verdict; a run that was inconclusive from the start did not."""
        return os.path.isfile(self.path / "verdict.json")

    def verdict(self) -> Verdict:
        """Return the verdict."""
        return read(self.path / "verdict.json", VERDICT)


def run_document(run: RunFolder, anew: Mapping[str, bytes] | None = None) -> dict[str, object]:
    """Return a run as one JSON value: its folder, manifest, metrics and verdict.

    ``anew``: contents that replace files.
    """
    contents = {f"{part}.json": part for part in ("manifest", "metrics", "verdict")}
    files = {part: (anew or {}).get(name) or content(run.path / name) for name, part in contents.items()}
    return {"folder": str(run.path), **{part: json.loads(text) for part, text in files.items()}}


@contextmanager
def claimed_run(path: Path) -> Iterator[Claim]:
    """Claim an empty folder for a new run, exclusively while it is made; files of an earlier run are deleted.

    InputError when it holds something else, another process makes a run there, or it cannot be created. Then nothing
    was created or deleted. MachineError when it vanishes before the end.
    """
    with claimed(path) as claim:
        emptied(path)
        yield claim
        claim.check()


def create(path: Path) -> RunFolder:
    """Return an empty run folder and release the claim: for content that is complete, such as a run made elsewhere."""
    with claimed(path, keep=True):
        return emptied(path)


def emptied(path: Path) -> RunFolder:
    """Return an empty run folder that another process has claimed, such as the parent that started this guest."""
    take(path, _is_manifest)
    return RunFolder(path)


def _is_manifest(path: Path) -> bool:
    try:
        read(path, _MANIFEST)
    except InputError:
        return False
    return True


def prepare(out: Path) -> None:
    """Create the OUT folder before anything runs. InputError when reports could not be written there."""
    try:
        with_all_above(out)
    except OSError as error:
        raise InputError(f"cannot make {out}: {error.strerror}; choose another --out") from error
    if not os.access(out, os.W_OK | os.X_OK):
        raise InputError(f"cannot write to {out}; choose another --out")


def load(path: Path) -> RunFolder:
    """Return the run folder at ``path``. InputError when it is none."""
    if not os.path.isfile(path / "manifest.json"):  # unlike Path.is_file, False where it cannot be looked at
        raise InputError(
            f"{path} is not a run folder (no manifest.json); name the folder a drill printed or got by --out"
        )
    return RunFolder(path)
