"""``DrillMetrics`` as a plain document and back, without loss: what ``metrics.json`` holds.

Changes when the document does. Fields may be added; one that changes its meaning, or goes, makes another version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from hpn.failover.analysis.model import DrillMetrics
from hpn.results.run.files import first_mistake, parse
from hpn.testbed.errors import InputError

VERSION = 1
_KEY = "version"


@dataclass(frozen=True, slots=True)
class _Versioned:
    """What is to be known before anything else is read; an older hpn wrote no version."""

    version: int = VERSION


_METRICS = TypeAdapter(DrillMetrics)
_VERSIONED = TypeAdapter(_Versioned)


def metrics_to_dict(metrics: DrillMetrics) -> dict[str, JsonValue]:
    """All that was measured as dicts, lists, texts and numbers, with its ``version``: what ``metrics.json`` holds.

    Keys are the fields of the dataclasses and carry their units: ``_ns`` (CLOCK_MONOTONIC), ``_ms``, ``_bps``,
    ``_pps``, ``_bytes``, ``_pct``; docs/run-folder.md says where each is explained. ``flows`` is a list by flow, each
    with ``edges`` in the order of ``edges``. An interval is a list of two numbers. None was not measured, and a field
    beside it says why. A lower bound keeps the flag that says so (``open``, ``recovered``, ``unfinished``). An infinite
    number, which no run has, is the text 'Infinity' or '-Infinity', as JSON has none. ``transfers``, ``job``,
    ``beside`` and the job's ``client`` are left out where they did not run.
    """
    found: dict[str, JsonValue] = from_json(metrics_json(metrics))
    return found


def metrics_from_dict(document: Mapping[str, object]) -> DrillMetrics:
    """The metrics that ``metrics_to_dict`` gave, also after a way through JSON; unknown keys are passed over.

    InputError, with the place, for what is none, and for another version.
    """
    try:
        _check_version("this document", _VERSIONED.validate_python(document).version)
        return _METRICS.validate_python(document)
    except ValidationError as error:
        raise InputError(f"this document holds no metrics of a run: {first_mistake(error)}") from error


def metrics_json(metrics: DrillMetrics) -> bytes:
    """The document of ``metrics_to_dict`` as JSON."""
    plain = _METRICS.dump_python(metrics, mode="json", exclude=_left_out(metrics))
    return to_json({_KEY: VERSION, **plain}, indent=2, inf_nan_mode="strings")


def metrics_in(path: Path, text: bytes) -> DrillMetrics:
    """The metrics in the file at ``path``, whose numbers are finite. InputError when it holds none."""
    _check_version(str(path), parse(path, _VERSIONED, text).version)
    return parse(path, _METRICS, text)


def _check_version(what: str, version: int) -> None:
    if version != VERSION:
        raise InputError(f"{what} has metrics of version {version}, this hpn reads {VERSION}; use the hpn that made it")


def _left_out(metrics: DrillMetrics) -> dict[str, bool | set[str]]:
    """Fields that a workload of even streams has nothing to say of, nor a job that is no client."""
    found: dict[str, bool | set[str]] = {} if metrics.transfers is not None else {"transfers": True}
    if metrics.beside is None:
        found["beside"] = True
    if metrics.job is None:
        return {**found, "job": True}
    return {**found, "job": {"client"}} if metrics.job.client is None else found
