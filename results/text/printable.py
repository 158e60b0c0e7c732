"""Text of a run as it may be shown: names come from files, and a terminal obeys control characters."""

from __future__ import annotations

_BYTES = range(0xDC80, 0xDD00)
"""How Python has the bytes of a file's name that are no UTF-8 (PEP 383)."""


def escaped_name(text: str) -> str:
    """A file's name as text that any encoding of Unicode takes: bytes that are no UTF-8 become '\\xff'."""
    return "".join(f"\\x{ord(each) - 0xDC00:02x}" if ord(each) in _BYTES else each for each in text)


def printable(text: str, allowed: str = "") -> str:
    """The text with a question mark for each control or invisible character that is not ``allowed``.

    Bytes of names that are no UTF-8 are escaped.
    """
    return "".join(each if each.isprintable() or each in allowed else "?" for each in escaped_name(text))
