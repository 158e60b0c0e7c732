"""Congestion control as a drill file gives it: a name, or a name with changed values; all mistakes are reported. Pure.

    congestion: dcqcn                                          a control, with its usual parameters
    congestion: dcqcn-2015                                     a parameter set
    congestion: {use: dcqcn-2015, increase_timer: 550 ns}      one with other values, written as for real links

A value's key is its field's name without the unit, which the value includes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace

from hpn.testbed.fabric.marking import Marker
from hpn.testbed.fabric.values import parse_rate
from hpn.testbed.files.check import did_you_mean
from hpn.testbed.files.document import Plain, Where, shorten
from hpn.testbed.files.units import parse_duration, parse_size
from hpn.traffic.congestion.control import Parameters
from hpn.traffic.congestion.controls import CONTROLS, ControlKind
from hpn.traffic.congestion.parameter_sets import PARAMETERS, ParameterSet

_USE = "use"
_UNITS: Mapping[str, Callable[[object], int]] = {
    "_ns": parse_duration, "_bps": parse_rate, "_bytes": parse_size
}  # fmt: skip

Problem = tuple[Where, str]
"""Path below the key of the congestion control, and the problem with what to write instead."""


@dataclass(frozen=True, slots=True)
class ChosenControl:
    """Congestion control of a job. ``changed``: the keys of the values that differ from the set."""

    kind: ControlKind
    base: ParameterSet
    values: Parameters
    changed: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name for a manifest: the parameter set, and its changes."""
        return self.base.name + "".join(f", {word} changed" for word in self.changed)


def written(
    given: Plain, real_rate_bps: float, marker: Marker | None, *, telemetry: bool
) -> tuple[ChosenControl | None, tuple[Problem, ...]]:
    """Return the control that ``given`` names on NIC ports of that real rate, and all problems.

    ``marker`` is the marking of the topology's switches: a control that waits for marks needs one. ``telemetry``: they
    report, as another control needs. The control is None if its name is unknown.
    """
    wanted: Mapping[str, Plain] = given if isinstance(given, dict) else {_USE: given}
    base = _base(wanted.get(_USE))
    if base is None:
        return None, (((_USE,) if isinstance(given, dict) else (), _unknown(wanted.get(_USE))),)
    values, problems = _changed(base.values, {word: value for word, value in wanted.items() if word != _USE})
    kind = CONTROLS[base.control]
    found = [*problems, *_wrong(values, real_rate_bps)] if not problems else list(problems)
    if kind.marked and marker is None:
        found.append(((), f"{base.name} waits for marks and no switch marks; write {_ecn(base)} in the topology"))
    if kind.telemetry and not telemetry:
        found.append(
            ((), f"{base.name} waits for telemetry and no switch sends any; write switch: {{}} in the topology")
        )
    return ChosenControl(kind, base, values, tuple(word for word in wanted if word != _USE)), tuple(found)


def _base(name: Plain) -> ParameterSet | None:
    if not isinstance(name, str):
        return None
    return CONTROLS[name].usual if name in CONTROLS else PARAMETERS.get(name)


def _unknown(name: Plain) -> str:
    known = (*CONTROLS, *PARAMETERS)
    hint = did_you_mean(name, known, "write one of") if isinstance(name, str) else f"write one of {', '.join(known)}"
    return f"{shorten(name)} is no congestion control and no parameter set; {hint}"


def _ecn(base: ParameterSet) -> str:
    marker = base.marker
    if marker is None:
        return "ecn"
    values = f"kmin_bytes: {marker.kmin_bytes}, kmax_bytes: {marker.kmax_bytes}, pmax: {marker.pmax:g}"
    return f"ecn: {{{values}}}"


def _changed(values: Parameters, given: Mapping[str, Plain]) -> tuple[Parameters, list[Problem]]:
    """Return the parameters with changed values, and problems for unknown keys and wrong values."""
    known = {_word(field.name): field.name for field in fields(values)}
    problems: list[Problem] = []
    for word, value in given.items():
        if word not in known:
            problems.append(((word,), f"{word} is unknown; {did_you_mean(word, known)}"))
            continue
        try:
            values = replace(values, **{known[word]: _value(known[word], getattr(values, known[word]), value)})
        except ValueError as error:
            problems.append(((word,), f"{word}: {error}"))
    return values, problems


def _value(field: str, before: object, value: Plain) -> object:
    """Return the parsed value. ValueError, naming what to write, if its type differs from the present value's."""
    for suffix, parse in _UNITS.items():
        if field.endswith(suffix):
            return parse(value)
    if isinstance(before, bool):
        if not isinstance(value, bool):
            raise ValueError(f"{shorten(value)} is neither; write yes or no")
    elif isinstance(value, bool) or not isinstance(value, int if isinstance(before, int) else int | float):
        kind = "whole number" if isinstance(before, int) else "number"
        raise ValueError(f"{shorten(value)} is no {kind}; write one such as {before:g}")
    return value


def _wrong(values: Parameters, real_rate_bps: float) -> Iterator[Problem]:
    for field, text in values.problems(real_rate_bps):
        word = _word(field)
        yield (word,), f"{word}: {text}"


def _word(field: str) -> str:
    return next((field.removesuffix(suffix) for suffix in _UNITS if field.endswith(suffix)), field)
