"""The command that follows each command: the last line that it prints, on standard error.

Changes when another command is worth naming behind one.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import click

from hpn.results.text.printable import printable

Value = str | Path | int | Sequence[str | Path] | None

_LONGEST = 300
"""A longer line, such as one with the names of many runs, is no hint any more."""
_PARTS = re.compile(r"\[[^\]]*\]|\S+")

FOLLOWERS: Mapping[str, Sequence[str]] = {
    "drill ls": ["hpn drill show {drill}"],
    "drill show": ["hpn drill run {drill} [--topology {topology}]"],
    "drill new": ["hpn drill validate {file}"],
    "drill validate": ["hpn drill run {drills} [--topology {topology}]"],
    "drill run": ["hpn report {run}", "hpn compare {repeats}", "hpn results ls --runs {folder}"],
    "drill compare": ["hpn compare {folder} --across engine"],
    "analyse": ["hpn report {run}"],
    "campaign run": ["hpn drill run {drill}", "hpn campaign show {folder}"],
    "campaign show": ["hpn drill run {drill}", "hpn report {folder}"],
    "ci run": ["hpn report {run}", "hpn results ls --runs {folder}"],
    "model": ["hpn model link-down --times {times}"],
    "month": ["hpn month --assumptions [--set {changes}]"],
    "plan": ["hpn up {topology}", "hpn model link-down --topology {too_large}"],
    "presets": ["hpn plan {preset}"],
    "up": ["hpn inspect --lab {lab}", "hpn break {part} --lab {lab}"],
    "down": ["hpn inspect --lab {other}"],
    "ls": ["hpn inspect --lab {lab}", "hpn down {dead}", "hpn up {preset}"],
    "trace": [
        "hpn graph --lab {lab} --flow {src} {dst} {sport} --out trace.svg",
        "hpn inspect broken --lab {dropped_in}",
    ],
    "capture": ["wireshark {file}"],
    "break": ["hpn trace {src} {dst} --sport 50000 --lab {lab}", "hpn mend {part} --lab {lab}"],
    "mend": ["hpn inspect broken --lab {lab}"],
    "topology new": ["hpn plan {file}"],
    "report": ["hpn compare {runs}"],
    "compare": [
        "hpn compare {runs} [--across {across}] --html comparison.html",
        "hpn compare {runs} --baseline {saved}",
        "hpn report {worse}",
    ],
    "results ls": ["hpn report {run}", "hpn drill run {drill}"],
    "results trend": ["hpn results ls --drill {drill} --runs {folder}"],
    "export": ["wireshark {capture}"],
    "reproduce": ["hpn results ls --runs {folder}"],
    "doctor": ["hpn drill run {drill}"],
    "selftest": ["hpn drill run {drill}"],
    "vm build-kernel": ["hpn drill run {drill} --engine uml-virtual-time"],
    "vm kernels": ["hpn vm build-kernel"],
}
"""Command to what may follow it. A line is shown when the command gives all its {words}; a part in [] goes with its
word, once for each value."""


def tell_next(command: str, *, quiet: bool = False, **words: Value) -> None:
    """Print what follows the command on stderr, unless ``quiet``, as where it prints JSON; the words fill the lines."""
    found = () if quiet else tuple(following(command, words))
    if found:
        try:
            click.echo(f"next: {'   or: '.join(found)}", err=True)
        except OSError:  # a stderr that takes nothing is no answer of the command
            _forget_stderr()


def _forget_stderr() -> None:
    """What it still holds goes nowhere: Python would try again at its end, and exit with 120."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stderr.fileno())
        os.close(nowhere)


def following(command: str, words: Mapping[str, Value]) -> Iterator[str]:
    """The command lines behind a command, quoted for a shell; none that could not be typed as it is shown. Pure."""
    given = {name: values for name, value in words.items() if (values := _values(value))}
    for line in FOLLOWERS[command]:
        text = " ".join(_filled(line, given))
        if text and len(text) <= _LONGEST and printable(text) == text:
            yield text


def _values(value: Value) -> tuple[str, ...]:
    """What a word stands for: no, one or several arguments, none of which a command takes for an option."""
    if value is None or value == "":
        return ()
    several = value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
    return tuple(f"./{each}" if str(each).startswith("-") else str(each) for each in several)


def _filled(line: str, given: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The quoted arguments of a line; nothing when a word that it needs is not given."""
    parts = _PARTS.findall(line)
    needed = {name for part in parts if not part.startswith("[") for name in re.findall(r"{(\w+)}", part)}
    if not needed <= given.keys():
        return
    for part in parts:
        if not part.startswith("["):
            yield from map(shlex.quote, given[part[1:-1]] if part.startswith("{") else [part])
            continue
        option, name = part[1:-1].split()
        for value in given.get(name[1:-1], ()):
            yield from (option, shlex.quote(value))
