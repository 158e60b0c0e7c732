"""Next-step hints: the command that follows each command, printed as the last line on standard error.

Changes when another command is worth suggesting after one.
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
from hpn.testbed import plugins

Value = str | Path | int | Sequence[str | Path] | None

_LONGEST = 300
"""Maximum length of a hint; a line with the names of many runs would be longer."""
_PARTS = re.compile(r"\[[^\]]*\]|\S+")

FOLLOWERS: Mapping[str, Sequence[str]] = {
    "drill ls": ["hpn drill show {drill}"],
    "drill show": ["hpn drill run {drill} [--topology {topology}] [--profile {profile}]"],
    "drill new": ["hpn drill validate {file}"],
    "drill validate": ["hpn drill run {drills} [--topology {topology}] [--profile {profile}]"],
    "drill run": ["hpn report {run}", "hpn compare {repeats}", "hpn results ls --runs {folder}"],
    "drill matrix": ["hpn report {run}"],
    "analyse": ["hpn report {run}"],
    "audit": ["hpn report {run}"],
    "campaign run": ["hpn drill run {drill}", "hpn campaign show {folder}"],
    "campaign show": ["hpn drill run {drill}", "hpn report {folder}"],
    "explore": ["hpn drill run {drill}"],
    "ci run": ["hpn report {run}", "hpn results ls --runs {folder}"],
    "ci bmwg": ["hpn results ls --runs {folder}"],
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
    "break": [
        "hpn trace {src} {dst} --sport 50000 --lab {lab}",
        "hpn mend {part} --lab {lab}",
        "hpn locate --lab {lossy}",
    ],
    "mend": ["hpn inspect broken --lab {lab}"],
    "topology new": ["hpn plan {file}"],
    "topology import": ["hpn plan {file}"],
    "topology export": ["hpn plan {file}", "hpn topology import {foreign}"],
    "report": ["hpn compare {runs}"],
    "compare": [
        "hpn compare {runs} [--across {across}] --html comparison.html",
        "hpn compare {runs} --baseline {saved}",
        "hpn report {worse}",
    ],
    "locate": ["hpn report {run}", "hpn inspect links --lab {lab}"],
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
    """Print the next steps after the command on stderr; ``words`` fill the lines.

    ``quiet`` suppresses it, as for JSON.
    """
    found = () if quiet else tuple(following(command, words))
    if found:
        try:
            click.echo(f"next: {'   or: '.join(map(_with_plugins, found))}", err=True)
        except OSError:  # an unwritable stderr does not change the command's result
            _forget_stderr()


def _with_plugins(line: str) -> str:
    """Return a line with the plug-ins of this command line: without them it would be refused."""
    context = click.get_current_context(silent=True)
    folders: Sequence[Path] = () if context is None else context.meta.get(plugins.GIVEN, ())
    given = "".join(f"--plugin {shlex.quote(str(each))} " for each in folders)
    return line.replace("hpn ", f"hpn {given}", 1)


def _forget_stderr() -> None:
    """Discard pending output on stderr: Python would try again at exit, and return 120."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stderr.fileno())
        os.close(nowhere)


def following(command: str, words: Mapping[str, Value]) -> Iterator[str]:
    """Yield the command lines after a command, quoted for a shell; skip those that cannot be typed as shown. Pure."""
    given = {name: values for name, value in words.items() if (values := _values(value))}
    for line in FOLLOWERS[command]:
        text = " ".join(_filled(line, given))
        if text and len(text) <= _LONGEST and printable(text) == text:
            yield text


def _values(value: Value) -> tuple[str, ...]:
    """Return the arguments that a word represents, none of which looks like an option."""
    if value is None or value == "":
        return ()
    several = value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
    return tuple(f"./{each}" if str(each).startswith("-") else str(each) for each in several)


def _filled(line: str, given: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield the quoted arguments of a line; nothing if a required word is missing."""
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
