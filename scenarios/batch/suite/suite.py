"""Suite file and its runs: drills x engines x repeats, with all mistakes at once.

Pure, except that it checks which clients this machine has: 'all' leaves out drills whose client is not installed.
Changes when a suite file gets another key. ``scenarios.batch.suite.schedule`` makes the runs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from pydantic import Field, ValidationError

from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.schema import NAME, PlainText
from hpn.scenarios.run.client_site import Library, library
from hpn.scenarios.run.repeats import too_few
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.load import load_topology
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.fabric.values import Strict
from hpn.testbed.files import kinds
from hpn.testbed.files.check import Mistakes, did_you_mean
from hpn.testbed.files.document import Document, Plain, Where, read, shorten
from hpn.testbed.vm.engines import HOST

MOST_RUNS, MOST_REPEATS = 10_000, 1000
_IN_TOPOLOGY = re.compile(r": topology: (\S.*:\d+: .*)")
EVERY = "all"
"""Word that selects every drill that comes with hpn."""


class BlockSection(Strict):
    """One entry of ``runs:``."""

    drills: list[str] = Field(min_length=1, examples=["[link-down, tor-crash]"])
    engines: list[str] = Field(default=[HOST.name], min_length=1, examples=["[host]"])
    repeats: int = Field(default=1, ge=1, le=MOST_REPEATS)
    tries: int = Field(default=1, ge=1, le=20, description="of a run, while it cannot be trusted")


class SuiteFile(Strict):
    """A suite file."""

    suite: str = Field(pattern=NAME, examples=["nightly"])
    summary: PlainText = Field(default="", max_length=160)
    parallel: int | None = Field(
        default=None, ge=1, le=256, description="runs at a time; default: what the cores carry"
    )
    runs: list[BlockSection] = Field(min_length=1, examples=["one '- {drills: [link-down], engines: [host]}' or more"])


@dataclass(frozen=True, slots=True)
class Run:
    """One run to be made. ``repeat`` counts from 1."""

    drill: Drill
    engine: str
    repeat: int
    repeats: int
    tries: int = 1

    @property
    def name(self) -> str:
        """Name of the drill."""
        return self.drill.name

    @property
    def title(self) -> str:
        """Title: 'link-down on qemu' or 'link-down on qemu #2'; unique in a suite."""
        return f"{self.name} on {self.engine}" + (f" #{self.repeat}" if self.repeats > 1 else "")

    @property
    def folder(self) -> str:
        """Folder name: 'link-down.qemu.2'."""
        return f"{self.name}.{self.engine}" + (f".{self.repeat}" if self.repeats > 1 else "")


@dataclass(frozen=True, slots=True)
class Suite:
    """Checked suite file; ``source`` is its name, for a command line."""

    name: str
    summary: str
    parallel: int | None
    runs: tuple[Run, ...]
    left_out: tuple[str, ...] = ()  # drills of 'all' that this machine or the topology cannot run, with the reason
    topology: str = ""  # preset or file that replaces the topology of every drill, or ''
    source: str = "SUITE"


def load_suite(path: str | Path, engines: Iterable[str], topology: str = "") -> Suite:
    """Return the suite in that file; it may name these ``engines``. InputError with every mistake, also in drills."""
    document = read(path)
    kinds.expect(document, "suite")
    return suite_from(document, Path(path).parent, tuple(engines), topology)


def suite_from(document: Document, base: Path, engines: tuple[str, ...], topology: str = "") -> Suite:
    """Return the suite in a document; drill files that it names are relative to ``base``."""
    elsewhere = load_topology(topology) if topology else None
    mistakes = Mistakes(document)
    top = mistakes.check(SuiteFile, document.data)
    runs: list[Run] = []
    library = _library(top, elsewhere)
    for at, block in _blocks(top, document):
        runs += _block(mistakes, ("runs", at), block, base, engines, library.drills, elsewhere)
    if not mistakes and len(runs) > MOST_RUNS:
        mistakes.add(("runs",), f"{len(runs)} runs in one suite; at most {MOST_RUNS}: fewer repeats or several suites")
    if not mistakes:
        _unique(mistakes, runs)
    if mistakes or top is None:
        raise _once(mistakes.error())
    return Suite(
        top.suite, top.summary.strip(), top.parallel, tuple(runs), library.left_out, topology, quote(document.name)
    )


def _once(error: InputError) -> InputError:
    """Return the error with each mistake in a topology file only at the first drill that names it."""
    told: set[str] = set()
    left: list[str] = []
    for problem in error.problems:
        found = _IN_TOPOLOGY.search(problem)
        if found is None or found[1] not in told:
            left.append(problem)
        told |= {found[1]} if found is not None else set()
    return InputError(left)


def _blocks(top: SuiteFile | None, document: Document) -> Iterator[tuple[int, BlockSection]]:
    """Yield every block with its place; of a file with mistakes, which are noted, the readable parts of its blocks."""
    if top is not None:
        yield from enumerate(top.runs)
        return
    written = document.data.get("runs")
    for at, block in enumerate(written if isinstance(written, list) else ()):
        if isinstance(block, dict):
            yield at, _readable(block)


def _readable(block: Mapping[str, Plain]) -> BlockSection:
    """Return a block without its invalid keys, so that mistakes in its drills and engines are also reported."""
    try:
        return BlockSection.model_validate(block, strict=True)
    except ValidationError as error:
        wrong = {detail["loc"][0] for detail in error.errors() if detail["loc"]}
    right = {key: value for key, value in block.items() if key not in wrong}
    enough = BlockSection(drills=[EVERY], repeats=MOST_REPEATS)  # 'repeat: 5' must not cause '1 is too few'
    return enough.model_copy(update={"drills": [], **right})


def _library(top: SuiteFile | None, elsewhere: FabricSpec | None) -> Library:
    """Return all drills of the library if a block selects them."""
    blocks = [block for block in (top.runs if top is not None else ()) if EVERY in block.drills]
    engines = {engine for block in blocks for engine in block.engines}
    return library(elsewhere, engines) if blocks else Library((), ())


def _block(
    mistakes: Mistakes,
    where: Where,
    block: BlockSection,
    base: Path,
    engines: tuple[str, ...],
    every: Sequence[Drill],
    elsewhere: FabricSpec | None,
) -> Iterator[Run]:
    for at, engine in enumerate(block.engines):
        if engine not in engines:
            hint = did_you_mean(engine, engines, "engines are")
            mistakes.add((*where, "engines", at), f"unknown engine {shorten(engine)}; {hint}")
    names = [(0, drill.name) for drill in every] if block.drills == [EVERY] else enumerate(block.drills)
    for at, name in names:
        if name == EVERY:
            mistakes.add((*where, "drills", at), f"{EVERY!r} is every drill of the library and stands alone: [{EVERY}]")
            continue
        drill = _drill(mistakes, (*where, "drills", at), name, base, elsewhere)
        if drill is None:
            continue
        for _, what in too_few(drill, block.repeats):
            mistakes.add((*where, "drills", at), f"drill {drill.name}: {what}; raise 'repeats' here")
        for engine in block.engines:
            for repeat in range(1, block.repeats + 1):
                yield Run(drill, engine, repeat, block.repeats, block.tries)


def _drill(mistakes: Mistakes, where: Where, name: str, base: Path, elsewhere: FabricSpec | None) -> Drill | None:
    """Return that drill, or None after noting its mistakes."""
    try:
        return catalogue.load(str(base / catalogue.find(name)), elsewhere)
    except InputError as error:
        mistakes.add_all(where, error)
        return None


def _unique(mistakes: Mistakes, runs: Iterable[Run]) -> None:
    """Check that no two blocks select the same run, as their repeats could not be told apart."""
    for folder, count in Counter((run.name, run.engine, run.repeat) for run in runs).items():
        if count > 1 and folder[2] == 1:
            mistakes.add(
                ("runs",), f"{folder[0]} on {folder[1]} is asked for {count} times; write it once, with 'repeats'"
            )
