"""Links from words of a page to its glossary: a term is linked at its first use in a section. Pure.

Changes when a page links terms in another way. Text comes from runs: it is escaped before links are inserted, and a
link contains only the word itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from markupsafe import Markup, escape

from hpn.results.text.glossary import TERMS, Term
from hpn.results.text.printable import printable

Shown = Callable[[object], Markup]
_LONGEST = 20_000
"""Maximum characters of a text; SVG paths of charts are the longest texts."""


class Glossary:
    """The terms used so far on a page; each page has its own."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def section(self) -> Shown:
        """Return a function that turns text of a new section into markup, with a link at the first use of each term."""
        linked: set[str] = set()

        def shown(text: object) -> Markup:
            return text if isinstance(text, Markup) else _linked(as_text(str(text)), linked, self._used)

        return shown

    def terms(self) -> Iterator[Term]:
        """Return the terms that were linked, by name."""
        return (term for name, term in TERMS.items() if name in self._used)


def as_text(text: str) -> str:
    """Return text of a run without control characters, which pages must not contain, truncated to a readable length."""
    return printable(text[:_LONGEST], "\n\t") + ("..." if len(text) > _LONGEST else "")


def _linked(text: str, linked: set[str], used: set[str]) -> Markup:
    by_word, pattern = _words()

    def link(found: re.Match[str]) -> str:
        term = by_word[found[0].lower()]
        if term.name in linked:
            return found[0]
        linked.add(term.name)
        used.add(term.name)
        return f'<a class="term" href="#{term.anchor}">{found[0]}</a>'

    return Markup(pattern.sub(link, str(escape(text))))


@cache
def _words() -> tuple[dict[str, Term], re.Pattern[str]]:
    """Return each term by its lower-case words, and a pattern that finds them: longest first, never within a name."""
    forms = {form: term for term in TERMS.values() for name in (term.name, *term.also) for form in (name, f"{name}s")}
    spelled = "|".join(_spelled(form) for form in sorted(forms, key=len, reverse=True))
    return {form.lower(): term for form, term in forms.items()}, re.compile(rf"(?<![\w.&#>-])(?:{spelled})(?![\w-])")


def _spelled(form: str) -> str:
    """Return the pattern of a word. It may be capitalised, but an abbreviation is literal: LAG is not a clock's lag."""
    if form != form.lower():
        return re.escape(form)
    return f"[{form[0]}{form[0].upper()}]{re.escape(form[1:])}"
