"""Values that topology files share: rates, MACs, and models that refuse unknown keys."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

_RATE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:bit/s|bps|b)?\s*$")
_FACTOR = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_RATE_MAX = 10**15
MOST_PORTS = 8
"""Ports of a NIC: adapters of 8 x 100G are the widest."""
_MAC = r"^[0-9a-f]{2}(:[0-9a-f]{2}){5}$"


def parse_rate(value: object) -> int:
    """Parse '200G', '1.5T', '100Mbit/s' or a plain number into bits per second. ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("write a rate such as 200G")
    if isinstance(value, int | float):
        rate = float(value)
    else:
        match = _RATE.match(value)
        if match is None:
            raise ValueError(f"{value!r} is not a rate; write one such as 200G")
        rate = float(match[1]) * _FACTOR[match[2]]
    if not 1 <= rate <= _RATE_MAX:
        raise ValueError("a rate must be at least 1 bit/s and at most 1000T")
    return int(rate)


_Written = Annotated[str, Field(pattern=_RATE.pattern)] | Annotated[float, Field(ge=1, le=_RATE_MAX)]
Rate = Annotated[int, BeforeValidator(parse_rate, json_schema_input_type=_Written)]
Mac = Annotated[str, Field(pattern=_MAC, examples=["02:00:00:00:00:01"])]


class Strict(BaseModel):
    """Frozen, and refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
