"""Registry of tables: a new table is an entry here, or comes from a plug-in.

Changes when runs get another table. The site's page of tables (docs/site) is generated from these entries.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpn.results.tables.edges import FIGURES, FLOWS
from hpn.results.tables.expectations import EXPECTATIONS
from hpn.results.tables.jobs import COLLECTIVES, COUNTERS, ITERATIONS, RANKS, STALLS
from hpn.results.tables.ports import PORTS
from hpn.results.tables.runs import RUNS
from hpn.results.tables.table import Table
from hpn.results.tables.transfers import TRANSFERS
from hpn.testbed.entries import Registry


def _lacks(table: Table) -> Iterator[str]:
    names = [column.name for column in table.columns]
    if not table.name.isidentifier():
        yield "name, which is one of a file too"
    if len({*names}) < len(names):
        yield "columns, each with a name of its own"


_OURS = (
    *(RUNS, FIGURES, EXPECTATIONS, FLOWS, TRANSFERS, PORTS),
    *(ITERATIONS, STALLS, COLLECTIVES, RANKS, COUNTERS),
)
TABLES: Registry[Table] = Registry("table", lambda table: table.name, _OURS, _lacks, of=Table)
"""Every table by name."""
