"""Command that runs one drill over several host profiles, daemons, datapaths, kernels or engines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import click
from rich.table import Table

from hpn.commands.completing import drill_names
from hpn.commands.engine_option import VIRTUAL_TIME, OneOf, engine_option
from hpn.commands.followers import tell_next
from hpn.commands.page import Page, json_option, profile_option, topology_option
from hpn.commands.settings import as_run
from hpn.results.comparison.drills import Comparison, DrillGroups, compare
from hpn.results.comparison.groups import Across, grouped
from hpn.results.comparison.run_arguments import opened
from hpn.results.judge.verdict import worst_exit_code
from hpn.results.run.claim import claimed, place_for
from hpn.results.run.folder import RunFolder, run_document
from hpn.results.text.compared import comparison_parts
from hpn.results.text.tables import table
from hpn.scenarios.batch import matrix
from hpn.scenarios.drill import catalogue
from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.vm.engines import named


@click.command("matrix")
@click.argument("name", shell_complete=drill_names)
@click.option(
    "--over",
    "axes",
    type=OneOf(lambda: tuple(matrix.AXES)),
    multiple=True,
    default=matrix.DEFAULT,
    show_default=True,
    help="Axis to vary; repeat for several.",
)
@topology_option
@profile_option
@engine_option("Where the first run is made.", default=VIRTUAL_TIME)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for run folders.")
@json_option
def drill_matrix(
    name: str,
    axes: tuple[str, ...],
    topology: FabricSpec | None,
    profile: str | None,
    engine: str,
    out: Path | None,
    as_json: bool,
) -> int:
    """Run one drill over host profiles, BGP daemons, LAG datapaths, kernels or engines; compare with the first run.

    Each run differs from the first in one thing. A difference has its known cause, or is marked as unexplained.
    """
    page, chosen = Page(as_json), catalogue.load(name, topology, profile)
    cells: list[matrix.Cell] = []
    with place_for(out) as place, claimed(place):
        for cell in matrix.run(chosen, axes, named(engine), place, as_run(), page.tell):
            cells.append(cell)
            if not isinstance(cell.made, RunFolder):
                click.echo(f"left out: {cell.name}: {cell.made}", err=True)
        found = [_compared(cells)] if len(_runs(cells)) > 1 else []
        page.show(_answers(cells), *comparison_parts(found))
    if not _runs(cells):
        raise MachineError(f"{engine} could not run it; hpn doctor says what is missing")
    apart = [difference for each in found for difference in each.found]
    page.end(lambda: {"runs": {name: run_document(run) for name, run in _runs(cells)}, "differences": apart})
    worst = max((run for _, run in _runs(cells)), key=lambda run: run.verdict().exit_code)
    tell_next("drill matrix", quiet=as_json, run=worst.path)
    return worst_exit_code(run.verdict() for _, run in _runs(cells))


def _runs(cells: Iterable[matrix.Cell]) -> Sequence[tuple[str, RunFolder]]:
    return [(cell.name, cell.made) for cell in cells if isinstance(cell.made, RunFolder)]


def _compared(cells: Iterable[matrix.Cell]) -> Comparison:
    runs = [opened(run.path, name) for name, run in _runs(cells)]
    groups = grouped(runs, [*Across])
    return compare(DrillGroups("", tuple(each for each in groups if each.runs)), None)


def _answers(cells: Iterable[matrix.Cell]) -> Table:
    rows = [(name, run.verdict().outcome, run.path.name) for name, run in _runs(cells)]
    return table("", ("run", "verdict", "folder"), rows)
