"""CSV of cables: one row per cable, columns by the names in the first line. Pure.

Required are a node and a port at each end. Rate, role, LAG and address of an end may follow.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from io import StringIO
from itertools import islice

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.values import parse_rate
from hpn.testbed.files.document import Document, shorten
from hpn.testbed.importing.found import Cable, End, Found, FoundNic, FoundNode, Left, Place
from hpn.testbed.importing.importer import Importer, SourceText
from hpn.testbed.importing.mistakes import ImportMistakes
from hpn.testbed.importing.rolewords import role_of

COLUMNS = ("a_node", "a_port", "b_node", "b_port", "rate", "a_role", "b_role", "a_nic", "b_nic", "a_ip", "b_ip")
"""Columns as hpn writes them. A last one, ``primary``, names the first ToR of a stack."""
_REQUIRED = COLUMNS[:4]
_SAME = {
    "a_node": ("a_device", "source", "source_device", "source_node", "from", "from_device", "device_a", "node_a"),
    "a_port": ("a_interface", "source_port", "source_interface", "from_port", "port_a", "interface_a"),
    "b_node": ("b_device", "destination", "destination_device", "destination_node", "dest", "to", "device_b", "node_b"),
    "b_port": ("b_interface", "destination_port", "destination_interface", "dest_port", "to_port", "port_b"),
    "rate": ("speed", "bandwidth"),
}
_NETBOX = {"side_a_device": "a_node", "side_a_name": "a_port", "side_b_device": "b_node", "side_b_name": "b_port"}
_MEANS = {**_NETBOX, **{name: column for column, names in _SAME.items() for name in (column, *names)}}
_MEANS |= {column: column for column in (*COLUMNS, "primary")}
_MOST_ROWS = 500_000


def read(sources: Sequence[SourceText]) -> Found:
    """Return the network of one or several files. InputError with every mistake."""
    mistakes = ImportMistakes()
    cables: list[Cable] = []
    nodes: dict[str, FoundNode] = {}
    unused: list[str] = []
    for source in sources:
        document = _document(source)
        columns, others = _header(source)
        unused += [each for each in others if each]
        for line, row in _rows(source, columns):
            place = Place(document, (line,))
            cable = _cable(row, place, mistakes)
            if cable is not None:
                cables.append(cable)
                _add_nodes(nodes, cable, row, mistakes)
    mistakes.check()
    left = (Left("columns", "not part of a wiring", tuple(dict.fromkeys(unused))),) if unused else ()
    return Found(tuple(_with_nics(nodes, cables)), tuple(cables), left)


def _with_nics(nodes: Mapping[str, FoundNode], cables: Sequence[Cable]) -> Iterator[FoundNode]:
    """Yield the nodes with the LAGs that columns name."""
    lags: dict[str, dict[str, FoundNic]] = {}
    for end in (end for cable in cables for end in cable.ends if end.nic is not None):
        lags.setdefault(end.node, {})[end.nic or ""] = FoundNic()
    for name, node in nodes.items():
        yield replace(node, nics=lags.get(name, {}))


def _document(source: SourceText) -> Document:
    """Return lines by number: a place in such a file is its line."""
    most = source.text.count("\n") + source.text.count("\r") + 2
    return Document(source.name, {}, {(n,): n for n in range(1, most)})


def _header(source: SourceText) -> tuple[list[str | None], list[str]]:
    """Return the column of each field, None where it is not used, and the names of those. InputError without one."""
    first = next(csv.reader(source.text.splitlines()[:1], delimiter=_delimiter(source.text)), [])
    columns = [_MEANS.get(re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")) for name in first]
    missing = [column for column in _REQUIRED if columns.count(column) != 1]
    if missing:
        hint = f"begin with a line {','.join(_REQUIRED)} and name the columns so"
        raise InputError(f"{source.name}:1: no single column for {', '.join(missing)}; {hint}")
    return columns, [shorten(name) for name, column in zip(first, columns, strict=True) if column is None and name]


def _delimiter(text: str) -> str:
    first = text.partition("\n")[0]
    return max(",;\t", key=first.count)


def _rows(source: SourceText, columns: Sequence[str | None]) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield line and fields by column of each row that is not empty."""
    reader = csv.reader(StringIO(source.text, newline=""), delimiter=_delimiter(source.text), strict=True)
    line = 1
    try:
        for fields in islice(reader, 1, _MOST_ROWS):
            line, begun = reader.line_num, line + 1
            if any(field.strip() for field in fields) and not fields[0].startswith("#"):
                yield begun, {c: f.strip() for c, f in zip(columns, fields, strict=False) if c is not None}
    except csv.Error as error:
        raise InputError(f"{source.name}:{reader.line_num}: {error}; correct the quotes of this row") from None
    if next(reader, None) is not None:
        raise InputError(f"{source.name}: more than {_MOST_ROWS:,} rows; import a part of the network")


def _cable(row: Mapping[str, str], place: Place, mistakes: ImportMistakes) -> Cable | None:
    missing = [column for column in _REQUIRED if not row.get(column)]
    if missing:
        hint = "a cable has two ends, each a node and a port; complete or remove the row"
        mistakes.add(place, f"{', '.join(missing)} is empty; {hint}")
        return None
    rate = None
    try:
        rate = parse_rate(row["rate"]) if row.get("rate") else None
    except ValueError as error:
        mistakes.add(place, f"rate: {error}")
    return Cable((_end(row, "a"), _end(row, "b")), place, rate, row.get("primary") or None)


def _end(row: Mapping[str, str], side: str) -> End:
    return End(
        row[f"{side}_node"], row[f"{side}_port"], row.get(f"{side}_ip") or None, None, row.get(f"{side}_nic") or None
    )


def _add_nodes(nodes: dict[str, FoundNode], cable: Cable, row: Mapping[str, str], mistakes: ImportMistakes) -> None:
    for end, side in zip(cable.ends, "ab", strict=True):
        word = row.get(f"{side}_role", "")
        role = role_of(word)
        known = nodes.get(end.node)
        if known is None or (known.role is None and role is not None):
            kind = f"role {shorten(word)}" if word and role is None else ""
            nodes[end.node] = FoundNode(end.node, known.place if known else cable.place, role, kind)
        elif role is not None and known.role != role:
            mistakes.add(cable.place, f"{end.node} is {role} here and {known.role} at {known.place}; correct one")


IMPORTER = Importer(
    "csv",
    f"a row per cable: {','.join(_REQUIRED)} and, if known, rate, a_role, b_role, a_nic, b_nic, a_ip, b_ip",
    lambda source: source.name.lower().endswith((".csv", ".tsv")),
    read,
)
