"""Parameters of a fault: fields of its class that a drill file sets, with unit and range. Pure.

Changes when drill files get a new kind of value.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Unit(StrEnum):
    """Notation of a parameter in a drill file."""

    DURATION = "duration"  # '400 ms', an int of nanoseconds here
    PERCENT = "percent"  # '50 %', a float of 0..1 here
    COUNT = "count"
    CHOICE = "choice"  # one of a few words
    NAME = "name"  # of something in the fabric


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a fault as a drill file gives it; ``low`` and ``high`` are inclusive, in the field's unit.

    ``choices`` of a choice instead. A parameter with a ``default`` may be left out of the file. ``example``: of a name.
    """

    key: str
    unit: Unit
    low: float = 0
    high: float = 0
    choices: type[StrEnum] | None = None
    default: int | float | str | None = None
    example: str = ""

    def of(self, value: int | float | str) -> int | float | str:
        """Return the field's value for a drill file's value."""
        return self.choices(str(value)) if self.choices is not None else value


def parameter(key: str, unit: Unit, low: float, high: float, default: float | None = None) -> Any:
    """Declare a dataclass field as a parameter of the drill file."""
    return _field(Parameter(key, unit, low, high, default=default))


def choice(key: str, choices: type[StrEnum], default: StrEnum | None = None) -> Any:
    """Declare a dataclass field as a choice of the drill file between the values of ``choices``."""
    return _field(Parameter(key, Unit.CHOICE, choices=choices, default=default))


def name(key: str, example: str) -> Any:
    """Declare a dataclass field as a name that the drill file may give; '' when it does not."""
    return _field(Parameter(key, Unit.NAME, default="", example=example))


def _field(declared: Parameter) -> Any:
    default = dataclasses.MISSING if declared.default is None else declared.default
    return dataclasses.field(default=default, metadata={"parameter": declared})


def parameters(fault: type) -> dict[str, Parameter]:
    """Return the parameters of a fault class by field name, without the target."""
    fields = dataclasses.fields(fault)
    return {f.name: f.metadata["parameter"] for f in fields if "parameter" in f.metadata}
