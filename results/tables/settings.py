"""Columns of the settings that differ between exported runs: one for each key of topology and drill files. Pure.

Changes when a setting is named or shown in another way in tables. Run folders are untrusted input: names of columns
have letters, digits and underscores only, and there are at most ``MOST``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from hpn.results.run.filewords import key_in_file, value_in_file
from hpn.results.tables.table import Column, Kind
from hpn.results.text.printable import escaped_name, printable

MOST = 200
_PREFIX = "setting_"
Told = Mapping[str, str]


def setting_columns(runs: Sequence[Told]) -> Mapping[str, Column]:
    """Return a column for each key whose value differs among runs that tell their settings, by the stored key."""
    known = [told for told in runs if told]
    keys = [key for key in dict.fromkeys(key for told in known for key in told) if len({t.get(key) for t in known}) > 1]
    return dict(zip(keys[:MOST], _columns(keys[:MOST]), strict=True))


def setting_cells(columns: Mapping[str, Column], told: Told) -> tuple[str | None, ...]:
    """Return the cells of one run, as its files have them; None for a key that it does not tell."""
    return tuple(escaped_name(value_in_file(key, told[key])) if key in told else None for key in columns)


def _columns(keys: Sequence[str]) -> Iterator[Column]:
    taken = set[str]()
    for key in keys:
        shown = key_in_file(key)
        base = _PREFIX + re.sub(r"[^a-zA-Z0-9]+", "_", shown).strip("_")
        name = next(name for name in (base, *(f"{base}_{at}" for at in range(2, MOST + 2))) if name not in taken)
        taken.add(name)
        yield Column(name, Kind.TEXT, f"setting {printable(escaped_name(shown))}")
