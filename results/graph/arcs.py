"""Arcs between switches of one row: how high they are, and in which order they leave a box. Pure."""

from __future__ import annotations

_MOST_RISE, _HALF_RISE = 380.0, 900.0  # an arc as wide as the second is half as high as the first
_FAR = 1e9


def rise(width: float) -> float:
    """Return the height of an arc of that width, in pixels: the wider the higher, and never above a limit."""
    return _MOST_RISE * width / (width + _HALF_RISE)


def nested(here: float, there: float) -> float:
    """Return the sort key of an arc at a box: near ones on the left, then far ones, then near ones on the right."""
    return (_FAR if there > here else 0.0) - there
