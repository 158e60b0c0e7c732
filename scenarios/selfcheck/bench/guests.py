"""Costs of guests: boot, the kernel build, and a virtual second of a drill with many packets.

An engine that this machine lacks is left out; ``hpn doctor`` says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median

from hpn.results.text.figure import Figure
from hpn.scenarios.drill.load import load_drill
from hpn.scenarios.run.calibrate import packets_per_s
from hpn.scenarios.selfcheck.bench import virtual
from hpn.scenarios.selfcheck.bench.jobs import virtual_packets, virtual_ring
from hpn.testbed.errors import MachineError
from hpn.testbed.vm import kernel_cache
from hpn.testbed.vm.engines import ENGINES, EngineSpec
from hpn.testbed.vm.guest import GuestJob

_DRILL = Path(__file__).parent / "virtual-time.yaml"


def guests(runs: int) -> Iterator[Figure]:
    """Yield all figures of guests."""
    for spec in ENGINES.values():
        if spec.boot_target_s is None:
            continue
        try:
            spec.engine().check()
        except MachineError:
            continue
        yield _boot(spec, runs, spec.boot_target_s)
        if spec.virtual_time:
            yield from virtual_second(spec)
            yield from virtual_packets(spec)
            yield virtual_ring(spec)
    built = kernel_cache.newest()
    if built is not None:
        yield Figure("UML kernel: build", built.build_s, "s", 600, note=f"{built.release}, when it was built")


def _boot(spec: EngineSpec, runs: int, target_s: float) -> Figure:
    engine = spec.engine()
    job = GuestJob(("true",), Path("/"), (), {}, 512, 1, 120.0)
    engine.run(job, lambda _line: None)  # first boot: lets the engine look up what it needs to know only once
    results = [engine.run(job, lambda _line: None) for _ in range(runs)]
    boot_s = median(result.boot_s for result in results)
    return Figure(f"{spec.name}: boot to first command", boot_s, "s", target_s, note=f"Linux {results[0].kernel}")


def virtual_second(spec: EngineSpec) -> Iterator[Figure]:
    """Yield wall and CPU time of a second of traffic: 16 hosts, 2 rails, about 50,000 packets/s in all."""
    drill = load_drill(_DRILL)
    found = virtual.measure(drill, spec)
    note = f"{packets_per_s(drill):,.0f} packets/s; the drill: {found.outcome}"
    yield Figure(f"{spec.name}: wall per virtual second", found.wall_s, "s", 10, note=note)
    yield virtual.cpu_figure(f"{spec.name}: CPU per virtual second", found)
