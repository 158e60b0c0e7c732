"""``hpn up`` and ``hpn drill run`` ended at random moments: nothing may be left, and no verdict of an earlier run.

Drills run on the host, in a guest, and in guests side by side. ``make chaos`` strikes 100 times with SIGKILL and 50
times with SIGINT, SIGTERM or SIGHUP (``python -m tests.product.chaos SEED KILLS INTERRUPTS``); the suite strikes a few
times.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from hpn.results.run.folder import create, load
from hpn.results.run.lifecycle import SCRATCH
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


_DRILL = ("drill", "run", "quiet.yaml", "--out", "out")
_GUEST = (*_DRILL, "--engine", "uml", "--virtual-time")
ARGUMENTS = {"up": ("up", "tiny"), "drill": _DRILL, "guest": _GUEST, "pool": (*_GUEST, "--repeat", "2", "--jobs", "2")}
"""The commands that are struck; 'pool' has its guests in processes of their own."""

_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_INTERRUPTED = 130


@dataclass(frozen=True)
class Strike:
    """A command ended by a signal, so long after its start (``after_s``), or after its work has ``begun``."""

    command: str  # of ARGUMENTS
    number: signal.Signals
    after_s: float
    begun: bool = False

    def __str__(self) -> str:
        since = "its work began" if self.begun else "its start"
        return f"{self.command:5} {self.number.name} {self.after_s:.3f} s after {since}"

    def carry_out(self, hpn: Hpn) -> list[str]:
        """Do it; what is left that should not be. What hpn writes into TMPDIR is below its state folder."""
        place = hpn.state / "out" / "quiet"
        if self.command != "up":
            (hpn.state / "quiet.yaml").write_text(DRILL)
            _an_old_pass(place)
        (hpn.state / "tmp").mkdir(exist_ok=True)
        process = replace(hpn, environment={"TMPDIR": str(hpn.state / "tmp")}).start(*ARGUMENTS[self.command])
        first = self._wait_for_work(hpn, process) if self.begun else ""
        time.sleep(self.after_s)  # the moment is the test
        process.send_signal(self.number)
        rest, _ = process.communicate(timeout=120)
        out = first + rest
        if self.command == "up":
            if process.returncode == 0 or " converged after " in out:  # too late: it was up
                hpn.run("down")
            return _left(hpn)
        in_order = self.number == signal.SIGKILL or not self.begun or process.returncode in (0, _INTERRUPTED)
        return [*([] if in_order else [f"exit code {process.returncode}"]), *_left(hpn), *_stale(place, out)]

    def _wait_for_work(self, hpn: Hpn, process: subprocess.Popen[str]) -> str:
        """Wait for the first line of a drill, a guest's records, or a lab's folder, just before or after its processes.

        What a drill has printed meanwhile.
        """
        if self.command == "drill":
            assert process.stdout is not None
            return process.stdout.readline()
        there = (hpn.state / "labs", "fabric.json") if self.command == "up" else (hpn.state / "out", "sent-0.bin")
        until(lambda: any(there[0].rglob(there[1])) or process.poll() is not None, f"{there[1]} in {there[0]}")
        return ""


def _an_old_pass(place: Path) -> None:
    folder, found = create(place), metrics()
    folder.write_metrics(found)
    folder.write_verdict(verdict(found, "pass"))
    folder.write_manifest(MANIFEST)


def _left(hpn: Hpn) -> list[str]:
    """Processes (dying takes a moment), labs, files of labs, interfaces, temporary folders."""
    try:
        until(lambda: processes_of(hpn.state) == [], "every process is gone", 30)
    except AssertionError:
        return processes_of(hpn.state)
    labs = [f"lab {lab['name']} ({lab['state']}: {lab['reason']})" for lab in hpn.labs()]
    files = [*_names(hpn.state / "labs"), *_names(hpn.state / "tmp")]
    files += [name for name in _names(hpn.state / "out") if name.startswith(SCRATCH)]
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    return [*labs, *files, *(line for line in links.splitlines() if "veth" in line or "bond" in line)]


def _names(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.is_dir() else []


def _stale(place: Path, said: str) -> list[str]:
    """What an interrupted run left in its folder; a run that had not begun may leave the old one as it was."""
    begun = said.startswith("quiet: ")  # news of its lab, not why there is none
    left = sorted(_names(place))
    wrong = [name for name in left if name.endswith((".bin", ".new"))]
    wrong += [name for name in left if name.endswith(".log") and not (place / name).stat().st_size]
    is_old = "manifest.json" in left and load(place).manifest() == MANIFEST
    if "verdict.json" in left and (begun or not is_old):
        wrong.append(f"an old verdict, after it said {said!r}")
    return wrong


def main(seed: int = 1, kills: int = 100, interrupts: int = 50) -> int:
    """Strike at random moments; 1 when anything was left."""
    draw, failed = random.Random(seed), 0
    numbers = [signal.SIGKILL] * kills + [draw.choice(_ENDINGS) for _ in range(interrupts)]
    draw.shuffle(numbers)
    for count, number in enumerate(numbers, 1):
        command = draw.choice([*ARGUMENTS])
        strike = Strike(command, number, draw.uniform(0, 2 if command == "up" else 5), begun=draw.random() < 0.7)
        with tempfile.TemporaryDirectory(prefix="hpn-chaos-") as state:
            wrong = strike.carry_out(Hpn(Path(state)))
        failed += bool(wrong)
        print(f"{count:3} of {len(numbers)}: {strike}: {'; '.join(wrong) or 'nothing left'}", flush=True)
    print(f"seed {seed}: {failed} of {len(numbers)} left something")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
