"""Job of a drill: the work of its ranks in every iteration, and the queue pairs that carry it. PURE, without numpy.

Changes when a drill's job gets another setting. Jobs themselves are defined in ``traffic.job``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from hpn.scenarios.drill.path_choice import check_choice, check_paths, check_source_ports, check_standby
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.buffers import checkpoint_dscp
from hpn.testbed.fabric.model import Fabric, Nic
from hpn.testbed.routing.wire_time import WireTimes
from hpn.traffic.collectives.locations import CrossRail
from hpn.traffic.collectives.program import Send
from hpn.traffic.congestion.control import Parameters
from hpn.traffic.congestion.parameter_sets import LINE_RATE
from hpn.traffic.congestion.scale import Scale
from hpn.traffic.flows.flow import MAX_RECOVERING
from hpn.traffic.flows.framing import IMMEDIATE_BYTES, RETH_BYTES, wire_bytes
from hpn.traffic.flows.patterns import NewFlows, check_number
from hpn.traffic.flows.port_turns import turns_of
from hpn.traffic.job.chakra.work import ChakraWork
from hpn.traffic.job.collective import CollectiveWork
from hpn.traffic.job.job import NVLINK_BPS, Checkpoints, Job, Site, build
from hpn.traffic.job.messages import MessageWork
from hpn.traffic.job.placement import place, place_of
from hpn.traffic.job.restart import RestartPolicy
from hpn.traffic.job.trace import TraceWork
from hpn.traffic.job.training import Training
from hpn.traffic.jobengine.plan import JobPlan
from hpn.traffic.jobengine.port_use import PORT_USES
from hpn.traffic.jobengine.rehash import RehashPolicy
from hpn.traffic.jobengine.setup import QueuePair
from hpn.traffic.multipath.settings import Multipath
from hpn.traffic.streams.qp import AckPolicy
from hpn.traffic.transport.port_recovery import PortRecovery
from hpn.traffic.transport.timers import RETRY_TIMERS
from hpn.traffic.transport.work import Recovery, Transport

MAX_QUEUE_PAIRS = 8
"""Maximum number of queue pairs of a connection."""
JOB_HEADERS = RETH_BYTES + IMMEDIATE_BYTES
"""Extra bytes of a single-packet message compared with a stream's packet: an address and an immediate."""
_ACK_PACKETS = 16
_ACK_DELAY_NS = 2_000_000


Work = CollectiveWork | Training | MessageWork | TraceWork | ChakraWork


@dataclass(frozen=True, slots=True)
class Checkpointing:
    """Checkpoints alongside the job: every host writes ``size_bytes`` every ``every_ns`` to these hosts in turn."""

    size_bytes: int
    every_ns: int
    storage: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JobSpec:
    """Job of a drill, which replaces streams: ``work``, iteration after iteration.

    ``real_sizes``: True if sizes are those of the real network. The lab divides them by its ``scale``, as it does its
    rates.
    """

    work: Work
    checkpoints: Checkpointing | None = None
    real_sizes: bool = False
    hosts: int | None = None  # None: all active hosts
    gpus: int | None = None  # per host; None: all
    segments: int | None = None  # number to spread them over; None: as the order gives
    order: str = "contiguous"  # order of hosts: traffic.job.placement.ORDERS
    seed: int | None = None  # seed of random choices; None: the fabric's
    queue_pairs: int = 1  # per connection
    choice: str = "fewest-bytes"  # choice of the queue pair for a message
    split: bool = False
    source_ports: str = "disjoint"
    path_mtu: int = 4096
    recovery: str = Recovery.GO_BACK_N.value
    retry_timer: str = "ib"
    ib_timeout: int = 14
    retry_count: int = 7
    window_packets: int = 256
    congestion: Parameters = LINE_RATE.values
    congestion_name: str = LINE_RATE.name
    stretch: float | None = None  # factor on congestion control's times; None: the factor by which rates are slower
    nvlink_bps: float = NVLINK_BPS
    tick_ns: int = 500_000
    port_failover: bool = False
    port_recovery: PortRecovery | None = None  # how queue pairs return after a failover; None: they do not
    port_use: str = "active-active"
    restart: RestartPolicy | None = None  # None: no restart after a failure
    rehash: RehashPolicy | None = None  # None: queue pairs stay on their paths
    spray: int = 1  # number of source ports that a queue pair's packets use in turn
    reorder_packets: int = 0  # packets that may overtake one before it counts as missing; with spray only
    samples: int = 0  # per iteration of training; 0: unknown
    multipath: Multipath | None = None  # settings of the multipath transport; None: a reliable connection
    slower: int = 1  # divisor of rates and sizes for a slow kernel

    def slowed(self, times: int) -> JobSpec:
        """Return the job for a kernel with ``times`` the cost per packet: same duration, bytes divided by ``times``."""
        if times <= 1:
            return self
        return replace(self, slower=self.slower * times, tick_ns=min(self.tick_ns * times, 20_000_000))

    @property
    def controls_queues(self) -> bool:
        """True if the job has congestion control, so that it measures queues."""
        return self.congestion != LINE_RATE.values

    @property
    def has_paths(self) -> bool:
        """True if the packets of a queue pair take one path at a time."""
        return self.spray == 1 and self.multipath is None

    @property
    def transport(self) -> Transport:
        """Transport of the job's queue pairs."""
        return Transport(
            path_mtu=self.path_mtu,
            recovery=Recovery(self.recovery),
            timer=RETRY_TIMERS[self.retry_timer].make(self.ib_timeout),
            retry_count=self.retry_count,
            window_packets=self.window_packets,
            ack_every=_ACK_PACKETS,
            reorder_packets=self.reorder_packets,
            multipath=self.multipath,
        )


def plan_of(job: JobSpec, fabric: Fabric) -> JobPlan:
    """Return the plan of the job on a fabric. InputError when it does not fit."""
    laid_out = _laid_out(job, fabric)
    queue_pairs = tuple(_queue_pairs(job, laid_out, fabric))
    _check_timer(job, queue_pairs)
    if job.rehash is not None:
        with _about("rehash"):
            check_choice(fabric, (pair.flow for pair in queue_pairs), "rehash")
    if job.spray > 1:
        with _about("spray"):
            check_choice(fabric, (pair.flow for pair in queue_pairs), "spray")
            check_source_ports((pair.flow for pair in queue_pairs), job.spray)
    if job.multipath is not None:
        with _about("transport"):
            check_paths(fabric, (pair.flow for pair in queue_pairs), job.multipath.paths)
    if PORT_USES[job.port_use].standby:
        with _about("port_use"):
            check_standby(fabric, (pair.flow for pair in queue_pairs), job.queue_pairs)
    return JobPlan(
        programs=laid_out.programs,
        nics=tuple(laid_out.places[program.rank].nic for program in laid_out.programs),
        background=laid_out.background,
        queue_pairs=queue_pairs,
        transport=job.transport,
        acks=AckPolicy(_ACK_PACKETS, ack_delay_ns(job)),
        control=job.congestion,
        scale=scale_of(job, fabric),
        slower=job.slower,
        choice=job.choice,
        split=job.split,
        tick_ns=job.tick_ns,
        failover=job.port_failover,
        recovery=job.port_recovery,
        port_use=job.port_use,
        restart=job.restart,
        spray=job.spray,
        rehash=None if job.rehash is None else replace(job.rehash, seed=fabric.spec.seed),
        samples=job.samples,
    )


def scale_of(job: JobSpec, fabric: Fabric) -> Scale:
    """Return the scale for parameters of congestion control, which are written for real links."""
    slower = fabric.spec.scale * job.slower
    return Scale(slower, slower if job.stretch is None else job.stretch * job.slower)


def _check_timer(job: JobSpec, queue_pairs: Sequence[QueuePair]) -> None:
    """Raise InputError when a retry timer expires before any acknowledgement can come: all would be resent.

    Timers are real but the lab's links are slower. There a packet of 4 KB takes longer to a host than the 2 ms that an
    adapter waits first.
    """
    if not queue_pairs:
        raise InputError("no rank sends anything over the network; take more hosts, or what ranks of two hosts share")
    slowest_pps = min(pair.flow.rate_pps for pair in queue_pairs)
    round_ns = round(2e9 / slowest_pps) + job.tick_ns  # through one ToR at least
    timer = job.transport.timer
    wait_ns = timer.wait_ns(0)
    if wait_ns - ack_delay_ns(job) < round_ns:
        fits = next(t for t in range(1, 32) if (wait := RETRY_TIMERS["ib"].make(t).wait_ns(0)) - wait // 4 >= round_ns)
        raise InputError(
            f"the retry timer waits {wait_ns / 1e6:.3g} ms at first, and at the lab's rates an acknowledgement takes"
            f" {(round_ns + ack_delay_ns(job)) / 1e6:.3g} ms or more, so all would be sent again;"
            f" write retry_timer: ib with ib_timeout: {fits} or more, or less path_mtu or tick",
            ("retry_timer", "ib_timeout", "path_mtu", "tick"),
        )


@contextmanager
def _about(key: str) -> Iterator[None]:
    """Add the job's key to an InputError raised in this context."""
    try:
        yield
    except InputError as error:
        raise InputError(error.problems, (key,)) from error


def ack_delay_ns(job: JobSpec) -> int:
    """Return how long in ns a receiver delays an acknowledgement that no packet requests."""
    return min(_ACK_DELAY_NS, job.transport.timer.wait_ns(0) // 4)


def _laid_out(job: JobSpec, fabric: Fabric) -> Job:
    """Return the job's programs. Times are the lab's; so are sizes, unless ``real_sizes``."""
    seed = fabric.spec.seed if job.seed is None else job.seed
    places = place(fabric, hosts=job.hosts, rails=job.gpus, segments=job.segments, order=job.order, seed=seed)
    smaller = job.slower * (fabric.spec.scale if job.real_sizes else 1)
    nvlink_bps = job.nvlink_bps / (fabric.spec.scale * job.slower)
    site = Site(
        places,
        job.path_mtu,
        Scale(slower=smaller, longer=1),
        nvlink_bps * smaller,
        CrossRail.FABRIC if fabric.rails_meet else CrossRail.NVLINK,
    )
    work = replace(job.work, seed=seed) if isinstance(job.work, MessageWork) else job.work
    saving = job.checkpoints
    if saving is None:
        return build(work, site)
    with _about("checkpoints.storage"):
        storage = tuple(place_of(fabric, host) for host in saving.storage)
    return build(work, site, Checkpoints(saving.size_bytes, saving.every_ns, storage))


def _queue_pairs(job: JobSpec, laid_out: Job, fabric: Fabric) -> Iterator[QueuePair]:
    """Yield ``queue_pairs`` for every pair of ranks that communicate over the network, then as many for grants."""
    nics = {(nic.host, nic.rail): nic for nic in fabric.nics}
    places = laid_out.places
    wanted = dict.fromkeys(
        (program.rank, op.peer, op.rail)
        for program in laid_out.programs
        for op in program.ops
        if isinstance(op, Send) and op.rail is not None
    )
    granted = _granted(wanted) if job.congestion.admission(scale_of(job, fabric), job.path_mtu) is not None else {}
    with _about("queue_pairs"):
        many = (len(wanted) + len(granted)) * job.queue_pairs
        check_number(many)
        if job.port_recovery is not None and many > MAX_RECOVERING:
            raise InputError(f"{many} queue pairs; at most {MAX_RECOVERING} can recover: lower queue_pairs")
    flows = NewFlows(job.path_mtu, job.ib_timeout, job.retry_count, turns_of(fabric, job.queue_pairs))
    dscps = dict.fromkeys(laid_out.background, checkpoint_dscp(fabric.spec))
    wires = None if job.multipath is None else WireTimes(fabric, wire_bytes(job.path_mtu))
    for source, target, rail in wanted:
        src, dst = nics[places[source].host, rail], fabric.nic(places[target].nic)
        wire_ns = 0 if wires is None else wires.least_ns(src, dst)
        for k in range(job.queue_pairs):
            flow = flows.between(src, dst, k, _pps(job, src))
            yield QueuePair(flow, source, target, rail, dscp=dscps.get(source, 0), wire_ns=wire_ns)
    for (source, target), rail in granted.items():
        src, dst = fabric.nic(places[target].nic), nics[places[source].host, rail]
        for k in range(job.queue_pairs, 2 * job.queue_pairs):
            flow = flows.between(src, dst, k, _pps(job, src))
            yield QueuePair(flow, target, source, src.rail, grants=True, dscp=dscps.get(source, 0))


def _granted(wanted: Iterable[tuple[int, int, int]]) -> dict[tuple[int, int], int]:
    """Return the pairs of ranks (source, target) and the first rail that their messages leave by."""
    rails: dict[tuple[int, int], int] = {}
    for source, target, rail in wanted:
        rails.setdefault((source, target), rail)
    return rails


def _pps(job: JobSpec, nic: Nic) -> float:
    """Return the packets per second of the fastest port of a NIC."""
    return max(link.rate_bps for link in nic.links) / job.slower / (8 * wire_bytes(job.path_mtu))
