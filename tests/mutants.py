"""Break the code in one place after the other and see that the tests named for it fail: ``make mutants``.

The list is ``tests/mutants/*.yaml``, one entry for each defect that tests have to catch. Operators make the mechanical
ones (``make survivors``), and an entry is one that they do not make:

    - name: budget-pause                what to call it by
      breaks: a plain sentence of what is wrong then
      kind: pure                        or kernel (namespaces), guest (another kernel)
      file: failover/analysis/budget.py
      find: a few lines of it, which occur once; lines behind the first are indented relative to it
      replace: what stands there then
      test: the pytest ids that have to fail, one or a list
      says: some of what pytest says then, where another failure would prove nothing; optional

It works on a copy of the checkout, one mutant at a time, after the tests named have passed there unchanged.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from xml.etree import ElementTree

import yaml

ROOT = Path(__file__).resolve().parents[1]
_NO_SOURCES = (".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "*.egg-info", "build", "runs")
_LINE = 160
_TRACEBACK = "Traceback (most recent call last)"


class Kind(StrEnum):
    """What the tests of a mutant need."""

    PURE = "pure"
    KERNEL = "kernel"
    GUEST = "guest"


class Told(StrEnum):
    """What became of a mutant."""

    CAUGHT = "caught"
    SURVIVED = "survived"
    NO_PLACE = "does not apply"
    RED_WITHOUT = "red without it"
    NOT_RUN = "not run"  # a test of it was skipped


@dataclass(frozen=True, slots=True)
class Mutant:
    """A defect, and the tests that catch it."""

    name: str
    breaks: str
    kind: Kind
    file: str
    find: str
    replace: str
    tests: tuple[str, ...]
    says: str = ""

    def planted(self, text: str) -> str:
        """``text`` with the defect in it. ValueError when it has not exactly one place for it."""
        first = self.find.split("\n", 1)[0]
        indents = {line[: len(line) - len(line.lstrip())] for line in text.splitlines() if first in line}
        places = {self.find.replace("\n", f"\n{indent}"): indent for indent in indents}
        if sum(text.count(place) for place in places) != 1:
            raise ValueError(f"{self.file} has not exactly one place that reads: {self.find}")
        place, indent = next((place, indent) for place, indent in places.items() if place in text)
        return text.replace(place, self.replace.replace("\n", f"\n{indent}"))


def load(folder: Path) -> list[Mutant]:
    """The entries of every list in ``folder``."""
    return [_mutant(**entry) for file in sorted(folder.glob("*.yaml")) for entry in yaml.safe_load(file.read_text())]


def _mutant(
    *,
    name: str,
    breaks: str,
    kind: str,
    file: str,
    find: str,
    replace: str,
    test: str | list[str],
    says: str = "",
) -> Mutant:
    tests = (test,) if isinstance(test, str) else tuple(test)
    return Mutant(name, breaks, Kind(kind), file, find, replace, tests, says)


@dataclass(frozen=True, slots=True)
class Ran:
    """One test as pytest told it; ``said`` is empty when it passed."""

    id: str
    outcome: str  # '', 'failure', 'error', 'skipped'
    said: str

    def belongs_to(self, wanted: str) -> bool:
        """Whether it is the wanted test, or one of its parameters, or was to be found in a file that is in error."""
        return self.id == wanted or self.id.startswith((f"{wanted}[", f"{wanted}::")) or wanted.startswith(self.id)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one mutant, and the line that shows it."""

    mutant: Mutant
    told: Told
    shown: str


def copied(root: Path, to: Path) -> Path:
    """A copy of the sources of ``root``, as they stand, below ``to``."""
    return Path(shutil.copytree(root, to / "checkout", symlinks=True, ignore=shutil.ignore_patterns(*_NO_SOURCES)))


def run_tests(root: Path, tests: Collection[str], *, byte_code: bool = False) -> list[Ran]:
    """Run tests in the checkout at ``root``, in one process; of a single one, up to its first parameter that fails."""
    report = root.parent / "report.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", f"--junitxml={report}"]
    command += ["-x"] if len(tests) == 1 else []
    environment = {**os.environ, "PYTHONPATH": str(root), "CI": "1"}  # CI: the same examples each time
    if not byte_code:  # of a mutant nothing may stay
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
    ended = subprocess.run([*command, *tests], cwd=root, env=environment, capture_output=True, text=True)
    if not report.exists():
        return [Ran("", "error", (ended.stdout + ended.stderr).strip()[-_LINE:] or "pytest told nothing")]
    return list(_read(ElementTree.parse(report).getroot()))


def _read(report: ElementTree.Element) -> Iterator[Ran]:
    for case in report.iter("testcase"):
        told = next((child for child in case if child.tag in ("failure", "error", "skipped")), None)
        said = "" if told is None else f"{told.get('message', '')}\n{told.text or ''}"
        yield Ran(_id(case.get("classname", ""), case.get("name", "")), "" if told is None else told.tag, said)


def _id(classname: str, name: str) -> str:
    """'tests.lag.test_x.TestMux', 'test_y' as 'tests/lag/test_x.py::TestMux::test_y'; a file in error has no class."""
    parts = (classname or name).split(".")
    at = next((at for at, part in enumerate(parts) if part.startswith("test_")), len(parts) - 1)
    return "::".join(["/".join(parts[: at + 1]) + ".py", *parts[at + 1 :], *([name] if classname else [])])


def judge(mutant: Mutant, unchanged: Sequence[Ran], changed: Callable[[], Sequence[Ran]]) -> Answer:
    """What the tests say of a mutant, who ran ``unchanged`` and then ``changed``."""
    for wanted in mutant.tests:
        before = [ran for ran in unchanged if ran.belongs_to(wanted)]
        red = next((ran for ran in before if ran.outcome in ("failure", "error")), None)
        if red or not before:
            return Answer(mutant, Told.RED_WITHOUT, _first_line(red.said) if red else f"there is no {wanted}")
        if all(ran.outcome == "skipped" for ran in before):
            return Answer(mutant, Told.NOT_RUN, _first_line(before[0].said))
    after, shown = changed(), ""
    for wanted in mutant.tests:
        red = next((ran for ran in after if ran.belongs_to(wanted) and ran.outcome in ("failure", "error")), None)
        if red is None:
            return Answer(mutant, Told.SURVIVED, f"{wanted} passes")
        if mutant.says not in red.said:
            return Answer(mutant, Told.SURVIVED, f"{wanted} fails otherwise: {_first_line(red.said)}")
        shown = shown or _first_line(red.said)
    return Answer(mutant, Told.CAUGHT, shown)


def _first_line(said: str) -> str:
    """The line that tells: pytest's first 'E', or what a traceback from a sandbox ends with."""
    lines = [line.rstrip() for line in said.splitlines() if line.strip()]
    marked = next((line[1:].strip() for line in lines if line.startswith("E  ")), None)
    if marked is None and any(_TRACEBACK in line for line in lines):
        raised = [line for line in lines if not line.startswith(" ") and _TRACEBACK not in line]
        marked = raised[0] if raised else lines[-1]
    return (marked or (lines[0] if lines else ""))[:_LINE]


def answers(mutants: Sequence[Mutant], root: Path) -> Iterator[Answer]:
    """Plant each in a copy of the checkout at ``root`` and tell what its tests say."""
    with tempfile.TemporaryDirectory(prefix="hpn-mutants-") as temporary:
        copy = copied(root, Path(temporary))
        tests = dict.fromkeys(test for mutant in mutants for test in mutant.tests)
        unchanged = run_tests(copy, tests, byte_code=True)
        for mutant in mutants:
            yield _answer(mutant, copy, unchanged)


def _answer(mutant: Mutant, copy: Path, unchanged: Sequence[Ran]) -> Answer:
    file = copy / mutant.file
    try:
        original = file.read_text()
        changed = mutant.planted(original)
        if file.suffix == ".py":
            compile(changed, mutant.file, "exec")
    except (OSError, ValueError, SyntaxError) as error:
        return Answer(mutant, Told.NO_PLACE, str(error).split("\n", 1)[0])
    times = file.stat()
    file.write_text(changed)
    try:
        return judge(mutant, unchanged, lambda: run_tests(copy, mutant.tests))
    finally:
        file.write_text(original)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # its byte code is good again


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print what becomes of each mutant; 1 when one of them is not caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Plant mutants; see which tests fail.")
    parser.add_argument("name", nargs="*", help="only these; a name that ends in - means all that begin so")
    parser.add_argument("--kind", choices=list(Kind), action="append", help="only of this kind; more than once: these")
    parser.add_argument("--list", action="store_true", help="print the list and run nothing")
    asked = parser.parse_args(arguments)
    kinds = asked.kind or list(Kind)
    chosen = [mutant for mutant in load(root / "tests" / "mutants") if mutant.kind in kinds]
    if asked.name:
        chosen = [mutant for mutant in chosen if any(_named(mutant.name, name) for name in asked.name)]
    if not chosen:
        parser.error("there is no such mutant")
    if asked.list:
        for mutant in chosen:
            print(f"{mutant.name:28} {mutant.kind:7} {mutant.breaks}")
        return 0
    found = []
    for answer in answers(chosen, root):
        print(f"{answer.told:15} {answer.mutant.name:28} {answer.shown}", flush=True)
        found.append(answer.told)
    print(f"{found.count(Told.CAUGHT)} of {len(found)} caught")
    return 0 if set(found) == {Told.CAUGHT} else 1


def _named(name: str, asked: str) -> bool:
    return name.startswith(asked) if asked.endswith("-") else name == asked


if __name__ == "__main__":
    sys.exit(main())
