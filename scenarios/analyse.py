"""``hpn analyse``: metrics and verdict of a run made anew from what it kept, and held against what it says. Pure.

Changes when a run folder gets another file that follows from its records. Imports numpy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from failover.model import DrillMetrics
from results.folder import RunFolder, metrics_files, verdict_files
from results.manifest import Manifest
from results.verdict import Verdict
from scenarios.judgement import judge_measured
from scenarios.kept import kept
from testbed.errors import InputError
from testbed.yamlfile import shorten


@dataclass(frozen=True)
class Analysed:
    """What the records of a run say now. ``differences``: one line for each file that says something else."""

    run: RunFolder
    manifest: Manifest
    metrics: DrillMetrics
    verdict: Verdict
    measured_by: str  # version of hpn
    analysed_by: str
    files: Mapping[str, bytes]
    differences: tuple[str, ...]

    def write(self, out: Path) -> RunFolder:
        """Metrics and verdict as they are now, with the run's own events, in a run folder of their own.

        InputError when ``out`` cannot be made or is not empty: no run, nor its records, is ever written over.
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
        made.write_metrics(self.metrics)
        made.write_verdict(self.verdict)
        versions = {**self.manifest.versions, "hpn analysed with": self.analysed_by}
        made.write_manifest(replace(self.manifest, versions=versions))
        return made


def analyse(run: RunFolder) -> Analysed:
    """Metrics and verdict from the records of a run.

    InputError when it kept none, or such as no run leaves; MachineError when there is no memory for them.
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
    files = {**metrics_files(metrics), **verdict_files(verdict)}
    return Analysed(
        run=run,
        manifest=manifest,
        metrics=metrics,
        verdict=verdict,
        measured_by=found.hpn,
        analysed_by=version("hpn"),
        files=files,
        differences=tuple(_differences(run.path, files)),
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


def _first_difference(there: bytes, now: bytes) -> str:
    old, new = there.splitlines(), now.splitlines()
    at = next(
        (at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), min(len(old), len(new))
    )
    said = [_shown(lines[at]) if at < len(lines) else "its end" for lines in (old, new)]
    return f"line {at + 1}: {said[0]} there, {said[1]} by the records"


def _shown(line: bytes) -> str:
    return shorten(line.decode(errors="replace").strip(), 80, quoted=False)
