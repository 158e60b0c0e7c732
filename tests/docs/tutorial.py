"""A page of commands followed word for word in a throw-away clone: ``make tutorial``.

* A block ``sh`` is typed line by line; a comment ``# exit code 0 or 4`` says which codes are right, else it is 0.
* A block ``text`` quotes what the block before it prints: its lines stand in that output in that order, each as part of
  a line; any number stands for a number, ``...`` for anything, spaces for spaces.
* A block ``yaml`` goes into the file that the text before it names: Save this as `mine.yaml`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.pages import ROOT, tokens

_CODES = re.compile(r"#.*exit code (\d+(?: or \d+)*)")
_NUMBER = r"-?\d+(?:\.\d+)*"
_KEPT = re.compile(r"\s*(alias|export|cd)\s")
_LONGEST_S = 1800


@dataclass(frozen=True)
class Typed:
    """A line of shell, and the exit codes that it may have."""

    line: str
    codes: tuple[int, ...]


@dataclass
class Step:
    """A file to be saved, or lines to be typed and what the page says that they print."""

    file: str = ""
    text: str = ""
    lines: list[Typed] = field(default_factory=list)
    quoted: list[str] = field(default_factory=list)


class WrongPageError(Exception):
    """Something came otherwise than the page says."""


def steps(page: Path) -> Iterator[Step]:
    """What a page has one do, in order."""
    found: list[Step] = []
    said = ""
    for token in tokens(page):
        if token.type == "inline":
            said = token.content
        if token.type != "fence":
            continue
        if token.info == "sh":
            lines = [line for line in token.content.splitlines() if line.strip()]
            found.append(Step(lines=[Typed(line, _codes(line)) for line in lines]))
        elif token.info == "text":
            found[-1].quoted += [line for line in token.content.splitlines() if line.strip()]
        elif named := re.search(r"Save this as `([\w.-]+)`", said):
            found.append(Step(file=named[1], text=token.content))
    return iter(found)


def missing(quoted: list[str], output: str) -> list[str]:
    """The quoted lines that do not stand in the output, or not in that order."""
    lines = [" ".join(line.split()) for line in output.splitlines()]
    lost, at = [], 0
    for quote in quoted:
        wanted = _pattern(quote)
        place = next((n for n in range(at, len(lines)) if wanted.search(lines[n])), None)
        if place is None:
            lost.append(quote)
        else:
            at = place + 1
    return lost


def follow(page: Path, folder: Path) -> Iterator[str]:
    """Do what the page says in ``folder``; a line for each command that went as it says. WrongPageError otherwise."""
    kept: list[str] = []
    for step in steps(page):
        if step.file:
            (folder / step.file).write_text(step.text)
            yield f"saved {step.file}"
        output = ""
        for typed in step.lines:
            began = time.monotonic()
            code, said = _type("\n".join(("shopt -s expand_aliases", *kept, typed.line)), folder)
            if code not in typed.codes:
                raise WrongPageError(f"{typed.line}: exit code {code}\n{said}")
            output += said
            kept += [typed.line] if _KEPT.match(typed.line) else []
            yield f"exit {code} after {time.monotonic() - began:5.1f} s  {typed.line}"
        if lost := missing(step.quoted, output):
            raise WrongPageError("nothing like this was printed:\n  " + "\n  ".join(lost) + f"\nbut\n{output}")
        if step.quoted:
            yield f"printed all of {len(step.quoted)} quoted lines"


def _codes(line: str) -> tuple[int, ...]:
    found = _CODES.search(line)
    return tuple(map(int, found[1].split(" or "))) if found else (0,)


def _pattern(quote: str) -> re.Pattern[str]:
    words = re.escape(" ".join(quote.split())).replace(r"\.\.\.", ".*").replace(r"\ ", " ").replace(r"\-", "-")
    return re.compile(re.sub(r"-?\d+(?:\\\.\d+)*", lambda _: _NUMBER, words))


def _type(script: str, folder: Path) -> tuple[int, str]:
    """The exit code of a script of bash, and what it printed, in a folder and with labs of its own."""
    environment = {name: value for name, value in os.environ.items() if name not in {"VIRTUAL_ENV", "PYTHONPATH"}}
    ended = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={**environment, "HPN_STATE_DIR": str(folder.parent / "labs")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_LONGEST_S,
    )
    return ended.returncode, ended.stdout


def main(name: str) -> int:
    """Clone what is committed, follow the page, say how it went."""
    with tempfile.TemporaryDirectory(prefix="hpn-tutorial-") as folder:
        clone = Path(folder) / "hpn"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        try:
            for line in follow(clone / name, clone):
                print(line, flush=True)
        except WrongPageError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
    print(f"{name}: every command went as it says")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
