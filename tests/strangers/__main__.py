"""Strangers: drills drawn at random on fabrics drawn at random, run in virtual time and held against an oracle.

``make strangers`` (N=200, FIRST=0, ONLY=7,12, JOBS=2, OUT=runs/strangers). A line for each, a table of all at the
end, OUT/strangers.json; seeds that OUT has stay as they are. Exit code 1 when the oracle finds a defect.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

from tests.strangers.making import Made, make
from tests.strangers.oracle.judge import Finding, judge
from tests.strangers.oracle.story import Story

Judged = tuple[Made, Finding | None]


def judged(made: Made) -> Judged:
    """A run and what the oracle says of it; None where there is no run."""
    return made, None if made.trouble else judge(Story.read(made.run))


def line(made: Made, found: Finding | None) -> str:
    """'12 fail: tor-crash on hpn: 3 died; congestion, no path left; DEFECT stranded: ...'."""
    head = f"{made.seed:>5}  {'no run' if found is None else found.outcome:12}  {_what(made)}"
    if found is None:
        return f"{head}: {made.trouble.splitlines()[-1]}"
    causes = sorted({cause for broken in found.broken for cause in broken.causes})
    parts = [f"{found.died} died"] * bool(found.died) + [", ".join(causes)] * bool(causes)
    parts += [f"DEFECT {each}" for each in found.defects]
    return "; ".join((head, *parts))


def _what(made: Made) -> str:
    drill = yaml.safe_load((made.run.parent / "drill.yaml").read_text())
    topology, workload = drill["topology"], drill["workload"]
    faults = "+".join(f"{fault['fault']} {fault['target']}" for fault in drill["timeline"]["faults"])
    hosts = f"{topology['segments']}x{topology['hosts']}x{topology['rails']}"
    load = f"{workload['pattern']} {workload['load']}"
    daemon = topology["bgp"].get("daemon", "bird")
    return f"{faults} on {topology['architecture']} {hosts}, {topology['lag']}, {daemon}, {load}"


def table(found: Sequence[Judged]) -> Iterator[str]:
    """What came of all of them."""
    outcomes = Counter("no run" if each is None else each.outcome for _, each in found)
    causes = Counter(
        cause for _, each in found if each for cause in {cause for broken in each.broken for cause in broken.causes}
    )
    defects = [(made.seed, defect) for made, each in found if each for defect in each.defects]
    gaps = sum(len(each.gaps) for _, each in found if each)
    yield f"{len(found)} drills: " + ", ".join(f"{many} {outcome}" for outcome, many in outcomes.most_common())
    yield "causes of failed runs: " + (", ".join(f"{cause} {many}" for cause, many in causes.most_common()) or "none")
    yield f"broken limits whose verdict names no cause: {gaps}"
    yield f"defects: {len(defects)} in {len({seed for seed, _ in defects})} runs"
    yield from (f"  {seed}: {defect}" for seed, defect in defects)


def main() -> int:
    """Run them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--among", default="", help="architectures, by comma; default: each, as often as draw.py says")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/strangers"))
    parser.add_argument("--strict", action="store_true", help="a limit that broke without a named cause fails too")
    asked = parser.parse_args()
    seeds = asked.only.split(",") if asked.only else [str(asked.first + at) for at in range(asked.number)]
    among = tuple(filter(None, asked.among.split(",")))
    place, found = asked.out.absolute(), list[Judged]()
    with ThreadPoolExecutor(asked.jobs) as pool:
        for made in pool.map(lambda seed: make(seed, place, among), seeds):
            found.append(judged(made))
            _say(line(*found[-1]))
    told = {made.seed: None if each is None else each.as_dict() for made, each in found}
    (place / "strangers.json").write_text(json.dumps(told, indent=1))
    for each in table(found):
        _say(each)
    bad = any(each is None or each.defects or (asked.strict and each.gaps) for _, each in found)
    return 1 if bad else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
