"""Safe display of text from a run: names come from files, and terminals execute control characters."""

from __future__ import annotations

_BYTES = range(0xDC80, 0xDD00)
"""Code points by which Python represents bytes of a file name that are not UTF-8 (PEP 383)."""


def escaped_name(text: str) -> str:
    """Return a file's name as text for any Unicode encoding: bytes that are not UTF-8 are escaped with a backslash."""
    return "".join(f"\\x{ord(each) - 0xDC00:02x}" if ord(each) in _BYTES else each for each in text)


def printable(text: str, allowed: str = "") -> str:
    """Return the text with a question mark for each control or invisible character that is not ``allowed``.

    Bytes of names that are not UTF-8 are escaped.
    """
    return "".join(each if each.isprintable() or each in allowed else "?" for each in escaped_name(text))
