"""Safe text for XML documents: names come from files, lines from consoles."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape

_NOT_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]")
"""Characters that XML 1.0 forbids even escaped, and those that reverse the direction of text."""


def possible(text: str) -> str:
    """Return the text with a question mark for each forbidden character; nothing is escaped."""
    return _NOT_XML.sub("?", text)


def escaped(text: str) -> str:
    """Return the text as content of an element or, between double quotes, of an attribute."""
    return escape(possible(text), {'"': "&quot;", "\n": "&#10;", "\t": "&#9;", "\r": "&#13;"})
