"""How the cost of a lab grows with its size, measured on this machine: ``make growth``.

    python -m tests.product.growth OUT.json PLOT.svg [--only NAME]... [--profile] [--plot]

Brings each size up in a sandbox of its own, waits until it is converged, lets it idle, and keeps the figures of each in
OUT.json; sizes that are in there are not measured again. As root it raises the neighbour table's limit meanwhile; who
may not gets the sizes that fit.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import json
import os
import pstats
import signal
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpn.testbed.errors import MachineError
from hpn.testbed.events import Event, now_ns
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric, LinkKind
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.kernel.process import sandbox
from hpn.testbed.lab.expected_routes import expected_routes
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.large_labs import is_large
from hpn.testbed.lab.service import preflight
from tests.product.growth_plot import plot

Figures = dict[str, float]
IDLE_S, LARGE_IDLE_S = 21.0, 61.0
"""Windows of rest that hold all that is periodic: BIRD reads its kernel's routes every 20 s, in large labs 60."""
_BEAT_S = 0.01


@dataclass(frozen=True, slots=True)
class Size:
    """A preset with so many times its segments."""

    name: str
    preset: str
    times: int = 1

    @property
    def fabric(self) -> Fabric:
        """Built."""
        spec = PRESETS[self.preset].spec
        return build(spec.model_copy(update={"segments": spec.segments * self.times}))


SIZES = (
    Size("tiny", "tiny"),
    Size("small x2", "small", 2),
    Size("medium", "medium"),
    Size("medium x2", "medium", 2),
    Size("medium x4", "medium", 4),
    Size("segment", "segment"),
)


async def measure(fabric: Fabric, idle_s: float, profile: cProfile.Profile | None) -> Figures:
    """One lab up and idle. Times in seconds, memory in MB, idle cost in % of a core."""
    started, seen, beat = now_ns(), Counter[str](), _Beat()

    def note(event: Event) -> None:
        seen[f"{event.kind.value} {event.what}"] += 1

    if profile is not None:
        profile.enable()
    lab = Lab.start(fabric, note)
    wired_s = (now_ns() - started) / 1e9
    beat.start()
    await lab.converged()
    found = {"started_s": wired_s, "converged_s": (now_ns() - started) / 1e9}
    if profile is not None:
        profile.disable()
    access = sum(2 for link in fabric.links if link.kind is LinkKind.ACCESS)
    daemons = lab.child_pids() - lab.lacp.pids
    found |= {
        "supervisor_cpu_s": _cpu_s(os.getpid()),
        "bgp_cpu_s": sum(map(_cpu_s, daemons)),
        "lacp_cpu_s": sum(map(_cpu_s, lab.lacp.pids)),
        "supervisor_mb": _pss_mb(os.getpid()),
        "bgp_mb": sum(map(_pss_mb, daemons)),
        "lacp_mb": sum(map(_pss_mb, lab.lacp.pids)),
        "next_hops": sum(sum(lab.watcher.routes(node.name).values()) for node in fabric.switches),
        "longest_turn_s": beat.worst_s,
        "lacp_expiries": seen["lacp expired"] - access,  # each port begins so
        "lag_events": seen["lag active"],
        "host_route_events": seen["route host-route-added"] + seen["route host-route-removed"],
    }
    gc.freeze()
    await asyncio.sleep(1.0)  # what came with the last event is over
    before, beat.worst_s = [sum(map(_cpu_s, pids)) for pids in ({os.getpid()}, daemons, lab.lacp.pids)], 0.0
    await asyncio.sleep(idle_s)
    found["idle_supervisor_percent"] = 100 * (_cpu_s(os.getpid()) - before[0]) / idle_s
    found["idle_bgp_percent"] = 100 * (sum(map(_cpu_s, daemons)) - before[1]) / idle_s
    found["idle_lacp_percent"] = 100 * (sum(map(_cpu_s, lab.lacp.pids)) - before[2]) / idle_s
    found["idle_longest_turn_s"] = beat.worst_s
    started = now_ns()
    lab.close()
    return found | {"closed_s": (now_ns() - started) / 1e9}


class _Beat:
    """The longest that anything on the running loop had to wait for its turn."""

    def __init__(self) -> None:
        self.worst_s = 0.0

    def start(self) -> None:
        """Begin to look, every 10 ms."""
        loop = asyncio.get_running_loop()
        loop.call_later(_BEAT_S, self._due, loop.time() + _BEAT_S)

    def _due(self, at: float) -> None:
        self.worst_s = max(self.worst_s, asyncio.get_running_loop().time() - at)
        self.start()


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _pss_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def in_sandbox(fabric: Fabric, idle_s: float, *, profiled: bool) -> Figures:
    """Measured in a sandbox of its own. MachineError when it gives no figures."""
    profile = cProfile.Profile() if profiled else None

    def body() -> dict[str, float]:
        found = asyncio.run(measure(fabric, idle_s, profile))
        if profile is not None:
            pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(30)
        return found

    found = sandbox.ask(body)
    if not isinstance(found, dict):
        raise MachineError(f"the lab answered {found!r}")
    return {str(key): float(value) for key, value in found.items()}


def sizes_of(fabric: Fabric) -> Figures:
    """What is known before anything is measured."""
    return {"nodes": len(fabric.nodes), "links": len(fabric.links), "nics": len(fabric.nics)}


def idle_s(fabric: Fabric) -> float:
    """How long a lab is left idle to see all of what it costs at rest."""
    return LARGE_IDLE_S if is_large(expected_routes(fabric)) else IDLE_S


def measured(size: Size, *, profiled: bool) -> Figures:
    """That size. MachineError when this machine has no room for it."""
    fabric = size.fabric
    preflight.check(fabric, raising=True)
    raised = preflight.raised_for(fabric)
    try:
        return sizes_of(fabric) | in_sandbox(fabric, idle_s(fabric), profiled=profiled)
    finally:
        if raised is not None:
            raised.release()
            raised.close()


def missing(only: Sequence[str], known: Collection[str]) -> list[Size]:
    """The sizes that are wanted and not known."""
    return [size for size in SIZES if size.name not in known and (not only or size.name in only)]


def main(arguments: Sequence[str]) -> None:
    """Measure what is missing, draw what is there."""
    parser = argparse.ArgumentParser(description="how the cost of a lab grows with its size")
    parser.add_argument("out", type=Path, help="figures; those in it are kept")
    parser.add_argument("picture", type=Path, help="SVG to write")
    parser.add_argument("--only", action="append", default=[], choices=[size.name for size in SIZES])
    parser.add_argument("--profile", action="store_true", help="where the supervisor's time goes, on standard error")
    parser.add_argument("--plot", action="store_true", help="measure nothing")
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the limit is put back
    known: dict[str, Figures] = json.loads(chosen.out.read_text()) if chosen.out.exists() else {}
    if not chosen.plot:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        for size in missing(chosen.only, known):
            try:
                figures = known[size.name] = measured(size, profiled=chosen.profile)
            except MachineError as error:
                print(f"{size.name} is left out: {error}", flush=True)
                continue
            chosen.out.write_text(json.dumps(known, indent=1) + "\n")
            print(size.name, ", ".join(f"{key} {value:g}" for key, value in figures.items()), flush=True)
    if known:
        chosen.picture.write_text(plot(known))


if __name__ == "__main__":
    main(sys.argv[1:])
