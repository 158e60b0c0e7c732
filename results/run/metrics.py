"""Lossless conversion between ``DrillMetrics`` and a plain document, the content of ``metrics.json``.

Changes when the document does. Adding a field keeps the version; removing one or changing its meaning makes a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from hpn.failover.analysis.job import absent_parts
from hpn.failover.analysis.model import DrillMetrics
from hpn.results.run.files import first_mistake, parse
from hpn.testbed.errors import InputError

VERSION = 1
_KEY = "version"


@dataclass(frozen=True, slots=True)
class _Versioned:
    """Version number, read before anything else; an older hpn wrote none."""

    version: int = VERSION


_METRICS = TypeAdapter(DrillMetrics)
_VERSIONED = TypeAdapter(_Versioned)


def metrics_to_dict(metrics: DrillMetrics) -> dict[str, JsonValue]:
    """Return all measurements as dicts, lists, texts and numbers, with ``version``: the content of ``metrics.json``.

    Keys are the fields of the dataclasses and carry their units: ``_ns`` (CLOCK_MONOTONIC), ``_ms``, ``_bps``,
    ``_pps``, ``_bytes``, ``_pct``; docs/run-folder.md says where each is explained. ``flows`` is a list by flow, each
    with ``edges`` in the order of ``edges``. An interval is a list of two numbers. None was not measured; an adjacent
    field gives the reason. A lower bound has a flag for it (``open``, ``recovered``, ``unfinished``). An infinite
    number, which no run has, is the text 'Infinity' or '-Infinity', because JSON has none. ``transfers``, ``job``,
    ``beside`` and the job's ``client`` are omitted where they did not run, ``denied`` without denied paths, ``buffers``
    without ``switch:``. ``location`` is omitted where no expectation is about it, and its ``drains`` and ``stretches``
    where there are none.
    """
    found: dict[str, JsonValue] = from_json(metrics_json(metrics))
    return found


def metrics_from_dict(document: Mapping[str, object]) -> DrillMetrics:
    """Return the metrics that ``metrics_to_dict`` converted, also after a round trip through JSON; ignore unknown keys.

    InputError, with the place, for a document without metrics or of another version.
    """
    try:
        _check_version("this document", _VERSIONED.validate_python(document).version)
        return _METRICS.validate_python(document)
    except ValidationError as error:
        raise InputError(f"this document holds no metrics of a run: {first_mistake(error)}") from error


def metrics_json(metrics: DrillMetrics) -> bytes:
    """Return the document of ``metrics_to_dict`` as JSON."""
    plain = _METRICS.dump_python(metrics, mode="json", exclude=_left_out(metrics))
    return to_json({_KEY: VERSION, **plain}, indent=2, inf_nan_mode="strings")


def metrics_in(path: Path, text: bytes) -> DrillMetrics:
    """Return the metrics in the file at ``path``, whose numbers are finite. InputError when it holds none."""
    _check_version(str(path), parse(path, _VERSIONED, text).version)
    return parse(path, _METRICS, text)


def _check_version(what: str, version: int) -> None:
    if version != VERSION:
        raise InputError(f"{what} has metrics of version {version}, this hpn reads {VERSION}; use the hpn that made it")


def _left_out(metrics: DrillMetrics) -> dict[str, bool | set[str]]:
    """Return the fields to omit: those that even streams, or this job, do not have."""
    found: dict[str, bool | set[str]] = {} if metrics.transfers is not None else {"transfers": True}
    found |= {part: True for part in ("buffers", "location") if getattr(metrics, part) is None}
    if metrics.location is not None:
        found["location"] = {part for part in ("drains", "stretches") if not getattr(metrics.location, part)}
    for name, job in (("job", metrics.job), ("beside", metrics.beside)):
        found[name] = True if job is None else absent_parts(job)
    return found
