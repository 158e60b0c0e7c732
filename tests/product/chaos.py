"""``hpn up`` and ``hpn drill run`` ended at random moments: nothing may be left, and no verdict of an earlier run.

``make chaos`` runs it 100 times with SIGKILL and 50 times with Ctrl-C (``python -m tests.product.chaos SEED KILLS
INTERRUPTS``); the suite does the same a few times.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from results.run.folder import create, load
from tests.product.hpn import Hpn, processes_of, until
from tests.results.sample import MANIFEST, metrics, verdict

DRILL = """\
drill: quiet
summary: nothing breaks for a while
topology: tiny
workload: {pattern: permutation, queue_pairs: 1, load: 5 %}
profile: quick
timeline:
  healthy: 20 s
  faults:
    - {fault: link-down, target: p0.s0.h0.r0.0, at: 20 s, for: 1 s}
  settle: 2 s
expect:
  - state_restored: yes
"""


_ARGUMENTS = {"up": ("up", "tiny"), "drill": ("drill", "run", "quiet.yaml", "--out", "out")}


@dataclass(frozen=True)
class Strike:
    """A command ended by a signal, so long after its start (``after_s``), or after its work has ``begun``."""

    command: str  # 'up' or 'drill'
    number: signal.Signals
    after_s: float
    begun: bool = False

    def __str__(self) -> str:
        since = "its work began" if self.begun else "its start"
        return f"{self.command:5} {self.number.name} {self.after_s:.3f} s after {since}"

    def carry_out(self, hpn: Hpn) -> list[str]:
        """Do it; what is left that should not be."""
        place = hpn.state / "out" / "quiet"
        if self.command == "drill":
            (hpn.state / "quiet.yaml").write_text(DRILL)
            _an_old_pass(place)
        process = hpn.start(
            *(("up", "tiny") if self.command == "up" else ("drill", "run", "quiet.yaml", "--out", "out"))
        )
        first = self._first_line(hpn, process) if self.begun else ""
        time.sleep(self.after_s)  # the moment is the test
        process.send_signal(self.number)
        rest, _ = process.communicate(timeout=120)
        out = first + rest
        if self.command == "up" and (process.returncode == 0 or " converged after " in out):  # too late: it was up
            hpn.run("down")
        return [*_left(hpn), *(_stale(place, out) if self.command == "drill" else [])]

    def _first_line(self, hpn: Hpn, process: subprocess.Popen[str]) -> str:
        """Wait for the first line of a drill, or for the folder of the lab, just before or after its processes."""
        if self.command == "drill":
            assert process.stdout is not None
            return process.stdout.readline()
        until(lambda: (hpn.state / "labs" / "tiny" / "fabric.json").exists() or process.poll() is not None, "a lab")
        return ""


def _an_old_pass(place: Path) -> None:
    folder, found = create(place), metrics()
    folder.write_metrics(found)
    folder.write_verdict(verdict(found, "pass"))
    folder.write_manifest(MANIFEST)


def _left(hpn: Hpn) -> list[str]:
    """Processes (dying takes a moment), labs, files of labs, interfaces."""
    try:
        until(lambda: processes_of(hpn.state) == [], "every process is gone", 30)
    except AssertionError:
        return processes_of(hpn.state)
    labs = [f"lab {lab['name']} ({lab['state']}: {lab['reason']})" for lab in hpn.labs()]
    files = os.listdir(hpn.state / "labs")
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    return [*labs, *files, *(line for line in links.splitlines() if "veth" in line or "bond" in line)]


def _stale(place: Path, said: str) -> list[str]:
    """What an interrupted run left in its folder; a run that had not begun may leave the old one as it was."""
    begun = said.startswith("quiet: ")  # news of its lab, not why there is none
    left = sorted(os.listdir(place))
    wrong = [name for name in left if name.endswith((".bin", ".new"))]
    is_old = "manifest.json" in left and load(place).manifest() == MANIFEST
    if "verdict.json" in left and (begun or not is_old):
        wrong.append(f"an old verdict, after it said {said!r}")
    return wrong


def main(seed: int = 1, kills: int = 100, interrupts: int = 50) -> int:
    """Strike at random moments; 1 when anything was left."""
    draw, failed = random.Random(seed), 0
    numbers = [signal.SIGKILL] * kills + [signal.SIGINT] * interrupts
    draw.shuffle(numbers)
    for count, number in enumerate(numbers, 1):
        command = draw.choice(["up", "drill"])
        strike = Strike(command, number, draw.uniform(0, 2 if command == "up" else 5), begun=draw.random() < 0.7)
        with tempfile.TemporaryDirectory(prefix="hpn-chaos-") as state:
            wrong = strike.carry_out(Hpn(Path(state)))
        failed += bool(wrong)
        print(f"{count:3} of {len(numbers)}: {strike}: {'; '.join(wrong) or 'nothing left'}", flush=True)
    print(f"seed {seed}: {failed} of {len(numbers)} left something")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
