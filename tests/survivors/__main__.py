"""List mutants that no test catches: ``make survivors``, or ``python -m tests.survivors [ROOM ...]``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.mutants import ROOT, copied
from tests.survivors import within

ROOMS = ("commands", "failover", "results", "scenarios", "testbed", "traffic")


def main(arguments: Sequence[str] | None = None) -> int:
    """Go on in a copy of the checkout, or list the survivors when this is one."""
    parser = argparse.ArgumentParser(prog="python -m tests.survivors", description="List mutants that survive.")
    parser.add_argument("room", nargs="*", help="a package or module, such as results/judge; all packages")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="folders of the tests that may kill them")
    parser.add_argument("--limit", type=int, default=0, help="try about as many, drawn at random")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "survivors.txt", help="the list")
    parser.add_argument("--within", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    out = asked.out.resolve()
    if asked.within:
        return _list(asked.room or ROOMS, asked.tests, asked.limit, asked.seed, out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="hpn-survivors-") as temporary:
        copy = copied(ROOT, Path(temporary))
        environment = {**os.environ, "PYTHONPATH": str(copy), "CI": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        given = [*(sys.argv[1:] if arguments is None else arguments), "--within", "--out", str(out)]
        return subprocess.run([sys.executable, "-m", "tests.survivors", *given], cwd=copy, env=environment).returncode


def _list(rooms: Sequence[str], folders: Sequence[str], limit: int, seed: int, out: Path) -> int:
    began, count = time.monotonic(), Counter[str]()
    chosen, seen = within.drawn(rooms, limit, seed), within.calls(rooms, folders)
    with out.open("w") as file:
        for mutant, fate in within.told(chosen, seen, out.with_suffix(".known")):
            count[fate] += 1
            if fate != "killed":
                print(f"{mutant.file}:{mutant.line} {mutant.function}: {fate}\n{mutant.diff}\n", file=file, flush=True)
    print(f"{count.total()} mutants in {time.monotonic() - began:.0f} s: {dict(count)}; {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
