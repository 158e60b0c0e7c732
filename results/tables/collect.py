"""Rows of tables read from run folders: every table of a run, or none if the run is damaged.

Changes when runs are located or read in another way.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hpn.failover.analysis.model import DrillMetrics
from hpn.results.index.scan import each_once, run_folders
from hpn.results.run.figures import COUNTERS
from hpn.results.run.files import damaged, read
from hpn.results.run.folder import RunFolder
from hpn.results.run.identity import all_settings, identity_in
from hpn.results.run.manifest import Manifest
from hpn.results.tables.registry import TABLES
from hpn.results.tables.runs import RUNS
from hpn.results.tables.settings import Told, setting_cells, setting_columns
from hpn.results.tables.table import Cell, RunFacts, Table
from hpn.testbed.errors import HpnError, InputError, MachineError

_COUNTERS = "counters.json"
_MOST = 2**63
Rows = Sequence[tuple[Cell, ...]]


@dataclass(frozen=True, slots=True)
class Collected:
    """Collected ``rows`` by the table's name. ``runs``: number of folders; ``problems``: one per folder left out.

    ``tables``: those of the registry, that of runs with a column for each setting that differs between them.
    """

    tables: Mapping[str, Table]
    rows: Mapping[str, Rows]
    runs: int
    problems: tuple[HpnError, ...]


def found(roots: Iterable[Path]) -> list[Path]:
    """Return every run folder at or below these paths, each once. InputError if a path leads to none."""
    return each_once(folder for root in roots for folder in _below(root))


def collected(folders: Iterable[Path]) -> Collected:
    """Return the rows of these run folders, in their order."""
    rows: dict[str, list[tuple[Cell, ...]]] = {name: [] for name in TABLES}
    told, problems = list[Told](), list[HpnError]()
    for folder in folders:
        try:
            facts = facts_of(folder)
            made = {name: list(table.rows_of(facts)) for name, table in TABLES.items()}
            for name, table in TABLES.items():
                _check_whole_numbers(folder / table.source, name, made[name])
        except (InputError, MachineError) as error:
            problems.append(error)
            continue
        told.append(all_settings(facts.told, facts.manifest) if facts.told else {})
        for name in TABLES:
            rows[name] += made[name]
    settings = setting_columns(told)
    tables = {**TABLES, RUNS.name: replace(TABLES[RUNS.name], of=(*TABLES[RUNS.name].of, *settings.values()))}
    of_runs = [row + setting_cells(settings, each) for row, each in zip(rows[RUNS.name], told, strict=True)]
    return Collected(tables, {**rows, RUNS.name: of_runs}, len(told), tuple(problems))


def facts_of(folder: Path) -> RunFacts:
    """Return the data of a run for tables. InputError, with the file's name, if one is damaged or missing."""
    run = RunFolder(folder)
    manifest = run.manifest()
    _check_files(run, manifest)
    verdict = run.verdict() if run.has_verdict else None
    ended = verdict is not None or _is_there(folder / "metrics.json")
    metrics = run.metrics() if ended else None
    if metrics is not None:
        _check(folder / "metrics.json", metrics)
    drill = run.drill() if _is_there(folder / "drill.json") else None
    identity = identity_in(run, manifest)
    return RunFacts(str(folder), manifest, identity.digests, verdict, metrics, drill, identity.told)


def _check_files(run: RunFolder, manifest: Manifest) -> None:
    """Check all files of a run: one that was truncated means damage, even if no row comes from it."""
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
    """Check that every flow and program has a result for every edge, and every transfer its flow, as rows need both."""
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
    """Check that whole numbers fit in 64 bits, the limit of statistics programs."""
    if any(isinstance(cell, int) and not -_MOST <= cell < _MOST for row in rows for cell in row):
        raise damaged(path, f"a whole number of table {name} needs more than 64 bits")


def _is_there(path: Path) -> bool:
    """Return True if the path exists; a broken link counts, so that reading it reports the damage."""
    return os.path.lexists(path)
