"""CPU and wall time of a second of virtual time: by hosts, packets per second and clients, by kernel.

CPU seconds are those of the guest's processes on this machine (user and system). Other load hardly affects them. Wall
seconds are valid on an idle machine.
"""

from __future__ import annotations

import os
import re
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

from hpn.results.text.figure import Figure
from hpn.scenarios.drill.load import load_drill
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.run import client_site
from hpn.scenarios.run.calibrate import packets_per_s
from hpn.scenarios.run.engines import run_in_guest
from hpn.scenarios.run.run_order import Order
from hpn.testbed.errors import MachineError
from hpn.testbed.vm import kernel_cache
from hpn.testbed.vm.engines import ENGINES, EngineSpec
from hpn.testbed.vm.kernel_cache import Built
from hpn.testbed.vm.uml import Uml

_ENGINE = next(spec for spec in ENGINES.values() if spec.virtual_time)
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PPID, _CPU = 1, slice(11, 15)  # of /proc/PID/stat behind the name: own time and that of ended children
_ELAPSED = re.compile(r"([\d.]+) of [\d.]+ s")
_WARM_S = 1.0
"""Warm-up on the drill's own clock: the time before is start-up and not typical."""

_STREAMS = """\
drill: virtual-time
summary: nothing breaks; what a virtual second costs
topology: {{segments: 2, hosts: {hosts}, rails: 2, aggs: 2}}
workload: {{pattern: permutation, queue_pairs: 2, load: {load:.4f} %}}
timeline: {{healthy: 6500 ms}}
expect: [packets_lost: {{at_most: 0}}]
"""
_CLIENT = """\
drill: virtual-time
summary: a client on rail 0, while a link of rail 1 is cut and mended; what a virtual second costs
topology: {{segments: 2, hosts: 2, rails: 2, aggs: 2}}
workload: {{client: {client}}}
timeline:
  healthy: 1 s
  faults: [{{id: cut, fault: link-down, target: p0.s0.h0.r1.0, at: 1 s, for: 5 s}}]
  settle: 2500 ms
expect: [job_survives: yes]
"""
_HOSTS = (2, 8, 32)  # per segment, of which there are two
_PPS = (2_000, 50_000)
_NIC_PPS = 12_036
"""Packets per second of a NIC at 100 % load; each drill's own rate is counted and shown."""
_CLIENTS = {
    "4 TCP rings": "{run: command, command: ['{python}', -P, '{programs}/ring.py', '500000', '40', '8']}",
    "iperf3, UDP 50 Mbit/s each": "{run: iperf3, protocol: udp, rate: 50M}",
    "torch, all_reduce of 4 MB": "{run: torch, work: all-reduce, size: 4 MB, pause: 50 ms}",
    "mpi, Allreduce of 4 MB": "{run: mpi, work: all-reduce, size: 4 MB, pause: 50 ms}",
    "verbs on Soft-RoCE, 256 KiB": "{run: verbs, size: 256 KiB, pause: 10 ms}",
}


@dataclass(frozen=True, slots=True)
class Second:
    """Cost of a virtual second of a drill, and of the rest of the run: boot, lab, verdict."""

    cpu_s: float
    wall_s: float
    besides_cpu_s: float
    outcome: str


def table() -> Iterator[Figure]:
    """Yield every row with every kernel in the cache, oldest first; a client that is not installed has no row.

    MachineError when there is no kernel.
    """
    kernels = kernel_cache.usable()
    if not kernels:
        raise MachineError("virtual time needs a UML kernel of our own: hpn vm build-kernel (once, some minutes)")
    with tempfile.TemporaryDirectory() as folder:
        drills = list(_drills(Path(folder)))
        for built, (name, drill) in product(kernels, drills):
            yield cpu_figure(f"{built.release}: {name}", measure(drill, _booting(built)))


def cpu_figure(name: str, found: Second) -> Figure:
    """Return the cost in CPU seconds, with the rest in its note."""
    note = f"{found.wall_s:.3f} s wall; boot, lab, verdict {found.besides_cpu_s:.1f} CPU s; the drill: {found.outcome}"
    return Figure(name, found.cpu_s, "CPU s", note=note)


def measure(drill: Drill, spec: EngineSpec) -> Second:
    """Run a drill in a guest and compare both clocks with its own, between its first and last progress report."""
    seen: list[tuple[float, float, float]] = []  # drill's own clock, CPU, wall clock

    def listen(line: str) -> None:
        found = _ELAPSED.search(line)
        if found is not None and float(found[1]) >= _WARM_S:
            seen.append((float(found[1]), descendants_cpu_s(), time.monotonic()))

    before = _children_cpu_s()
    with tempfile.TemporaryDirectory() as out:
        verdict = run_in_guest(Order(drill, Path(out) / "run", ("bench",)), spec, listen).verdict()
    if not seen or seen[-1][0] == seen[0][0]:
        raise MachineError(f"the drill {drill.name} told no times in a guest")
    virtual_s, cpu_s, wall_s = (last - first for first, last in zip(seen[0], seen[-1], strict=True))
    besides = _children_cpu_s() - before - cpu_s
    return Second(cpu_s / virtual_s, wall_s / virtual_s, besides, verdict.outcome.value)


def descendants_cpu_s() -> float:
    """Return the CPU time of all descendants of this process, including those that have ended."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            parents[int(name)] = int(fields[_PPID])
            ticks[int(name)] = sum(map(int, fields[_CPU]))
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    found.discard(os.getpid())
    return sum(ticks[pid] for pid in found) / _TICKS_PER_S + _children_cpu_s()


def _children_cpu_s() -> float:
    """Return the CPU time of children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _drills(folder: Path) -> Iterator[tuple[str, Drill]]:
    """Yield each row's name and drill, for clients that this machine can run."""
    for hosts, pps in product(_HOSTS, _PPS):
        load = 100 * pps / (_NIC_PPS * 4 * hosts)
        drill = _drill(folder, f"streams-{hosts}-{pps}", _STREAMS.format(hosts=hosts, load=load))
        yield f"{2 * hosts} hosts, {round(packets_per_s(drill), -2):,.0f} packets/s", drill
    for number, (name, client) in enumerate(_CLIENTS.items()):
        drill = _drill(folder, f"client-{number}", _CLIENT.format(client=client))
        if client_site.missing(drill) is None:
            yield f"4 hosts, {name}", drill


def _drill(folder: Path, name: str, text: str) -> Drill:
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return load_drill(path)


def _booting(built: Built) -> EngineSpec:
    """Return virtual time with that kernel."""
    return replace(_ENGINE, start=partial(Uml, built.program, virtual_time=True))
