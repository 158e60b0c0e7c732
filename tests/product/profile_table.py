"""What faults cost hosts of each profile: ``make profile-table``, of the drills of ``tests.product.profile_cells``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.product.profile_cells import Trial, trials
from tests.product.profile_page import Made, cost_of, page
from tests.product.table_runs import Table, command

TABLE = Table("profile-table", "what faults cost hosts of each profile", {phase: [*trials()] for phase in (1, 2, 3)})


def made(out: Path) -> Iterator[Made]:
    """Every run that is there, in the order of the table."""
    for trial, folder in TABLE.made(out):
        if isinstance(trial, Trial):
            yield Made(trial, folder.manifest(), folder.verdict(), cost_of(folder.metrics()))


def main(arguments: Sequence[str]) -> None:
    """Make what is missing, write the table."""
    out, table = command(TABLE, arguments)
    table.write_text(page(list(made(out))))


if __name__ == "__main__":
    main(sys.argv[1:])
