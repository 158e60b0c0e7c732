"""The examples for Slurm under a Slurm of one node: ``make slurm-trial``.

    python -m tests.scenarios.pool.slurm_trial FOLDER

An array of a scheduler and two workers, of which one is cancelled and the other requeued in mid-run; then workers by
dask-jobqueue. Each time all runs must lie in their places, once and whole, and nothing else. Exit code 0: it held.
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


def array(folder: Path, environment: Mapping[str, str]) -> bool:
    """An array, with its workers taken away."""

    def told(*command: str) -> str:
        return subprocess.run(
            command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True
        ).stdout.strip()

    runs = 4
    script = str(EXAMPLES / "slurm-array.sh")
    job = told("sbatch", "--parsable", "--array=0-2", script, *suite_of(folder, "out", runs))
    log = folder / f"slurm-{job}_0.out"
    until(lambda: log.exists() and log.read_text().count("\nstarting ") >= 2, "two runs have begun", LONGEST_S)
    told("scancel", f"{job}_1")
    told("scontrol", "requeue", f"{job}_2")
    print("one worker cancelled, the other requeued", flush=True)
    until(lambda: told("squeue", "--noheader") == "", "the array has ended", LONGEST_S)
    print(*(line for line in log.read_text().splitlines() if line.startswith(("starting ", "pass", "hpn"))), sep="\n")
    return held(folder, runs, "JobState=COMPLETED" in told("scontrol", "show", "job", f"{job}_0"))


def jobqueue(folder: Path, environment: Mapping[str, str]) -> bool:
    """Workers by dask-jobqueue."""
    runs = 2
    command = [sys.executable, str(EXAMPLES / "slurm.py"), "--jobs", "2", "--", *suite_of(folder, "out", runs)]
    return held(folder, runs, subprocess.run(command, cwd=folder, env=environment).returncode == 0)


def held(folder: Path, runs: int, ended_well: bool) -> bool:
    """Whether all is as it must be; what is not is printed."""
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
