"""Recompute the metrics and verdict of a run from its stored records (``hpn analyse``) and compare them. Pure.

Changes when a run folder gets another file that is derived from its records. Imports numpy.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hpn.failover.analysis.client import ClientFacts, RankLog
from hpn.failover.analysis.model import DrillMetrics
from hpn.results.judge.verdict import Verdict
from hpn.results.run import reading
from hpn.results.run.figures import metrics_files, verdict_files
from hpn.results.run.folder import RunFolder
from hpn.results.run.manifest import Manifest
from hpn.scenarios.run.auxiliary_files import copy_beside
from hpn.scenarios.run.judgement import judge_measured, series_of, timelines_of, traces_of
from hpn.scenarios.run.measurement import Measurement
from hpn.scenarios.run.stored_records import kept
from hpn.testbed import versions
from hpn.testbed.errors import InputError
from hpn.testbed.files.document import shorten
from hpn.testbed.files.units import format_size
from hpn.traffic.client.log import FOLDER, name_of

_AT_ONCE = 1 << 20


def gaps(folder: Path, client: ClientFacts) -> Iterator[str]:
    """Yield a line for each log that is not as the run wrote it."""
    for log in client.logs:
        name = f"{FOLDER}/{name_of(log.rank)}"
        try:
            gap = _gap(folder / name, log)
        except OSError as error:
            gap = error.strerror or str(error)
        if gap:
            yield f"{name}: {gap}"


def _gap(path: Path, log: RankLog) -> str:
    """Return how a log differs from what the run wrote, or '' if it does not. OSError when it cannot be read."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            return "no regular file"
        if found.st_size != log.size_bytes:
            return f"{format_size(found.st_size)}, and the run wrote {format_size(log.size_bytes)}"
        crc = 0
        while data := file.read(_AT_ONCE):
            crc = zlib.crc32(data, crc)
    return "" if crc == log.crc32 else "not what the run wrote"


_LEFT_AS_THEY_ARE = frozenset({"fabric", "drill", "series", "host", "paths", "queue pairs", "workers", "devices"})
_CONTEXT = 24  # characters shown before the first that differs: a line of flows.jsonl has a thousand


@dataclass(frozen=True)
class Analysed:
    """Metrics and verdict recomputed from the records of a run.

    ``differences``: one line for each file that differs from the run's own. ``gaps``: one line for each part or client
    log that is not as the run wrote it and is not recomputed.
    """

    run: RunFolder
    manifest: Manifest
    measured: Measurement
    metrics: DrillMetrics
    verdict: Verdict
    measured_by: str  # version of hpn
    analysed_by: str
    files: Mapping[str, bytes]
    differences: tuple[str, ...]
    gaps: tuple[str, ...] = ()

    def write(self, out: Path) -> RunFolder:
        """Write the recomputed metrics and verdict, with the run's own events, to a new run folder ``out``.

        InputError when ``out`` cannot be made or is not empty. A run and its records are never overwritten.
        """
        try:
            out.mkdir(parents=True, exist_ok=True)
            occupied = any(out.iterdir())
        except OSError as error:
            raise InputError(f"cannot make {out}: {error.strerror}; choose another --out") from error
        if occupied:
            raise InputError(f"{out} is not empty; choose another --out")
        made = RunFolder(out)
        made.write_events(self.run.events())
        made.write_metrics(self.metrics, timelines_of(self.measured))
        if self.manifest.format > 1:
            made.write_series(series_of(self.measured, traces_of(self.measured)))
            copy_beside(self.run, made)
        wrote = {**self.manifest.versions, "hpn analysed with": self.analysed_by}
        made.write_manifest(replace(self.manifest, versions=wrote, files=made.sizes()))
        made.write_verdict(self.verdict)
        return made


def analyse(run: RunFolder) -> Analysed:
    """Return metrics and verdict from the records of a run.

    InputError when it stored none, or records that no run can leave. MachineError when memory does not suffice.
    """
    manifest, found = run.manifest(), kept(run)
    try:
        metrics, verdict = judge_measured(found.measured)
    except (
        ArithmeticError,
        LookupError,
        ValueError,
    ) as error:  # facts that contradict each other in a way of their own
        what = shorten(str(error), 200, quoted=False)
        raise InputError(f"{run.path}: the records contradict each other ({what}); repeat the run") from error
    files = {**metrics_files(metrics, timelines_of(found.measured)), **verdict_files(verdict)}
    return Analysed(
        run=run,
        manifest=manifest,
        measured=found.measured,
        metrics=metrics,
        verdict=verdict,
        measured_by=found.hpn,
        analysed_by=versions.HPN,
        files=files,
        differences=tuple(_differences(run.path, files)),
        gaps=tuple(_gaps(run.path, metrics)),
    )


def _differences(folder: Path, files: Mapping[str, bytes]) -> Iterator[str]:
    for name, content in files.items():
        try:
            there = (folder / name).read_bytes()
        except OSError as error:
            yield f"{name}: {error.strerror}"
            continue
        if there != content:
            yield f"{name}, {_first_difference(there, content)}"


def _gaps(folder: Path, metrics: DrillMetrics) -> Iterator[str]:
    """Yield a line for each damaged client log or part not recomputed here: series, paths, fabric and the like."""
    found = reading.read(folder)
    yield from (f"{gap.part}: {gap.why}" for gap in found.gaps if gap.part in _LEFT_AS_THEY_ARE and not gap.by_format)
    for job in (metrics.job, metrics.beside):
        if job is not None and job.client is not None:
            yield from gaps(folder, job.client.facts)


def _first_difference(there: bytes, now: bytes) -> str:
    old, new = there.splitlines(), now.splitlines()
    at = _alike(old, new)
    pair = [lines[at].decode(errors="replace") if at < len(lines) else "" for lines in (old, new)]
    since = max(_alike(*pair) - _CONTEXT, 0)
    return f"line {at + 1}: {_shown(pair[0][since:])} there, {_shown(pair[1][since:])} by the records"


def _alike(one: Sequence[object], other: Sequence[object]) -> int:
    """Return the length of the common prefix of two sequences."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (first, second) in pairs if first != second), min(len(one), len(other)))


def _shown(text: str) -> str:
    return shorten(text.strip(), 80, quoted=False) or "its end"
