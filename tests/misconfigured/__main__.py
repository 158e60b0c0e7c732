"""Mistakes planted in drawn networks, and correct variants: where hpn names each, and what it costs.

``make misconfigurations`` (SEED=1, ONLY=name). Writes OUT/table.md; what OUT has stays. Exit code 1 when a mistake is
named elsewhere than its entry says, or a correct variant is blamed for anything.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.misconfigured.judging import Found, found, notes
from tests.misconfigured.planted import MISCONFIGURATIONS, Misconfiguration, Where
from tests.misconfigured.variants import AUDITED, runs, variants
from tests.product.hpn import Hpn

_HEAD = "| mistake | named by | what it says | costs | note |\n|---|---|---|---|---|\n"


def _cell(text: str) -> str:
    return text.partition("\n")[0].replace("|", "\\|") or "-"


def row(entry: Misconfiguration, where: Where, line: str, cost: str) -> str:
    """A line of the table."""
    cells = (entry.says, where.value, line.removeprefix("note: "), cost, entry.note)
    return "| " + " | ".join(map(_cell, cells)) + " |\n"


def tried(entry: Misconfiguration, seed: str, out: Path) -> tuple[str, list[str]]:
    """One mistake: its line of the table, and what is not as its entry says."""
    planted = entry.planted(seed)
    told = found(out / entry.name / "planted", planted.repository, entry.tries, planted.tried, entry.silent)
    where, line = told.naming(planted.element)
    wrong = (
        [] if where is entry.named else [f"{entry.name}: named by {where.value}, not by {entry.named.value}: {line}"]
    )
    if entry.named is Where.NOWHERE:
        wrong += [f"{entry.name}: blamed: {each}" for _, each in told.lines]
    if entry.named is Where.AUDIT:
        well = found(out / entry.name / "correct", entry.correct(seed), entry.tries, planted.tried, entry.silent)
        wrong += [f"{entry.name}: blamed without the mistake: {each}" for _, each in well.lines]
    return row(entry, where, line, told.cost), wrong


def of_variants(out: Path) -> Iterator[str]:
    """Yield what hpn blames in correct variants: notes of all, and audits of some."""
    left = AUDITED
    for name, repository in variants():
        folder = out / "variants" / name
        repository.write(folder)
        blamed: list[str] = [*notes(Hpn(folder))]
        if left and runs(repository):
            left -= 1
            said: Found = found(folder, repository, ("link",))
            blamed += [line for _, line in said.lines]
        sys.stdout.write(f"variant {name}: {'; '.join(blamed) or 'nothing to blame'}\n")
        sys.stdout.flush()
        yield from (f"variant {name}: {line}" for line in blamed)


def main() -> int:
    """Run all of them; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.misconfigured")
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", default="", help="names of mistakes, 'variants'")
    options = parser.parse_args()
    only = {word for word in options.only.split(",") if word} or {*MISCONFIGURATIONS, "variants"}
    options.out.mkdir(parents=True, exist_ok=True)
    lines, wrong = [], []
    for entry in MISCONFIGURATIONS.values():
        if entry.name in only:
            line, errors = tried(entry, options.seed, options.out)
            sys.stdout.write(line + "".join(f"WRONG {each}\n" for each in errors))
            sys.stdout.flush()
            lines.append(line)
            wrong += errors
    (options.out / "table.md").write_text(_HEAD + "".join(lines))
    if "variants" in only:
        wrong += list(of_variants(options.out))
    sys.stdout.write("".join(f"WRONG {each}\n" for each in wrong) or "as expected\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
