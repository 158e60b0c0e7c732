"""Suite and the baselines that gate it: read and checked before any run, compared with the measurements afterwards.

Changes when a baseline has to match a suite in another way. ``results.comparison.gate`` makes the comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hpn.results.comparison.baseline import Baseline, check_same, read
from hpn.results.comparison.gate import Gate, file_of, gate, strays, text_of
from hpn.results.comparison.groups import Across, Compared
from hpn.results.comparison.run_arguments import opened
from hpn.results.export.ci_runs import Repeats
from hpn.results.judge.verdict import Outcome
from hpn.results.run.identity import identity_of
from hpn.results.text.printable import printable
from hpn.scenarios.batch.suite.suite import Run, Suite
from hpn.scenarios.run.stored_drill import asked_of
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.files.document import shorten
from hpn.testbed.lag.datapaths import candidates
from hpn.testbed.vm.engines import named


@dataclass(frozen=True, slots=True)
class StoredBaseline:
    """Baselines of a suite, by drill and engine, and their folder.

    ``suite``: its file. ``tolerance``: share of its baseline by which a figure may be worse. ``unused``: a line for
    each baseline without a drill in the suite, for example of a renamed drill.
    """

    folder: Path
    baselines: Mapping[tuple[str, str], Baseline]
    suite: str
    tolerance: float = 0.0
    unused: tuple[str, ...] = ()


def kept_for(suite: Suite, folder: Path, tell: Callable[[str], None]) -> StoredBaseline:
    """Return the baselines of the suite's drills. InputError, with every problem, where one does not match its runs."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; hpn ci run {suite.source} --save {folder} writes it")
    runs = {(run.name, run.engine): run for run in suite.runs}
    unused = tuple(printable(f"no drill of this suite has the baseline {path}") for path in strays(folder, runs))
    for line in unused:
        tell(line)
    kept: dict[tuple[str, str], Baseline] = {}
    problems: list[str] = []
    for key, run in runs.items():
        try:
            if (path := file_of(folder, *key)).exists():
                kept[key] = _checked(path, run, suite.source)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return StoredBaseline(folder, kept, suite.source, unused=unused)


def gated(groups: tuple[Repeats, ...], out: Path, kept: StoredBaseline | None) -> tuple[Repeats, ...]:
    """Return each drill with the result of its baseline, if any; its run folders are below ``out``."""
    return groups if kept is None else tuple(replace(group, gate=_gate(group, out, kept)) for group in groups)


def save(groups: Iterable[Repeats], out: Path) -> Iterator[tuple[str, str]]:
    """Yield name and text of each passing drill's baseline; the text is '' if there is nothing to store."""
    for group in groups:
        name = file_of(Path(), *group.key).name
        passes = group.own_exit_code == Outcome.PASS.exit_code
        yield name, text_of(_compared(group, out)) if passes else ""


def _checked(path: Path, run: Run, suite: str) -> Baseline:
    """Return the baseline in a file. InputError, with the differing key, if it is for something other than the run."""
    kept, spec = read(path), named(run.engine)
    asked = run.drill.slowed(spec.engine().slowness) if spec.start is not None else run.drill
    fabric = build(asked.topology)
    identity = identity_of(fabric, asked_of(asked, fabric))
    engine = kept.setting.get(Across.ENGINE, "")
    setting = {Across.ENGINE: engine if engine.partition("/")[0] == run.engine else run.engine}
    digests = {what: identity.digests[what] for what in kept.digests if what in identity.digests}
    setting |= {what: kept.setting.get(what, "") for what in digests}
    if Across.SETTINGS in digests:  # only a run knows the marker at switches
        digests[Across.SETTINGS] += "".join(kept.digests[Across.SETTINGS].partition(" ")[1:])
    try:
        check_same(kept, setting, digests, identity.told, however_run=True)
        _check_parts(kept, asked.topology)
    except InputError as error:
        meant = f"if that is meant: hpn ci run {suite} --save {path.parent}"
        raise InputError([f"{path}: {problem}; {meant}" for problem in error.problems]) from error
    return kept


def _check_parts(kept: Baseline, spec: FabricSpec) -> None:
    """Raise InputError if the topology names another LAG datapath or marker than that of the baseline's runs.

    Only a run knows the choice of ``auto``.
    """
    engine, settings = kept.setting.get(Across.ENGINE, ""), kept.digests.get(Across.SETTINGS, "")
    datapath, marker = engine.rpartition("/")[2], settings.partition(" ")[2]
    possible = [kind.name for kind in candidates(spec.lag)]
    problems: list[str] = []
    if "/" in engine and possible and datapath not in possible:
        problems.append(f"engine {engine!r}, these runs of another (lag was {datapath}, is {spec.lag})")
    if marker and spec.ecn is not None and spec.ecn.marker not in {"auto", marker}:
        before = kept.setting.get(Across.SETTINGS, "")
        problems.append(
            f"settings {shorten(before, 80)}, these runs of another (ecn.marker was {marker}, is {spec.ecn.marker})"
        )
    if problems:
        raise InputError([f"the baseline is of {problem}" for problem in problems])


def _gate(group: Repeats, out: Path, kept: StoredBaseline) -> Gate:
    file = file_of(kept.folder, *group.key)
    if group.key not in kept.baselines:
        return Gate(str(file), said=f"no baseline {file}; hpn ci run {kept.suite} --save {kept.folder} writes it")
    try:
        runs = _compared(group, out)
    except InputError as error:
        return Gate(str(file), said=f"not held against {file}: {error}", is_refused=True)
    if not runs:
        return Gate(str(file), said="not held against its baseline: there is no run")
    return gate(kept.baselines[group.key], file, runs, kept.tolerance)


def _compared(group: Repeats, out: Path) -> list[Compared]:
    return [opened(out / run.folder) for run in group.runs if run.judged is not None]
