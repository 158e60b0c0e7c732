"""What faults cost the own model of a job, gloo and Soft-RoCE, side by side: ``make client-table``.

Of the page's two tables, one without any run stays as it is. Drills are those of ``tests.product.client_cells``, and at
phase 1 those over lossless switches of ``tests.product.lossless_cells``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.product.client_cells import Course, courses
from tests.product.client_loss import losses_of
from tests.product.client_page import Made, page
from tests.product.lossless_cells import Trial, trials
from tests.product.lossless_page import Tried, cost_of
from tests.product.table_runs import Table, command

TABLE = Table(
    "client-table",
    "what faults cost a job: own model, gloo, Soft-RoCE",
    {1: [*courses(), *trials()], 2: [*courses()]},
)


def made(out: Path) -> Iterator[Made]:
    """Every run that is there, in the order of the table."""
    for course, folder in TABLE.made(out):
        if isinstance(course, Course):
            metrics = folder.metrics()
            losses = {} if metrics.job is None else losses_of(metrics.job, [result.edge for result in metrics.edges])
            yield Made(course, folder.manifest(), folder.verdict(), losses)


def tried(out: Path) -> Iterator[Tried]:
    """Every run over lossless switches and beside them, in the order of the table."""
    for trial, folder in TABLE.made(out):
        if isinstance(trial, Trial):
            yield Tried(trial, folder.manifest(), folder.verdict(), cost_of(folder.metrics()))


def main(arguments: Sequence[str]) -> None:
    """Make what is missing, write the tables."""
    out, table = command(TABLE, arguments)
    before = table.read_text() if table.exists() else ""
    table.write_text(page(list(made(out)), list(tried(out)), before))


if __name__ == "__main__":
    main(sys.argv[1:])
