"""The words for a figure that is a lower bound, and for what never came: the same in all that people read. Pure."""

from __future__ import annotations

NEVER = "never"
BELOW_ZERO = "< 0"
"""The room that what never ends leaves below a limit."""


def at_least(text: str, *, open_ended: bool = True) -> str:
    """'>= 4428 ms' of a lower bound; else the figure as it is."""
    return f">= {text}" if open_ended else text


def at_most(text: str, *, open_ended: bool = True) -> str:
    """'<= -4328 ms' of the room that a lower bound leaves; else as it is."""
    return f"<= {text}" if open_ended else text
