"""The reference of a run folder's fields, read from the dataclasses that its files are written from."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import tokenize
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from io import StringIO

from pydantic import BaseModel

from docs.site.markdown import code, page, prose, table
from hpn.failover.analysis.hostload import HostMoment
from hpn.failover.analysis.job import SpanTime
from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.analysis.paths import PathAt
from hpn.results.judge.verdict import Verdict
from hpn.results.run import fabric, series
from hpn.results.run.counters import QueuePairCounts, Workers
from hpn.results.run.drill import AskedDrill
from hpn.results.run.manifest import Manifest
from hpn.testbed.events import Event

FILES: Mapping[str, type] = {
    "manifest.json": Manifest,
    "verdict.json": Verdict,
    "drill.json": AskedDrill,
    "fabric.json": fabric._Fabric,
    "events.jsonl": Event,
    "metrics.json": DrillMetrics,
    "series.json": series._About,
    "host.jsonl": HostMoment,
    "paths.jsonl": PathAt,
    "queue_pairs.jsonl": QueuePairCounts,
    "workers.json": Workers,
    "spans.jsonl": SpanTime,
}
_PLAIN = {int: "integer", float: "number", str: "text", bool: "true or false", type(None): "null"}


def run_folder() -> str:
    """The page of every field of a run folder."""
    seen: set[type] = set()
    return page(
        "# Fields of the run folder",
        "[The run folder](../docs/run-folder.md) says what each file is for. "
        "A file of lines (`.jsonl`) has one record in each line. A record within another is linked.",
        *(_file(name, kind, seen) for name, kind in FILES.items()),
    )


def records(kind: object, seen: set[type]) -> Iterator[type]:
    """Every dataclass that a type is made of and that is not in ``seen``, which they are added to."""
    for part in typing.get_args(kind):
        yield from records(part, seen)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind not in seen:
        seen.add(kind)
        yield kind
        for part in typing.get_type_hints(kind).values():
            yield from records(part, seen)


def name_of(record: type) -> str:
    """The name that the page has for a record."""
    return record.__name__.lstrip("_")


def _file(name: str, kind: type, seen: set[type]) -> str:
    return page(f"## {name}", *(_record(record) for record in records(kind, seen)))


def _record(record: type) -> str:
    hints, remarks = typing.get_type_hints(record), _remarks(record)
    names = [field.name for field in dataclasses.fields(record)]
    rows = ((code(name), _takes(hints[name]), prose(_json(remarks.get(name, "")))) for name in names)
    return page(f"### {name_of(record)}", _about(record), table(("field", "", ""), rows))


def _about(record: type) -> str:
    """Its docstring; '' where there is only the one that dataclasses make up."""
    said = record.__doc__ or ""
    return "" if said.startswith(f"{record.__name__}(") else prose(_json(said))


def _json(said: str) -> str:
    """A comment or docstring in the words of JSON."""
    return re.sub(r"\bNone\b", "null", said)


def _takes(kind: object) -> str:
    """A type in the words of JSON."""
    inside: Sequence[object] = typing.get_args(kind)
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_takes(part) for part in inside)
    if origin is typing.Literal:
        return " or ".join(code(str(part)) for part in inside)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"object of {_takes(inside[1])}"
    if origin is not None:
        within = dict.fromkeys(_takes(part) for part in inside if part is not Ellipsis)
        return f"list of {', '.join(within)}"
    return _one(kind)


def _one(kind: object) -> str:
    """A type that has no types within."""
    if not isinstance(kind, type):
        return "any value"
    if kind in _PLAIN:
        return _PLAIN[kind]
    if issubclass(kind, Enum):
        return " or ".join(code(str(each.value)) for each in kind)
    if issubclass(kind, BaseModel):
        return "[the topology](topology-file.md)"
    if dataclasses.is_dataclass(kind):
        return f"[{name_of(kind)}](#{name_of(kind).lower()})"
    if issubclass(kind, tuple):
        return f"list of {', '.join(code(name) for name in kind.__annotations__)}"
    return "text"


def _remarks(record: type) -> dict[str, str]:
    """The comments behind a record's fields, by field."""
    source = inspect.cleandoc(inspect.getsource(record))
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.ClassDef)
    return {
        ast.unparse(part.target): re.sub(r"^noqa.*", "", comments.get(part.end_lineno or 0, ""))
        for part in tree.body
        if isinstance(part, ast.AnnAssign)
    }
