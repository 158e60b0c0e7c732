"""CPU cost of a job's packet: in virtual time in total, and on this kernel compared with iperf3 over the same path."""

from __future__ import annotations

import os
import resource
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hpn.failover.analysis.job import JobMetrics
from hpn.results.text.figure import Figure
from hpn.scenarios.drill.catalogue import load
from hpn.scenarios.drill.job import JobSpec, plan_of
from hpn.scenarios.drill.load import load_drill
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.run.engines import run_in_guest
from hpn.scenarios.run.job_on_lab import LabJob
from hpn.scenarios.run.run_order import Order
from hpn.scenarios.selfcheck.bench.elephants import Measured, spec
from hpn.testbed.errors import MachineError
from hpn.testbed.events import now_ns
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.switch_spec import SwitchSpec
from hpn.testbed.lab.lab import Lab
from hpn.testbed.vm.engines import EngineSpec
from hpn.traffic.flows.framing import data_bytes, wire_bytes
from hpn.traffic.job.collective import CollectiveWork
from hpn.traffic.job.messages import MessageWork
from hpn.traffic.tools import iperf, sockperf

_DRILL, _IDLE, _MULTIPATH, _MULTIPATH_IDLE = (
    Path(__file__).parent / f"job{kind}.yaml" for kind in ("", "-idle", "-multipath", "-multipath-idle")
)
_OTHERS = ("iperf3", "sockperf")  # sockperf only if installed
_RING = "link-down-allreduce"
_BUFFER_BYTES = 16_000_000
_PATH_MTU = 4096
_MESSAGE_BYTES, _MESSAGES = 4_000_000, 4  # per iteration; many in flight, so that the wire is never idle
_LEAD_NS = 200_000_000
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_NOT_BUSY = (3, 4, 7)  # fields of /proc/stat: idle, iowait, steal


@dataclass(frozen=True, slots=True)
class _Cost:
    """Cost of one drill in a guest."""

    job: JobMetrics
    user_s: float  # programs of the guest, and its kernel
    system_s: float  # system calls of both; those of a guest are caught by ptrace
    sent: int  # packets that all ports sent, by the counters of ``switch:``; 0 without

    @property
    def cpu_s(self) -> float:
        """Total CPU time in seconds."""
        return self.user_s + self.system_s


def virtual_ring(engine: EngineSpec) -> Figure:
    """Measure the excess of a ring AllReduce over its bound, 2(n-1)/n x size / rate x frame / payload."""
    drill = load(_RING)
    if drill.job is None or not isinstance(drill.job.work, CollectiveWork):
        raise MachineError(f"the drill {_RING} has no collective")
    job, size = _cost(engine, drill).job, drill.job.work.size_bytes
    bound_ms = _ring_ms(job.ranks, size, build(drill.topology).nics[0].links[0].rate_bps, drill.job.path_mtu)
    note = f"{job.mean_ms:.2f} ms, bound {bound_ms:.2f}: {job.ranks} ranks, {size / 1e6:g} MB"
    over = (job.mean_ms / bound_ms - 1) * 100
    return Figure(f"{engine.name}: ring AllReduce beyond its bound", over, "%", 1, note=note)


def _ring_ms(ranks: int, size_bytes: int, rate_bps: int, path_mtu: int) -> float:
    """Return the bound in ms: each rank sends all but its own share twice, with headers for every path MTU."""
    return 2 * (ranks - 1) / ranks * size_bytes * 8 / rate_bps * wire_bytes(path_mtu) / path_mtu * 1e3


def virtual_packets(engine: EngineSpec) -> Iterator[Figure]:
    """Measure the CPU time per packet of guest kernel, workers and supervisor, less that of a drill without packets.

    Of RC; of multipath over RC's; and of what ``switch:`` adds to RC's at each port, over the token bucket alone.
    """
    reliable = _packet(engine, load_drill(_DRILL), load_drill(_IDLE))
    yield Figure(f"{engine.name}: CPU for a packet of a job", reliable.us, "us", 15, note=reliable.note)
    multipath = _packet(engine, load_drill(_MULTIPATH), load_drill(_MULTIPATH_IDLE))
    name = f"{engine.name}: multipath, CPU for a packet over RC's"
    yield Figure(name, multipath.us / reliable.us, "x", 1.3, note=f"{multipath.us:.1f} us: {multipath.note}")
    switched = _packet(engine, _with_buffers(_DRILL), _with_buffers(_IDLE))
    added = (switched.us - reliable.us) / switched.ports
    note = f"{switched.ports:.1f} ports a packet, with its acknowledgement; {switched.us:.1f} us: {switched.note}"
    yield Figure(f"{engine.name}: CPU that buffers of switches add at a port", added, "us", 1.5, note=note)


@dataclass(frozen=True, slots=True)
class _Packet:
    """CPU time per packet of a job, what it is made of, and ports that counted the packet or its acknowledgement."""

    us: float
    ports: float
    note: str


def _packet(engine: EngineSpec, busy_drill: Drill, idle_drill: Drill) -> _Packet:
    busy, idle = _cost(engine, busy_drill), _cost(engine, idle_drill)
    packets, cpu_s = busy.job.packets - idle.job.packets, busy.cpu_s - idle.cpu_s
    user, system = (busy.user_s - idle.user_s) / packets * 1e6, (busy.system_s - idle.system_s) / packets * 1e6
    parts = f"user {user:.1f}, system {system:.1f}"
    note = f"{parts}; {packets:,} packets, {busy.cpu_s:.1f} CPU s with {idle.cpu_s:.1f} for boot and lab"
    return _Packet(cpu_s / packets * 1e6, (busy.sent - idle.sent) / packets, note)


def _with_buffers(file: Path) -> Drill:
    """Return the drill on switches with buffers and lossless classes."""
    own = load_drill(file).topology
    return load(str(file), own.model_copy(update={"switch": SwitchSpec(buffer=_BUFFER_BYTES)}))


def _cost(engine: EngineSpec, drill: Drill) -> _Cost:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as out:
        metrics = run_in_guest(Order(drill, Path(out) / "run", ("bench",)), engine, lambda _line: None).metrics()
    if metrics.job is None:
        raise MachineError(f"the drill {drill.name} ran no job")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    sent = sum(each.sent_packets for each in metrics.buffers or ())
    return _Cost(metrics.job, after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime, sent)


def figures(found: Measured) -> Iterator[Figure]:
    """Yield the figures of ``side_by_side``: a job must be more efficient than every tool present."""
    others = {name: found[f"{name}_per_cpu_s"] for name in _OTHERS if f"{name}_per_cpu_s" in found}
    missing = "".join(f"; {name} is not installed" for name in _OTHERS if name not in others)
    note = f"{found['job_pps']:,.0f} packets/s, {found['job_lost']:.0f} lost{missing}"
    best = max(others.values())
    yield Figure(
        "job over three switches: packets per CPU s", found["job_per_cpu_s"], "", best, at_least=True, note=note
    )
    for name, per_cpu_s in others.items():
        beside = f"{found[f'{name}_pps']:,.0f} packets/s, {found[f'{name}_lost']:.0f} lost"
        yield Figure(f"{name} over three switches: packets per CPU s", per_cpu_s, "", note=beside)


async def side_by_side(seconds: int) -> Measured:
    """Send packets of one size at 2 Gbit/s one way, by a job and by other tools in turn; return packets per CPU second.

    The CPU time is that of the whole machine.
    """
    fabric = build(spec())
    lab = Lab.start(fabric, lambda _event: None)
    await lab.converged()
    found = {**await _job(lab, fabric, seconds), **await _iperf(lab, fabric, seconds)}
    if sockperf.installed():
        found |= await _sockperf(lab, fabric, seconds)
    lab.close()
    return found


async def _job(lab: Lab, fabric: Fabric, seconds: int) -> Measured:
    work = MessageWork("incast", _MESSAGE_BYTES, count=_MESSAGES, fan_in=1)
    with tempfile.TemporaryDirectory() as out:
        job = LabJob(lab, plan_of(JobSpec(work), fabric), Path(out), "disjoint")
        await job.start()
        start_ns = now_ns() + _LEAD_NS
        job.engine.begin(start_ns)
        await job.until(start_ns)
        busy_s = _busy()
        await job.until(start_ns + seconds * 10**9)
        busy_s = _busy() - busy_s
        report = await job.finish()
        await job.engine.close()
    pairs = [pair for worker in report.workers for pair in worker.queue_pairs]
    packets = sum(pair.packets for pair in pairs)
    lost = sum(pair.packets_again for pair in pairs)
    return {"job_pps": packets / seconds, "job_lost": lost, "job_per_cpu_s": (packets - lost) / busy_s}


async def _iperf(lab: Lab, fabric: Fabric, seconds: int) -> Measured:
    source, target = fabric.nics[-1], fabric.nics[0]
    spaces = lab.wiring.namespaces
    payload_bytes = data_bytes(_PATH_MTU)
    rate_bps = round(source.links[0].rate_bps * payload_bytes / wire_bytes(_PATH_MTU))
    busy_s = _busy()
    found = await iperf.udp(spaces[source.host], spaces[target.host], target.ip, rate_bps, seconds, payload_bytes)
    arrived = found.packets - found.lost
    return {
        "iperf3_pps": found.packets / found.seconds,
        "iperf3_lost": found.lost,
        "iperf3_per_cpu_s": arrived / (_busy() - busy_s),
    }


async def _sockperf(lab: Lab, fabric: Fabric, seconds: int) -> Measured:
    source, target = fabric.nics[-1], fabric.nics[0]
    spaces = lab.wiring.namespaces
    rate_pps = round(source.links[0].rate_bps / 8 / wire_bytes(_PATH_MTU))
    busy_s = _busy()
    found = await sockperf.udp(
        spaces[source.host], spaces[target.host], target.ip, rate_pps, seconds, data_bytes(_PATH_MTU)
    )
    return {
        "sockperf_pps": found.sent / found.seconds,
        "sockperf_lost": max(found.sent - found.received, 0),
        "sockperf_per_cpu_s": min(found.received, found.sent) / (_busy() - busy_s),
    }


def _busy() -> float:
    """Return the seconds since boot in which a CPU of this machine was busy; forwarding is charged to no process."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(field for at, field in enumerate(fields) if at not in _NOT_BUSY) / _TICKS_PER_S
