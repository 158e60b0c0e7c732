"""Promises of a fabric: what must hold when something fails, each an expectation of a drill. Pure.

Changes when a promise file gets another key. A promise is one entry as under ``expect`` of a drill file; ``of`` says
for which kinds of failures it holds, all of them without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from hpn.scenarios.audit.failures import KINDS, PAIR
from hpn.scenarios.drill.expectations import expectations_of
from hpn.scenarios.drill.json_schema import drill_schema
from hpn.scenarios.expect.expectation import Expectation
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.values import Strict
from hpn.testbed.files import kinds
from hpn.testbed.files.check import Mistakes, did_you_mean, dotted
from hpn.testbed.files.document import Document, Plain, Where, parse, read, shorten
from hpn.testbed.files.json_schema import Parts, Schema

_OF = "of"
_MOST = 50

DEFAULT = """\
# What must hold when one element fails. A promise is written as an expectation of a drill; all metrics: docs/drills.md
promises:
  # no queue pair stands still for more than 500 ms
  - worst_outage: {at_most: 500 ms, edge: failure}
    of: [link, port, switch, member, session, silent]
  # what comes back costs nothing
  - packets_lost: {at_most: 0, edge: repair}
    of: [link, port, switch, member, silent]
  # flows that do not cross what fails feel nothing
  - packets_lost: {at_most: 0, flows: others}
  # every protocol of the fabric has settled after 2 s; LACP itself takes longer to miss a member
  - converged: {at_most: 2 s, edge: failure}
    of: [link, port, host, switch, session]
  # links, LACP, BGP and routes are as before at the end
  - state_restored: yes
"""


class PromiseFile(Strict):
    """A promise file."""

    promises: list[dict[str, object]] = Field(
        min_length=1, max_length=_MOST, examples=["one '- worst_outage: {at_most: 500 ms}' or more"]
    )


@dataclass(frozen=True, slots=True)
class Promise:
    """One promise. ``entry``: as under ``expect`` of a drill file; ``of``: kinds of failures it holds for."""

    entry: dict[str, Plain]
    of: tuple[str, ...]
    expectations: tuple[Expectation, ...]

    @property
    def text(self) -> str:
        """Sentence: 'worst outage at failure at most 500 ms'."""
        return "; ".join(each.text for each in self.expectations)

    @property
    def longest_ns(self) -> float:
        """Largest limit of its times in ns; 0 without one."""
        return max((each.limit for each in self.expectations if each.metric.unit.value == "ms"), default=0.0)


def default_promises() -> tuple[Promise, ...]:
    """Return the promises of an audit that names no file."""
    return promises_in(parse(DEFAULT, "the default promises"))


def load_promises(path: Path) -> tuple[Promise, ...]:
    """Return the promises in a file. InputError with every mistake."""
    document = read(path)
    kinds.expect(document, "promises")
    return promises_in(document)


def promises_in(document: Document) -> tuple[Promise, ...]:
    """Return the promises in a document. InputError with every mistake."""
    mistakes = Mistakes(document)
    mistakes.check(PromiseFile, document.data)
    given = document.data.get("promises")
    entries = [each if isinstance(each, dict) else {} for each in given] if isinstance(given, list) else []
    of = [_kinds(mistakes, ("promises", at, _OF), entry.get(_OF)) for at, entry in enumerate(entries)]
    plain = [{key: value for key, value in entry.items() if key != _OF} for entry in entries]
    found = _expectations(mistakes, document, plain)
    if mistakes:
        raise mistakes.error()
    return tuple(Promise(*each) for each in zip(plain, of, found, strict=True))


def _kinds(mistakes: Mistakes, where: Where, given: Plain) -> tuple[str, ...]:
    """Return the kinds that a promise names; all without any."""
    known = (*KINDS, PAIR)
    if given is None:
        return known
    words = given if isinstance(given, list) else [given]
    if not words:
        mistakes.add(where, f"{dotted(where)} is empty; leave it out, or write some of {', '.join(known)}")
    for word in words:
        if word not in known:
            hint = did_you_mean(str(word), known, "kinds are")
            mistakes.add(where, f"unknown kind {shorten(word)} in {dotted(where)}; {hint}")
    return tuple(str(word) for word in words)


def _expectations(
    mistakes: Mistakes, document: Document, entries: Sequence[dict[str, Plain]]
) -> list[tuple[Expectation, ...]]:
    """Return the expectations of each entry; mistakes are noted with the lines and keys of the promise file."""
    lines = {("expect", *where[1:]): line for where, line in document.lines.items() if where[:1] == ("promises",)}
    inner = Mistakes(Document(document.name, {"expect": [*entries]}, lines))
    found = expectations_of(inner, None)
    if inner:
        for problem in inner.error().problems:
            line, text = _split(problem, document.name)
            mistakes.add(_at(document, line), text.replace("expect[", "promises["))
    return [tuple(each for each, where in found if where[1] == at) for at in range(len(entries))]


def _split(problem: str, name: str) -> tuple[int, str]:
    line, _, text = problem.removeprefix(f"{name}:").partition(": ")
    return int(line), text


def _at(document: Document, line: int) -> Where:
    return next((where for where, at in document.lines.items() if at == line), ())


def promises_schema() -> Schema:
    """Return the JSON Schema of a promise file, for editors."""
    drill = drill_schema()
    parts = Parts()
    top = parts.of(PromiseFile)
    entry = drill["properties"]["expect"]["items"]
    words = {"enum": [*KINDS, PAIR]}
    of = {"anyOf": [words, {"type": "array", "items": words, "minItems": 1}]}
    own = {**entry["properties"], _OF: {**of, "description": "kinds of failures; without it, all of them"}}
    top["properties"]["promises"]["items"] = {**entry, "properties": own, "maxProperties": 2}
    parts.definitions |= drill["$defs"]
    return parts.file(top, "promises of a fabric for hpn audit")


def check_used(promises: Sequence[Promise], tried: Sequence[str]) -> None:
    """Raise InputError if no promise is about any kind that is tried."""
    if not any({*each.of} & {*tried} for each in promises):
        raise InputError(f"no promise is of {', '.join(tried)}; add one, or name other --kinds")
