"""Table as Apache Parquet, with types, units and meanings of its columns. Needs pyarrow, which hpn does not install.

Changes when pyarrow does.
"""

from __future__ import annotations

from hpn.results.tables.collect import Rows
from hpn.results.tables.table import Kind, Table
from hpn.testbed.errors import MachineError


def parquet_of(table: Table, rows: Rows) -> bytes:
    """Return the file. Text is unchanged, since no program reads it as a formula. MachineError without pyarrow."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MachineError("Parquet needs pyarrow: python -m pip install pyarrow; or write --csv") from error
    types = {
        Kind.TEXT: pyarrow.string(),
        Kind.COUNT: pyarrow.int64(),
        Kind.NUMBER: pyarrow.float64(),
        Kind.FLAG: pyarrow.bool_(),
    }
    fields = [
        pyarrow.field(column.name, types[column.kind], metadata={"unit": column.unit, "meaning": column.meaning})
        for column in table.columns
    ]
    arrays = [pyarrow.array([row[at] for row in rows], field.type) for at, field in enumerate(fields)]
    file = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.Table.from_arrays(arrays, schema=pyarrow.schema(fields)), file)
    return bytes(file.getvalue())
