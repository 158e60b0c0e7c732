"""Where the CPU of a drill in virtual time goes, sampled by perf(1): ``make costs`` writes ``docs/costs.md``.

    python -m tests.product.costs PAGE

Samples the two drills that ``hpn bench`` takes the cost of a packet from. The second has hardly a packet, so it is what
a drill costs apart from them.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hpn.results.run.folder import load
from hpn.results.run.manifest import Manifest
from hpn.scenarios.selfcheck import bench
from hpn.testbed.errors import MachineError

_PERIOD_NS = 1_000_000
_LINE = re.compile(r"\s*(?P<comm>.+?)\s+(?P<pid>\d+)\s+[0-9a-f]+ \((?P<where>.*)\)$")
_GUEST_KERNEL = "linux"  # name of the program that user-mode Linux is
_TRIED = """\
Tried on 2026-11-28:

* mypyc over the 30 modules that a packet passes: the worker takes 7 % less, the records are the same. Not kept.
* Debian's Python 3.11 in place of one built without profiles: a packet takes 10 % less. Times differ by microseconds.
* Linux 7.2 (`hpn vm build-kernel --later-suites`): a drill without packets takes 20 % less. One of a job takes 12 %,
  one of streams 26 % less. Its figures differ by a timer's period or less.
"""
PARTS = _WORKER, _OTHERS, _GUEST, _HOST, _HPN = (
    "worker of the job",
    "other programs of the guest",
    "kernel of the guest",
    "kernel of the host",
    "hpn itself",
)


@dataclass(frozen=True, slots=True)
class Sampled:
    """CPU seconds of one drill by part, its packets, and what ran it."""

    seconds: Mapping[str, float]
    packets: int
    manifest: Manifest


def parts_of(script: Iterable[str]) -> Counter[str]:
    """Count the samples of ``perf script -F comm,pid,ip,dso`` by part.

    The worker is the guest's process with the most samples of its own. What the host's kernel does for a guest are its
    system calls and page faults.
    """
    found: Counter[str] = Counter()
    programs: Counter[str] = Counter()
    for line in script:
        match = _LINE.match(line)
        if match is None:
            continue
        where = match["where"]
        if match["comm"] != _GUEST_KERNEL:
            found[_HPN] += 1
        elif where.startswith("[kernel"):
            found[_HOST] += 1
        elif where.endswith(" (deleted)"):  # the file that is the guest's memory
            programs[match["pid"]] += 1
        else:
            found[_GUEST] += 1
    worker = max(programs.values(), default=0)
    found[_WORKER], found[_OTHERS] = worker, programs.total() - worker
    return found


def sampled(drill: Path) -> Sampled:
    """Run a drill under perf. MachineError when there is none, or the drill fails."""
    if shutil.which("perf") is None:
        raise MachineError("no perf: apt install linux-perf")
    with tempfile.TemporaryDirectory() as folder:
        data, out = f"{folder}/perf.data", f"{folder}/out"
        order = (sys.executable, "-P", "-m", "hpn", "drill", "run", str(drill), "--engine", "uml-virtual-time")
        _run("perf", "record", "-q", "-o", data, "-e", "task-clock", "-c", str(_PERIOD_NS), *order, "--out", out)
        script = _run("perf", "script", "-i", data, "-F", "comm,pid,ip,dso")
        run = load(Path(out, drill.stem))
        job, manifest = run.metrics().job, run.manifest()
    if job is None:
        raise MachineError(f"the drill {drill.stem} ran no job")
    seconds = {part: count * _PERIOD_NS / 1e9 for part, count in parts_of(script.splitlines()).items()}
    return Sampled(seconds, job.packets, manifest)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MachineError(f"{command[0]} {command[1]}: {done.stderr.strip()[-400:]}")
    return done.stdout


def page(busy: Sampled, idle: Sampled) -> str:
    """Return the page: what a drill costs without packets, and each packet of a job."""
    packets, made = busy.packets - idle.packets, busy.manifest
    rows = [
        f"| {part} | {idle.seconds[part]:.2f} | {(busy.seconds[part] - idle.seconds[part]) / packets * 1e6:.1f} |"
        for part in PARTS
    ]
    base, whole = sum(idle.seconds.values()), sum(busy.seconds.values())
    rows.append(f"| all | {base:.2f} | {(whole - base) / packets * 1e6:.1f} |")
    return "\n".join(
        (
            "# Costs of virtual time",
            "",
            f"`make costs` samples the job of `hpn bench`: {packets:,} packets over five hops.",
            f"{made.date[:10]}, commit {made.commit[:12]}, {made.machine.get('cpus', '?')} CPUs, Linux {made.kernel}.",
            "",
            "|  | a drill without packets, CPU s | a packet, CPU us |",
            "|---|---|---|",
            *rows,
            "",
            _TRIED,
        )
    )


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("page", type=Path)
    to: Path = parser.parse_args().page
    folder = Path(bench.__file__).parent
    to.write_text(page(*(sampled(folder / name) for name in ("job.yaml", "job-idle.yaml"))))


if __name__ == "__main__":
    main()
