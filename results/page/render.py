"""Rendering of templates: self-contained HTML files that load nothing else.

Changes when all pages get another frame. The content security policy blocks all outside content and runs only the
scripts of this package. Charts are uPlot 1.6.32 (MIT licence, ``static/uplot-LICENSE.txt``), inlined and verified by
digest.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from hpn.results.text.glossary import TERMS, Term
from hpn.results.text.printable import printable
from hpn.testbed.errors import MachineError

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


UPLOT = "uplot-1.6.32.min.js"
UPLOT_SHA256 = "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"
"""SHA-256 of dist/uPlot.iife.min.js in the npm package uplot 1.6.32."""


def rendered(template: str, view: object, *, has_charts: bool, picture: str = "", sheet: str = "") -> str:
    """Return a rendered template, to be written in UTF-8. MachineError when hpn is incomplete.

    ``picture``: SVG that hpn generated. ``sheet``: a style sheet of this template, after the common one.
    """
    common, script, library = static("page.css"), static("page.js"), static(UPLOT)
    if hashlib.sha256(library.encode()).hexdigest() != UPLOT_SHA256:
        raise MachineError(f"{UPLOT} of this installation is not the one that was released; install hpn again")
    scripts = (library, script) if has_charts else ()
    sheets = [static("uplot-1.6.32.min.css")] if has_charts else []
    sheets += [common, *([static(sheet)] if sheet else [])]
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    policy += "; script-src " + (" ".join(map(_digest, scripts)) if scripts else "'none'")
    return (
        _templates()
        .get_template(template)
        .render(
            view=view,
            policy=policy,
            licence=static("uplot-LICENSE.txt").splitlines()[2] if has_charts else "",
            sheets=[Markup(each) for each in sheets],
            scripts=[Markup(each) for each in scripts],
            picture=Markup(picture),
            glossary=Glossary(),
        )
    )


@cache
def static(name: str) -> str:
    """Return a static file of the templates."""
    return files("hpn.results.page").joinpath("static", name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _shown(value: object) -> object:
    """Return text in a form safe for a page; markup and numbers stay unchanged."""
    return value if not isinstance(value, str) or isinstance(value, Markup) else as_text(value)


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("hpn.results.page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
