"""What guests cost: boot, the kernel build, and a virtual second of a drill with many packets.

An engine that this machine does not have is left out; ``hpn doctor`` says why.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from results.text.figure import Figure
from scenarios.bench.jobs import virtual_packet, virtual_ring
from scenarios.drill.load import load_drill
from scenarios.run.calibrate import packets_per_s
from scenarios.run.engines import run_in_guest
from scenarios.run.order import Order
from testbed.errors import MachineError
from testbed.vm import kernel_cache
from testbed.vm.engines import ENGINES, EngineSpec
from testbed.vm.guest import GuestJob

_DRILL = Path(__file__).parent / "virtual-time.yaml"
_ELAPSED = re.compile(r"([\d.]+) of [\d.]+ s")


def guests(runs: int) -> Iterator[Figure]:
    """All figures of guests."""
    for spec in ENGINES.values():
        if spec.boot_target_s is None:
            continue
        try:
            spec.engine().check()
        except MachineError:
            continue
        yield _boot(spec, runs, spec.boot_target_s)
        if spec.virtual_time:
            yield virtual_second(spec)
            yield virtual_packet(spec)
            yield virtual_ring(spec)
    built = kernel_cache.newest()
    if built is not None:
        yield Figure("UML kernel: build", built.build_s, "s", 600, note=f"{built.release}, when it was built")


def _boot(spec: EngineSpec, runs: int, target_s: float) -> Figure:
    engine = spec.engine()
    job = GuestJob(("true",), Path("/"), (), {}, 512, 1, 120.0)
    engine.run(job, lambda _line: None)  # finds out what it needs to know only once
    results = [engine.run(job, lambda _line: None) for _ in range(runs)]
    boot_s = median(result.boot_s for result in results)
    return Figure(f"{spec.name}: boot to first command", boot_s, "s", target_s, note=f"Linux {results[0].kernel}")


def virtual_second(spec: EngineSpec) -> Figure:
    """Wall time of a second of traffic: 16 hosts, 2 rails, about 50,000 packets/s in all."""
    drill = load_drill(_DRILL)
    seen: list[tuple[float, float]] = []  # drill's own clock, wall clock

    def listen(line: str) -> None:
        found = _ELAPSED.search(line)
        if found is not None:
            seen.append((float(found[1]), time.monotonic()))

    with tempfile.TemporaryDirectory() as out:
        verdict = run_in_guest(Order(drill, Path(out) / "run", ("bench",)), spec, listen).verdict()
    (first_s, begun), (last_s, ended) = seen[0], seen[-1]
    note = f"{packets_per_s(drill):,.0f} packets/s; the drill: {verdict.outcome.value}"
    return Figure(f"{spec.name}: wall per virtual second", (ended - begun) / (last_s - first_s), "s", 10, note=note)
