"""The same faults on each network, side by side: ``make network-table``, of ``tests.product.network_cells``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.product.network_cells import Trial, trials
from tests.product.network_counts import published
from tests.product.network_page import Made, page
from tests.product.network_sizes import SIZES, at_sizes
from tests.product.table_runs import Table, command

TABLE = Table("network-table", "what the same faults cost on each network", {1: [*trials()]})


def made(out: Path) -> Iterator[Made]:
    """Yield every run that is there, in the order of the table."""
    for trial, folder in TABLE.made(out):
        if isinstance(trial, Trial):
            yield Made(trial, folder.manifest(), folder.verdict(), folder.metrics())


def main(arguments: Sequence[str]) -> None:
    """Make what is missing, write the table."""
    out, table = command(TABLE, arguments)
    table.write_text(page(list(made(out)), published(), [list(at_sizes(at)) for at in range(len(SIZES))]))


if __name__ == "__main__":
    main(sys.argv[1:])
