"""Try mutants within a copy of the checkout, one forked pytest each: hpn is imported by that alone."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import hypothesis  # noqa: F401  imported once for all forks
import numpy as np  # noqa: F401
import pydantic  # noqa: F401
import pytest

from tests.survivors.generate import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]
_PURE = ("-m", "not kernel and not guest and not alone and not extra", "-p", "no:cacheprovider", "-p", "no:xdist")


@dataclass(frozen=True, slots=True)
class Calls:
    """Which tests call each function, and how long each test takes."""

    tests: dict[str, list[str]]
    seconds: dict[str, float]

    def of(self, mutant: Mutant) -> list[str]:
        """Passing tests that call the function, the quickest first."""
        called = self.tests.get(f"{mutant.file} {mutant.function}", [])
        tests = {each for name in called for each in self.seconds if each == name or each.startswith(f"{name}::")}
        return sorted(tests, key=lambda test: self.seconds[test])


def calls(rooms: Sequence[str], folders: Sequence[str]) -> Calls:
    """Run the pure tests below ``folders`` that name one of the rooms, or whose helpers do."""
    names = tuple(f"hpn.{room.removesuffix('.py').replace('/', '.')}" for room in rooms)
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    naming = {file for file in files if any(name in file.read_text() for name in names)}
    helpers = tuple(".".join(file.relative_to(ROOT).with_suffix("").parts) for file in naming)
    naming |= {file for file in files if any(f"from {helper} " in file.read_text() for helper in helpers)}
    tests = [str(file.relative_to(ROOT)) for file in sorted(naming) if file.name.startswith("test_")]
    seen = ROOT.parent / "calls.json"
    command = [sys.executable, "-m", "pytest", *_PURE, "-p", "tests.survivors.calls", "--calls", str(seen), *tests]
    keeping = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}  # for all forks
    subprocess.run(command, cwd=ROOT, env=keeping, stdout=subprocess.DEVNULL)
    return Calls(**json.loads(seen.read_text()))


def drawn(rooms: Sequence[str], limit: int, seed: int) -> Iterator[Mutant]:
    """Mutants of the rooms in the order of their files: about ``limit`` of them at random, all of them with 0."""
    files = [
        file for room in rooms for file in ([ROOT / room] if room.endswith(".py") else (ROOT / room).rglob("*.py"))
    ]
    draw = random.Random(seed)
    sizes = [file.stat().st_size for file in files]
    lots = Counter(draw.choices(files, sizes, k=limit)) if limit else dict.fromkeys(files, sys.maxsize)
    for file in sorted(lots):
        found = list(mutants(str(file.relative_to(ROOT)), file.read_text()))
        yield from found if lots[file] >= len(found) else draw.sample(found, lots[file])


def survives(mutant: Mutant, tests: Sequence[str], seconds: float) -> bool:
    """Whether all the tests pass with the mutant in its place."""
    file = ROOT / mutant.file
    original, times = file.read_text(), file.stat()
    file.write_text(mutant.text)
    try:
        child = os.fork()
        if not child:
            _run(tests, seconds)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == pytest.ExitCode.OK
    finally:
        file.write_text(original)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def _run(tests: Sequence[str], seconds: float) -> None:
    """Run tests in this process and end it; a test that takes ten times as long as it did fails."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    try:
        os._exit(pytest.main(["-x", *_PURE, f"--timeout={10 + 10 * seconds:.0f}", *tests]))
    finally:
        os._exit(1)


def told(chosen: Iterable[Mutant], seen: Calls, memory: Path) -> Iterator[tuple[Mutant, str]]:
    """Each mutant with 'killed', 'survives' or 'no test calls it'; what ``memory`` has is not tried again."""
    known = dict(line.split(" ", 1) for line in memory.read_text().splitlines()) if memory.exists() else {}
    with memory.open("a") as file:
        for mutant in chosen:
            tests = seen.of(mutant)
            key = _key(mutant, tests)
            if key not in known:
                alive = bool(tests) and survives(mutant, tests, max(seen.seconds[test] for test in tests))
                known[key] = ("survives" if alive else "killed") if tests else "no test calls it"
                print(key, known[key], file=file, flush=True)
            yield mutant, known[key]


def _key(mutant: Mutant, tests: Sequence[str]) -> str:
    """Digest of all that decides: the changed file, and the files of the tests."""
    files = sorted({test.split("::", 1)[0] for test in tests})
    return hashlib.sha256(
        "".join([mutant.text, *tests, *((ROOT / file).read_text() for file in files)]).encode()
    ).hexdigest()
