"""Three dask workers that are killed at random while they make the runs of a suite: ``make pool-trial``.

    python -m tests.scenarios.pool.trial FOLDER [--seed N] [--runs N] [--kills N]

Real runs, in virtual time, of a drill of 2 s. Each killed worker is started again. At the end every run must lie in its
place, once and whole, and nothing else. Then one run whose every worker is killed must be named. Exit code 0: it held.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpn.results.index.store import opened
from hpn.results.run.folder import load
from hpn.scenarios.batch.pool.task import LOSSES
from hpn.testbed.vm.engines import ENGINES
from tests.product.hpn import Hpn, processes_of, until
from tests.scenarios.pool.dask_cluster import Cluster, cluster

WORKERS = ("left", "middle", "right")
ENGINE = next(spec.name for spec in ENGINES.values() if spec.virtual_time)
PAUSE_S = (3.0, 20.0)
"""Between two kills: less than a run takes, and more."""
DRILL = """drill: short
summary: one link is cut for half a second
topology: tiny
workload: {load: 5 %, queue_pairs: 1}
timeline:
  healthy: 500 ms
  settle: 1 s
  faults: [{id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 600 ms, for: 500 ms}]
expect:
  - queue_pair_deaths: {at_most: 0}
"""


@dataclass(frozen=True)
class Kill:
    """One kill: at which moment of the trial, of which worker, and whether it was at work on a run."""

    at_s: float
    worker: str
    at_work: bool


def suite_of(folder: Path, out: str, runs: int) -> tuple[str, ...]:
    """The suite, written into a folder, and the command that makes its runs from there."""
    (folder / "short.yaml").write_text(DRILL)
    block = f"{{drills: [./short.yaml], engines: [{ENGINE}], repeats: {runs}}}"
    (folder / f"{out}.yaml").write_text(f"suite: {out}\nruns: [{block}]\n")
    return ("ci", "run", f"{out}.yaml", "--out", out)


def start(folder: Path, standing: Cluster, out: str, runs: int) -> subprocess.Popen[str]:
    """The suite, on the cluster."""
    return Hpn(folder).start(*suite_of(folder, out, runs), "--scheduler", standing.address)


def kill_at_random(standing: Cluster, suite: subprocess.Popen[str], chance: random.Random, kills: int) -> list[Kill]:
    """Kill so many workers, one now and then, as long as the suite runs; each stands again before the next."""
    begun, made = time.monotonic(), list[Kill]()
    while len(made) < kills:
        try:
            suite.wait(chance.uniform(*PAUSE_S))
            break
        except subprocess.TimeoutExpired:
            worker = chance.choice(WORKERS)
            made.append(Kill(time.monotonic() - begun, worker, bool(standing.labs(worker))))
            print(f"{made[-1].at_s:6.1f} s: {worker} killed{' at work' * made[-1].at_work}", flush=True)
            standing.kill(worker)
            standing.add(worker)
    return made


def wrong(folder: Path, out: str, runs: int) -> Iterator[str]:
    """What is not as it must be in the folder of the suite."""
    names = {f"short.{ENGINE}.{number}" for number in range(1, runs + 1)}
    found = {path.name for path in (folder / out).iterdir()}
    if found != names | {"junit.xml", "summary.md", "repeats.json"}:
        yield f"beside runs and reports: {sorted(found ^ names)}"
    for name in sorted(names & found):
        inside = sorted(path.name for path in (folder / out / name).iterdir())
        if inside != ["output.txt", "short"]:
            yield f"{name} holds {inside}"
        run = load(folder / out / name / "short")
        if not run.has_verdict or run.manifest().files != run.sizes():
            yield f"{name} is not whole"
        if run.manifest().phase != int(name.rpartition(".")[2]):
            yield f"{name} is the run of phase {run.manifest().phase}"
    with opened(folder / "index.sqlite", (folder / out).resolve()) as index:
        changes = index.update()
        if changes.runs != runs:
            yield f"the index has {changes.runs} runs"


def random_kills(folder: Path, seed: int, runs: int, kills: int) -> bool:
    """The trial itself, in figures."""
    with cluster(folder, *WORKERS, allowed_failures=1000) as standing:
        begun = time.monotonic()
        suite = start(folder, standing, "out", runs)
        made = kill_at_random(standing, suite, random.Random(seed), kills)
        said, errors = suite.communicate()
        took_s = time.monotonic() - begun
        until(lambda: len(processes_of(folder)) == 1 + len(WORKERS), "nothing runs but scheduler and workers")
        trouble = list(wrong(folder, "out", runs))
    began = Counter(line.split(" on tcp")[0] for line in said.splitlines() if line.startswith("starting "))
    answers = Counter(line.split(":")[0] for line in said.splitlines() if ": short on " in line)
    print(f"{runs} runs in {took_s:.0f} s: {dict(answers)}, exit code {suite.returncode}")
    print(f"{len(made)} kills, {sum(kill.at_work for kill in made)} of a worker at work; seed {seed}")
    print(f"{began.total()} attempts were told, {began.total() - len(began)} of them again")
    print(f"whole and once: {runs - len(trouble)} of {runs}", *trouble, errors, sep="\n")
    return not trouble and suite.returncode == 0 and answers.total() == runs


def poison(folder: Path) -> bool:
    """One run whose worker is killed each time that it has begun."""
    with cluster(folder, *WORKERS) as standing:
        suite = start(folder, standing, "poison", 1)
        kills = 0
        while suite.poll() is None:
            for worker in WORKERS:
                if standing.labs(worker):
                    kills += 1
                    standing.kill(worker)
                    standing.add(worker)
            try:
                suite.wait(0.2)
            except subprocess.TimeoutExpired:
                continue
        said, _ = suite.communicate()
    print(f"a run that took {kills} workers with it: exit code {suite.returncode}", said, sep="\n")
    named = re.search(r"lost with the worker that ran it, (\d+) times", said)
    return suite.returncode == 3 and named is not None and int(named[1]) in (LOSSES, LOSSES + 1)


def main(arguments: Sequence[str]) -> int:
    """Both trials."""
    parser = argparse.ArgumentParser(description="dask workers killed at random under a suite")
    parser.add_argument("folder", type=Path, help="a new folder, which takes everything")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--kills", type=int, default=8)
    asked = parser.parse_args(arguments)
    for part in ("random", "poison"):
        (asked.folder / part).mkdir(parents=True)
    held = [
        poison(asked.folder.resolve() / "poison"),
        random_kills(asked.folder.resolve() / "random", asked.seed, asked.runs, asked.kills),
    ]
    print("it held" if all(held) else "IT DID NOT HOLD")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
