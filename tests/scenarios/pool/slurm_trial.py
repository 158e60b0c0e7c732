"""The examples for Slurm under a Slurm of one node: ``make slurm-trial``.

    python -m tests.scenarios.pool.slurm_trial FOLDER

An array of a scheduler and two workers; then two workers by dask-jobqueue. Each time one of them is cancelled and the
other requeued in mid-run, and all runs must lie in their places, once and whole, and nothing else. Exit code 0: held.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.product.hpn import ROOT, until
from tests.scenarios.pool.trial import suite_of, wrong

EXAMPLES = ROOT / "examples" / "cluster"
LONGEST_S = 1800
"""For all runs of an array on a machine that has a lot to do; Slurm begins what it requeued after two minutes."""


@contextmanager
def slurm(folder: Path) -> Iterator[Mapping[str, str]]:
    """A Slurm of one node; the environment in which its commands find it."""
    command = [str(EXAMPLES / "one-node-slurm.sh"), str(folder), "cat"]
    standing = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert standing.stdin is not None
    assert standing.stdout is not None
    try:
        standing.stdin.write("up\n")
        standing.stdin.flush()
        assert standing.stdout.readline() == "up\n", f"no Slurm; look at {folder}"
        here = {"HPN": str(Path(sys.executable).parent), "INTERFACE": "lo", "PYTHONPATH": str(ROOT)}
        yield os.environ | here | {"SLURM_CONF": str(folder / "slurm.conf")}
    finally:
        standing.stdin.close()
        standing.wait()


def told(environment: Mapping[str, str], *command: str, cwd: Path | None = None) -> str:
    """What a command of Slurm says."""
    ran = subprocess.run(command, cwd=cwd, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return ran.stdout.strip()


def take_away(environment: Mapping[str, str], cancelled: str, requeued: str) -> None:
    """Have Slurm take two workers away in mid-run, the second of them to begin it again."""
    told(environment, "scancel", cancelled)
    told(environment, "scontrol", "requeue", requeued)
    print("one worker cancelled, the other requeued", flush=True)


def array(folder: Path, environment: Mapping[str, str]) -> bool:
    """An array, with its workers taken away."""
    runs = 4
    script = ["sbatch", "--parsable", "--array=0-2", str(EXAMPLES / "slurm-array.sh")]
    job = told(environment, *script, *suite_of(folder, "out", runs), cwd=folder)
    log = folder / f"slurm-{job}_0.out"
    until(lambda: log.exists() and _begun(log) >= 2, "two runs have begun", LONGEST_S)
    take_away(environment, f"{job}_1", f"{job}_2")
    until(lambda: told(environment, "squeue", "--noheader") == "", "the array has ended", LONGEST_S)
    return held(folder, log, runs, "JobState=COMPLETED" in told(environment, "scontrol", "show", "job", f"{job}_0"))


def jobqueue(folder: Path, environment: Mapping[str, str]) -> bool:
    """Workers by dask-jobqueue, taken away too."""
    runs, log = 4, folder / "slurm.py.out"
    command = [sys.executable, str(EXAMPLES / "slurm.py"), "--jobs", "2", "--", *suite_of(folder, "out", runs)]
    with log.open("w") as output:
        going = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT)
    until(lambda: _begun(log) >= 2 or going.poll() is not None, "two runs have begun", LONGEST_S)
    if going.poll() is None:
        take_away(environment, *told(environment, "squeue", "--noheader", "--format=%i").split())
    return held(folder, log, runs, going.wait() == 0)


def _begun(log: Path) -> int:
    return sum(line.startswith("starting ") for line in log.read_text().splitlines())


def held(folder: Path, log: Path, runs: int, ended_well: bool) -> bool:
    """Whether all is as it must be; how it went and what is not is printed."""
    told_there = ("starting ", "pass", "hpn", "slurm.py")
    print(*(line for line in log.read_text().splitlines() if line.startswith(told_there)), sep="\n")
    trouble = list(wrong(folder, "out", runs)) + ["it did not end well"] * (not ended_well)
    print(f"{folder.name}: {runs} runs", *(trouble or ["whole and once"]), sep="\n", flush=True)
    return not trouble


def main(arguments: Sequence[str]) -> int:
    """Both ways."""
    parser = argparse.ArgumentParser(description="the examples for Slurm under a Slurm of one node")
    parser.add_argument("folder", type=Path, help="a new folder, which takes everything")
    folder = parser.parse_args(arguments).folder.resolve()
    for name in ("array", "jobqueue"):
        (folder / name).mkdir(parents=True)
    with slurm(folder / "slurm") as environment:
        both = [array(folder / "array", environment), jobqueue(folder / "jobqueue", environment)]
    print("it held" if all(both) else "IT DID NOT HOLD")
    return 0 if all(both) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
