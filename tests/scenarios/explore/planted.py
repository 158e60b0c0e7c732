"""Old defects planted in a copy: how many runs exploration needs to find each, against random campaigns.

``make planted``. In the copy ``hpn explore DRILL --first`` runs until something breaks. Campaigns of several seeds on
the same fabric run until their first violation, and at most so many sequences as exploration had runs. No campaign
follows once the median of all is known to be above that, or not.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutants import ROOT, Mutant, copied, load

HERE = Path(__file__).parent
DRILLS = {
    "arp-no-retry": ("link-down", "arp-loss"),
    "hold-without-end": ("link-down", "again"),
    "hold-ends-unheard": ("link-down", "again"),
    "thawed-tor-keeps-its-carrier": ("link-down", "late-tor,late-sibling"),
    "thawed-tor-keeps-its-routes": ("link-down", "late-tor,late-sibling"),
    "lacp-said-again-unmoved": ("link-down", "lacp-loss"),
    "lag-change-unseen": ("link-down", "other-port,peer-port"),
    "arp-one-retry": ("link-down", "arp-loss"),
    "lacp-defaulted-for-ever": ("link-down", "lacp-loss"),
    "thawed-tor-speaks-no-lacp": ("link-down", "late-tor,late-sibling"),
    "short-cut-unseen": ("link-down", "early-return"),
    "reloaded-tor-stays-away": ("link-down", "sibling-tor"),
}
"""Drill to explore by defect, and the second faults to try."""
_LOOK_S = 2.0


@dataclass(frozen=True, slots=True)
class Needed:
    """Runs until a defect was found; None: not within ``most``."""

    runs: int | None
    most: int

    @property
    def text(self) -> str:
        """'12', or '> 40'."""
        return f"> {self.most}" if self.runs is None else str(self.runs)


def defects() -> dict[str, Mutant]:
    """The defects by name: of this folder and of tests/mutants."""
    found = {mutant.name: mutant for folder in (ROOT / "tests" / "mutants", HERE) for mutant in load(folder)}
    return {name: found[name] for name in DRILLS}


def hpn(copy: Path, *arguments: str) -> list[str]:
    """The command line of the copy's hpn."""
    return [sys.executable, "-P", "-m", "hpn", *arguments]


def environment(copy: Path) -> dict[str, str]:
    """The copy's sources first."""
    return {**os.environ, "PYTHONPATH": str(copy)}


def explored(copy: Path, name: str, out: Path, most: int, jobs: int) -> Needed:
    """Explore until something breaks; a base run that fails has found it alone."""
    drill, seconds = DRILLS[name]
    command = hpn(copy, "explore", drill, "--first", "--seconds", seconds, "--most", str(most), "--jobs", str(jobs))
    ended = subprocess.run(
        [*command, "--out", str(out)], cwd=copy, env=environment(copy), capture_output=True, text=True
    )
    (out / "said.txt").write_text(ended.stdout + ended.stderr)
    if not (out / "answer.json").exists():
        return Needed(1, most) if "is fail by itself" in ended.stderr else Needed(None, most)
    rows = json.loads((out / "answer.json").read_text())["rows"]
    ran = [row for row in rows if row["told"] not in ("waiting", "no run")]
    return Needed(1 + len(ran) if any(row["told"].startswith("breaks") for row in ran) else None, most)


def drawn(copy: Path, out: Path, seed: int, most: int, jobs: int) -> Needed:
    """Run a campaign until its journal has a violation."""
    out.mkdir(parents=True)
    command = hpn(copy, "campaign", "run", "tiny", "--engine", "uml-virtual-time", "--seed", str(seed))
    command += ["--sequences", str(most), "--jobs", str(jobs), "--out", str(out / "campaign")]
    journal = out / "campaign" / "journal.jsonl"
    with (out / "said.txt").open("w") as said:
        running = subprocess.Popen(command, cwd=copy, env=environment(copy), stdout=said, stderr=said)
        while running.poll() is None and _first_violation(journal) is None:
            time.sleep(_LOOK_S)
        if running.poll() is None:
            running.send_signal(signal.SIGTERM)
        running.wait()
    return Needed(_first_violation(journal), most)


def _first_violation(journal: Path) -> int | None:
    """Number of the first sequence, in the order they ended, that broke an invariant; from 1."""
    lines = journal.read_text().splitlines() if journal.exists() else []
    results = [entry["result"] for entry in map(json.loads, lines) if "result" in entry]
    return next((at for at, result in enumerate(results, 1) if result["violations"]), None)


def is_median_above(found: Sequence[Needed], campaigns: int) -> bool | None:
    """Whether the median of so many campaigns is above their limit, whatever those to come find; None: open.

    Of an even number it is the lower of the two in the middle, which is against exploration.
    """
    if not campaigns:
        return None
    without = sum(each.runs is None for each in found)
    if 2 * without > campaigns:
        return True
    return False if 2 * (len(found) - without) >= campaigns else None


def table(rows: Iterable[Sequence[str]]) -> str:
    """Rows as a Markdown table."""
    head = ("defect", "breaks", "exploration", "median of campaigns", "each campaign")
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


def against(copy: Path, name: str, place: Path, most: int, campaigns: int, jobs: int) -> tuple[Needed, list[Needed]]:
    """Explore for a defect, then draw campaigns until it is known whether most of them need more runs."""
    one = explored(copy, name, place, most, jobs)
    print(f"{name}: exploration {one.text}", flush=True)
    others: list[Needed] = []
    for seed in range(1, campaigns + 1):
        if one.runs is None or is_median_above(others, campaigns) is not None:
            break
        others.append(drawn(copy, place / f"campaign-{seed}", seed, one.runs, jobs))
        print(f"{name}: campaign of seed {seed} {others[-1].text}", flush=True)
    return one, others


def main() -> int:
    """Print the table; 1 when exploration does not find a defect, or needs as many runs as the median campaign."""
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios.explore.planted")
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default=",".join(DRILLS), help="defects, with commas")
    parser.add_argument("--campaigns", type=int, default=20)
    parser.add_argument("--most", type=int, default=60, help="runs of an exploration")
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    rows, good = [], True
    for name in asked.only.split(","):
        mutant = defects()[name]
        with tempfile.TemporaryDirectory(prefix="hpn-planted-") as temporary:
            copy = copied(ROOT, Path(temporary))
            file = copy / mutant.file
            file.write_text(mutant.planted(file.read_text()))
            place = (asked.out / name).absolute()
            place.mkdir()
            one, others = against(copy, name, place, asked.most, asked.campaigns, asked.jobs)
        above = is_median_above(others, asked.campaigns)
        good &= one.runs is not None and above is not False
        middle = "-" if above is None else f"> {one.runs}" if above else f"<= {one.runs}"
        rows.append((name, mutant.breaks, one.text, middle, ", ".join(each.text for each in others)))
        (asked.out / "table.md").write_text(table(rows) + "\n")
    print(table(rows))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
