"""Tables of runs as data frames. Needs pandas, which hpn does not install.

Changes when pandas does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from hpn.results.tables.collect import collected, found
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
    """Return tables by name, of run folders or folders that contain some, with the columns of ``hpn results export``.

    ``on_problem`` is called for each damaged run, and the tables contain the others; without it the first error is
    raised. InputError also if a folder contains no run, MachineError without pandas.
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
        for name, table in made.tables.items()
    }
