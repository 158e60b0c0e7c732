"""The tables of runs as data frames. Needs pandas, which hpn does not bring.

Changes when pandas does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from hpn.results.tables.collect import collected, found
from hpn.results.tables.registry import TABLES
from hpn.results.tables.table import Kind
from hpn.testbed.errors import HpnError, MachineError

if TYPE_CHECKING:
    import pandas

_TYPES = {Kind.TEXT: "string", Kind.COUNT: "Int64", Kind.NUMBER: "float64", Kind.FLAG: "boolean"}


def frames(
    folders: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    on_problem: Callable[[HpnError], object] | None = None,
) -> dict[str, pandas.DataFrame]:
    """Tables by name, of run folders or of folders above some, with the columns of ``hpn results export``.

    ``on_problem`` is told of each run that is damaged, and the others are in the tables; without it the first is
    raised. InputError too where a folder leads to no run, MachineError without pandas.
    """
    try:
        import pandas
    except ImportError as error:
        raise MachineError("data frames need pandas: python -m pip install pandas") from error
    roots = [folders] if isinstance(folders, str | os.PathLike) else folders
    made = collected(found(Path(root) for root in roots))
    for problem in made.problems:
        if on_problem is None:
            raise problem
        on_problem(problem)
    return {
        name: pandas.DataFrame(made.rows[name], columns=[column.name for column in table.columns]).astype(
            {column.name: _TYPES[column.kind] for column in table.columns}
        )
        for name, table in TABLES.items()
    }
