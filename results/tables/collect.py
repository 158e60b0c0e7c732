"""Run folders read into rows: every table of every run, or nothing of a run that is damaged.

Changes when runs are found or read in another way.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpn.failover.analysis.model import DrillMetrics
from hpn.results.index.scan import each_once, run_folders
from hpn.results.run.figures import COUNTERS
from hpn.results.run.files import damaged, read
from hpn.results.run.folder import RunFolder
from hpn.results.run.identity import identity_in
from hpn.results.run.manifest import Manifest
from hpn.results.tables.registry import TABLES
from hpn.results.tables.table import Cell, RunFacts
from hpn.testbed.errors import HpnError, InputError, MachineError

_COUNTERS = "counters.json"
_MOST = 2**63
Rows = Sequence[tuple[Cell, ...]]


@dataclass(frozen=True, slots=True)
class Collected:
    """``rows`` by the table's name, from ``runs`` run folders; ``problems``: of each folder that was left out, why."""

    rows: Mapping[str, Rows]
    runs: int
    problems: tuple[HpnError, ...]


def found(roots: Iterable[Path]) -> list[Path]:
    """Every run folder that is or lies below one of these, each once. InputError where one leads to none."""
    return each_once(folder for root in roots for folder in _below(root))


def collected(folders: Iterable[Path]) -> Collected:
    """The rows of these run folders, in their order."""
    rows: dict[str, list[tuple[Cell, ...]]] = {name: [] for name in TABLES}
    runs, problems = 0, list[HpnError]()
    for folder in folders:
        try:
            facts = facts_of(folder)
            made = {name: list(table.rows_of(facts)) for name, table in TABLES.items()}
            for name, table in TABLES.items():
                _check_whole_numbers(folder / table.source, name, made[name])
        except (InputError, MachineError) as error:
            problems.append(error)
            continue
        runs += 1
        for name in TABLES:
            rows[name] += made[name]
    return Collected(rows, runs, tuple(problems))


def facts_of(folder: Path) -> RunFacts:
    """What tables take from a run. InputError, which names the file, where one is damaged or should be there."""
    run = RunFolder(folder)
    manifest = run.manifest()
    _check_files(run, manifest)
    verdict = run.verdict() if run.has_verdict else None
    ended = verdict is not None or _is_there(folder / "metrics.json")
    metrics = run.metrics() if ended else None
    if metrics is not None:
        _check(folder / "metrics.json", metrics)
    drill = run.drill() if _is_there(folder / "drill.json") else None
    return RunFacts(str(folder), manifest, identity_in(run, manifest).digests, verdict, metrics, drill)


def _check_files(run: RunFolder, manifest: Manifest) -> None:
    """Rows come from other files; a run of which one was cut is damaged all the same."""
    for name, wanted in manifest.files.items():
        if name == Path(name).name and os.path.isfile(run.path / name):
            run.check_size(name, wanted)
    if _is_there(counters := run.path / _COUNTERS):
        read(counters, COUNTERS)


def _below(root: Path) -> list[Path]:
    if not root.is_dir():
        raise InputError(f"{root} is no folder; name a run folder, or one that run folders are below")
    folders = [Path(each.path) for each in run_folders(root)]
    if not folders:
        raise InputError(f"no run folder is at or below {root}; name the folder that a drill got by --out")
    return folders


def _check(path: Path, metrics: DrillMetrics) -> None:
    """Every flow and program has a result for every edge, and every transfer its flow: rows are made of both."""
    edges, flows = len(metrics.edges), {flow.flow for flow in metrics.flows}
    counts = [(f"flow {flow.flow}", len(flow.edges)) for flow in metrics.flows]
    counts += [("a job", len(job.edges)) for job in (metrics.job, metrics.beside) if job is not None]
    for what, count in counts:
        if count != edges:
            raise damaged(path, f"{what} has {count} results, and there are {edges} edges")
    for each in () if metrics.transfers is None else metrics.transfers.transfers:
        if each.flow not in flows or (each.edge is not None and not 0 <= each.edge < edges):
            raise damaged(path, f"a transfer is of flow {each.flow} and edge {each.edge}, which are not there")


def _check_whole_numbers(path: Path, name: str, rows: Rows) -> None:
    """Statistics programs hold them in 64 bits."""
    if any(isinstance(cell, int) and not -_MOST <= cell < _MOST for row in rows for cell in row):
        raise damaged(path, f"a whole number of table {name} needs more than 64 bits")


def _is_there(path: Path) -> bool:
    """A link that leads nowhere is there: it is damage, and reading it says so."""
    return os.path.lexists(path)
