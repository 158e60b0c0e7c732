"""Texts for lower bounds and for events that never came, the same in all output for people. Pure."""

from __future__ import annotations

NEVER = "never"
BELOW_ZERO = "< 0"
"""Margin below a limit that an outage without end leaves."""


def at_least(text: str, *, open_ended: bool = True) -> str:
    """Return '>= 4428 ms' for a lower bound, else the figure unchanged."""
    return f">= {text}" if open_ended else text


def at_most(text: str, *, open_ended: bool = True) -> str:
    """Return '<= -4328 ms' for the margin that a lower bound leaves, else the figure unchanged."""
    return f"<= {text}" if open_ended else text
