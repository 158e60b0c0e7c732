"""Makes the runs of drawn drills: a folder for each seed, with the drill file and its run; seeds that are done stay."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.strangers import draw

ROOT = Path(__file__).resolve().parents[2]
_DEADLINE_S = 900
_SAID = "said.txt"
_TOO_MUCH = "in a healthy fabric; lower workload.load"


@dataclass(frozen=True, slots=True)
class Made:
    """One run; ``run`` is its folder. ``trouble``: why there is none, in the words of ``hpn``."""

    seed: str
    run: Path
    wall_s: float
    trouble: str = ""


def make(seed: str, place: Path, among: Sequence[str] = ()) -> Made:
    """Draw a drill, run it in virtual time and keep what ``hpn`` says; nothing of it where it is done already.

    ``among``: architectures to draw from, unless as often as ``draw`` has them.
    """
    home = place / seed
    run = home / f"stranger-{seed}"
    if (run / "verdict.json").is_file():
        return Made(seed, run, 0.0)
    home.mkdir(parents=True, exist_ok=True)
    file = home / "drill.yaml"
    drill = draw.drill(seed, dict.fromkeys(among, 1)) if among else draw.drill(seed)
    while True:
        file.write_text(draw.text_of(drill))
        made = drill_run(seed, run, (str(file),), home)
        if _TOO_MUCH not in made.trouble:
            return made
        drill = draw.lighter(drill)  # hpn refuses what its links cannot carry before anything breaks


def drill_run(seed: str, run: Path, options: Sequence[str], home: Path) -> Made:
    """``hpn drill run`` with these options in virtual time; its words are kept in ``home``."""
    command = [sys.executable, str(ROOT / "cli.py"), "drill", "run", *options]
    command += ["--engine", "uml", "--virtual-time", "--out", str(run.parent)]
    began = time.monotonic()
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=_DEADLINE_S, check=False
    )
    (home / _SAID).write_text(done.stdout + done.stderr)
    trouble = "" if (run / "verdict.json").is_file() else (done.stderr.strip() or done.stdout.strip() or "nothing said")
    return Made(seed, run, time.monotonic() - began, trouble)


def make_all(seeds: Sequence[str], place: Path, jobs: int) -> list[Made]:
    """All of them, ``jobs`` side by side, in the order of the seeds."""
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda seed: make(seed, place), seeds))
