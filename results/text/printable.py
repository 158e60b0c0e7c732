"""Text of a run as it may be shown: names come from files, and a terminal obeys control characters."""

from __future__ import annotations


def printable(text: str, allowed: str = "") -> str:
    """The text with a question mark for each control or invisible character that is not ``allowed``."""
    return "".join(each if each.isprintable() or each in allowed else "?" for each in text)
