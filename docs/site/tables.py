"""The reference of what other programs read: tables of runs, and metrics of a running lab."""

from __future__ import annotations

from docs.site.markdown import code, page, plain, prose, table
from hpn.results.tables.registry import TABLES
from hpn.results.tables.table import Table
from hpn.testbed.lab.service.metrics.families import FAMILIES


def tables() -> str:
    """The page of every column of every table that ``hpn results export`` writes."""
    return page(
        "# Tables of runs",
        "What `hpn results export` and `hpn.frames` make of run folders; "
        "[Results](../docs/results.md#tables-of-runs) says how. Rows of all tables join by `run`.",
        *(_table(each) for each in TABLES.values()),
    )


def lab_metrics() -> str:
    """The page of what a running lab tells Prometheus."""
    rows = (
        (code(each.name), each.kind.value, ", ".join(code(label) for label in each.labels), plain(each.help))
        for each in FAMILIES.values()
    )
    return page(
        "# Metrics of a running lab",
        "What `hpn up --metrics` serves to Prometheus; [Watching a running lab](../docs/watch.md) says how.",
        "`direction` is the way in which a port sends, `up` from the hosts. `tier` is access, fabric, core or peer. "
        "A label without a value, such as the plane of a host, is left out. Counters start with the lab.",
        table(("metric", "kind", "labels", ""), rows),
    )


def _table(each: Table) -> str:
    rows = ((code(column.name), column.kind.value, column.unit, prose(column.meaning)) for column in each.columns)
    return page(f"## {each.name}", f"It has {plain(each.meaning)}.", table(("column", "", "unit", ""), rows))
