"""Tables for the terminal: inventory, labs, nodes, protocol state. Pure functions of data; the command prints them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from rich.table import Table
from rich.text import Text

from hpn.failover.analysis.phrases import plain
from hpn.results.text.figure import Figure
from hpn.results.text.printable import printable
from hpn.results.text.values import rate
from hpn.results.text.width import FittingTable
from hpn.testbed.doctor import Capability
from hpn.testbed.fabric.inventory import Inventory
from hpn.testbed.vm.kernel_list import Entry

_MOST_KEYS = 4


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], keys: int = 1, *, empty: str = ""
) -> Table:
    """Return a plain table; a column whose name starts with '>' is right-aligned.

    Text is never markup and contains no control characters. A table that is too wide is shown in parts, each with the
    first ``keys`` columns, which name the rows. Other columns that are empty in all rows are left out. ``empty``: the
    text shown without rows, which says what is empty and what fills it.
    """
    made = FittingTable(title=Text(printable(title), "bold") if title else None)
    made.keys, made.empty = keys, printable(empty or f"{title or 'this table'}: none")
    cells = [[printable(str(cell), "\n") for cell in row] for row in rows]
    told = [at for at in range(len(columns)) if at < keys or any(row[at] for row in cells)]
    for column in (columns[at] for at in told):
        made.add_column(Text(printable(column.lstrip(">"))), justify="right" if column.startswith(">") else "left")
    for row in cells:
        made.add_row(*(Text(row[at]) for at in told))
    return made


def inventory_tables(found: Inventory, name: str) -> list[Table]:
    """Return the tables of ``hpn plan`` for a topology of that name: nodes, links by tier, port budgets."""
    nodes = [
        ("GPUs (one per rail)", f"{found.gpus:,}", f"{found.spare_gpus:,}"),
        ("hosts", f"{found.hosts:,}", f"{found.spare_hosts:,}"),
        ("ToR switches", f"{found.tors:,}", ""),
        ("Agg switches", f"{found.aggs:,}", ""),
        ("Core switches", f"{found.cores:,}", ""),
        ("planes", f"{found.planes:,}", ""),
    ]
    if found.core_ports is not None:
        nodes.append(("next hop at a Core", "preset port" if found.core_ports == "preset" else "hash", ""))
    links = [
        (
            f"{count.kind.value}{' (spare hosts)' if count.spare else ''}",
            f"{count.count:,}",
            rate(count.rate_bps),
            rate(count.rate_bps / found.scale),
        )
        for count in found.links
    ]
    budgets = [
        (
            budget.role.value,
            f"{budget.switches:,}",
            f"{budget.down_ports}",
            f"{budget.spare_ports}",
            f"{budget.up_ports}",
            f"{rate(budget.used_bps)} of {rate(budget.capacity_bps)}",
            "-" if budget.oversubscription is None else f"{plain(budget.oversubscription, 4)}:1",
        )
        for budget in found.budgets
    ]
    return [
        table(f"{name} ({found.architecture})", ("", ">active", ">spare"), nodes),
        table("links", ("tier", ">count", ">rate", ">emulated"), links),
        table(
            "ports per switch",
            ("role", ">switches", ">down", ">spare", ">up", ">capacity used", ">oversubscription"),
            budgets,
        ),
    ]


def rows_table(title: str, rows: object, empty: str = "") -> Table:
    """Return a table of JSON rows with equal keys, which are the columns.

    The first columns, as needed, name the rows.
    """
    found = [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, Sequence) else []
    columns = list(found[0]) if found else []
    cells = [[_cell(row.get(column)) for column in columns] for row in found]
    telling = (many for many in range(1, _MOST_KEYS) if len({tuple(row[:many]) for row in cells}) == len(cells))
    return table(title, columns, cells, next(telling, 1), empty=empty)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " ".join(str(item) for item in value)
    return str(value)


def change_lines(change: Mapping[str, object], direction: str) -> Iterator[str]:
    """Yield the links and switches that ``hpn break`` ('down') or ``hpn mend`` ('up') changed in a lab."""
    changed, still = change.get(direction), change.get("still_down")
    lossy, lossless = change.get("lossy"), change.get("lossless")
    if changed or not (lossy or lossless):
        yield f"{direction}: {_cell(changed)}" if changed else f"nothing changed: it was {direction} already"
    if lossy:
        yield f"from now on {_cell(lossy)}"
    if lossless:
        yield f"no longer: {_cell(lossless)}"
    if still:
        yield f"still down: {_cell(still)}"


def doctor_table(found: Iterable[Capability]) -> Table:
    """Return the table of ``hpn doctor``."""
    rows = [
        (
            c.name,
            "yes" if c.present else "NO" if c.needed else "no",
            c.detail,
            "" if c.present else c.instead,
            c.provide,
        )
        for c in found
    ]
    return table("this machine", ("capability", "here", "detail", "used instead", "provided by"), rows)


def kernels_table(found: Iterable[Entry]) -> Table:
    """Return the table of ``hpn vm kernels``."""
    rows = [(e.release, e.state, e.source.split(" sha256:")[0], f"{e.build_s:.0f} s", e.program) for e in found]
    empty = "no kernel is in the cache; hpn vm build-kernel builds one"
    return table("kernels in the cache", ("Linux", "state", "source", ">built in", "program"), rows, empty=empty)


def figure_line(figure: Figure) -> str:
    """Return a line with one figure of the bench and its target."""
    bound = "" if figure.target is None else f"target {'>=' if figure.at_least else '<='} {plain(figure.target, 6)}"
    verdict = {True: "met", False: "MISSED", None: ""}[figure.met]
    return f"{figure.name:45} {figure.value:10.3f} {figure.unit:7} {bound:16} {verdict:7} {figure.note}".rstrip()


class CalibrationStep(Protocol):
    """One load tested by ``hpn doctor --calibrate``."""

    @property
    def load(self) -> float:
        """Share of each NIC's rate."""

    @property
    def packets_per_s(self) -> float:
        """Packets per second over all flows."""

    @property
    def clean(self) -> bool:
        """True if the verdict of a drill at this rate could be trusted."""

    @property
    def noise_floor_ms(self) -> float:
        """Largest outage that the method reports without any fault."""

    @property
    def send_gap_ms(self) -> float:
        """Largest pause of a sender."""

    @property
    def reason(self) -> str:
        """Reason why it was not clean."""


def calibration_line(step: CalibrationStep) -> str:
    """Return the line of one load tested."""
    verdict = "clean" if step.clean else f"not clean: {step.reason}"
    return (
        f"load {step.load:4.0%}  {step.packets_per_s:9,.0f} packets/s  noise floor {step.noise_floor_ms:6.2f} ms"
        f"  largest sender pause {step.send_gap_ms:6.2f} ms  {verdict}"
    )
