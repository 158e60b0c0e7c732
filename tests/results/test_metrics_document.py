"""``DrillMetrics`` goes through its document without loss, whatever is in it, and the document is as agreed."""

from __future__ import annotations

import collections.abc
import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hpn
from hpn.failover.analysis.model import DrillMetrics
from hpn.results.run.metrics import metrics_json
from hpn.testbed.errors import InputError
from tests.results.hostile import Place, put
from tests.results.measured import everything
from tests.results.sample import metrics
from tests.results.test_terminal import check_golden
from tests.results.whole import whole_run

_FLOATS = (0.0, -0.0, 5e-324, 1.7976931348623157e308, 0.1, 1 / 3, -2.5, 1e22, math.inf, -math.inf)
_PLAIN: Mapping[object, Callable[[Random], Any]] = {
    bool: lambda random: random.random() < 0.5,
    int: lambda random: random.choice((0, -1, 2**53 + 1, 2**63, random.getrandbits(62))),
    float: lambda random: random.choice((*_FLOATS, random.random(), random.uniform(-1e9, 1e9))),
    str: lambda random: "".join(random.choices('a0 \\"\n\u202e\U0001f600\x7f\x00é', k=random.randrange(4))),
    types.NoneType: lambda _: None,
}


def _some(kind: Any, random: Random) -> Any:  # whatever type hints say
    """Any value of a type that metrics are made of."""
    if kind in _PLAIN:
        return _PLAIN[kind](random)
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    count = random.randrange(3)
    if origin is tuple:
        kinds = [inside[0]] * count if inside[-1] is ... else inside
        return tuple(_some(each, random) for each in kinds)
    if origin is collections.abc.Mapping:
        return {_some(inside[0], random): _some(inside[1], random) for _ in range(count)}
    if origin is not None:
        return _some(random.choice(inside), random)
    if issubclass(kind, Enum):
        return random.choice([*kind])
    return kind(**{name: _some(of, random) for name, of in _hints(kind).items()})


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return typing.get_type_hints(kind)


@settings(max_examples=12, deadline=None)
@given(st.randoms(use_true_random=True))
def test_any_metrics_come_back_from_their_document_and_from_json(random: Random) -> None:
    found = _some(DrillMetrics, random)
    document = hpn.metrics_to_dict(found)
    assert hpn.metrics_from_dict(document) == found
    assert hpn.metrics_from_dict(json.loads(json.dumps(document, allow_nan=False))) == found


def test_the_document_of_version_1_is_as_agreed() -> None:
    """A key that goes or gets another meaning makes another version."""
    check_golden("format-2/metrics.json", metrics_json(everything()).decode())


def test_what_was_not_measured_and_what_never_came_back_are_told_apart() -> None:
    found = metrics()
    first, *others = found.flows
    stuck = replace(first.edges[0], recovered=False, convergence_ms=None, convergence_reason="it never recovered")
    lost = replace(found, flows=(replace(first, edges=(stuck, *first.edges[1:])), *others), resolution_ms=float("inf"))
    document: Any = hpn.metrics_to_dict(lost)
    told = document["flows"][0]["edges"][0]
    assert (told["recovered"], told["convergence_ms"], told["convergence_reason"]) == (
        False,
        None,
        "it never recovered",
    )
    assert document["resolution_ms"] == "Infinity"
    assert document["edges"][0]["worst_outage_interval_ms"] == list(found.edges[0].worst_outage_interval_ms)
    assert hpn.metrics_from_dict(document) == lost


def test_a_document_of_an_older_hpn_is_read_and_one_of_a_newer_is_refused(tmp_path: Path) -> None:
    document = {key: value for key, value in hpn.metrics_to_dict(everything()).items() if key != "version"}
    assert hpn.metrics_from_dict({**document, "added_later": 1}) == everything()
    with pytest.raises(
        InputError, match=r"^this document has metrics of version 2, this hpn reads 1; use the hpn that"
    ):
        hpn.metrics_from_dict({**document, "version": 2})
    run = whole_run(tmp_path / "run")
    put(run.path, Place("metrics.json", ("version",)), 2)
    with pytest.raises(InputError, match=r"metrics\.json has metrics of version 2"):
        run.metrics()


def test_a_document_that_holds_no_metrics_is_refused_with_the_place() -> None:
    document: Any = hpn.metrics_to_dict(everything())
    document["flows"][0]["lost"] = "many"
    with pytest.raises(InputError, match=r"holds no metrics of a run: flows\.0\.lost: "):
        hpn.metrics_from_dict(document)


@pytest.mark.parametrize("text", ["Infinity", "-Infinity", "NaN", "1e999"])
def test_a_run_folder_holds_no_infinite_number_written_as_text_either(tmp_path: Path, text: str) -> None:
    run = whole_run(tmp_path / "run")
    put(run.path, Place("metrics.json", ("resolution_ms",)), text)
    with pytest.raises(InputError, match=r"metrics\.json is damaged"):
        run.metrics()
    put(run.path, Place("metrics.json", ("resolution_ms",)), 1.0)
    put(run.path, Place("metrics.json", ("flows", 0, "name")), text)
    assert run.metrics().flows[0].name == text, "a name may read so"
