"""Months of failures on pods of several architectures and on any fabric: same rates, losses of each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from hpn.scenarios.model.month.assumptions import Assumptions
from hpn.scenarios.model.month.fabric_network import FabricNetwork
from hpn.scenarios.model.month.failures import MONTH_H, draw, expected_flaps
from hpn.scenarios.model.month.job import ModelledJob
from hpn.scenarios.model.month.job_network import JobNetwork, PodNetwork
from hpn.scenarios.model.month.lost_hours import lost_hours
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec
from hpn.traffic.fluid.pods import Pods


@dataclass(frozen=True, slots=True)
class Network:
    """Network of a month; ``planes``: ports of a NIC, each of which has that share of the rate of the paper's two."""

    architecture: str = "hpn"
    planes: int = 2
    path_control: bool = True

    def spec(self, pod: FabricSpec) -> FabricSpec:
        """Return the network with the sizes of ``pod``, and with NICs and ToR uplinks that add up to the same rate."""
        if self.planes == pod.planes:
            return pod.model_copy(update={"architecture": self.architecture})
        rates = {key: getattr(pod, key) * pod.planes // self.planes for key in ("nic_port_rate", "uplink_rate")}
        return pod.model_copy(update={"architecture": self.architecture, "planes": self.planes, **rates})


NETWORKS: Mapping[str, Network] = {
    "hpn": Network(),
    "hpn-no-path-control": Network(path_control=False),
    "hpn-four-planes": Network(planes=4),
    "hpn-eight-planes": Network(planes=8),
    "dual-tor-clos": Network("dual-tor-clos"),
    "stacked-dual-tor": Network("stacked-dual-tor"),
    "single-tor": Network("single-tor"),
}
"""Networks of a month, by name."""
PAPER_POD = FabricSpec(segments=15, hosts=128, rails=8, aggs=60)
ASSUMED = Assumptions()
_ITSELF_BYTES = 100 * 2**20
_BYTES_A_FLAP = 8 * 20
_BYTES_A_FLOW = 4e3  # on a fabric: its object, its source port, its paths


@dataclass(frozen=True, slots=True)
class MonthRequest:
    """Request for a month on ``networks``, pods like ``spec``, and on ``fabrics``. The default is the paper's pod.

    ``gpus``: of the job on pods; None: all. On a fabric it has all hosts but spares.
    """

    networks: Sequence[str] = (*NETWORKS,)
    fabrics: Sequence[Fabric] = ()
    spec: FabricSpec = PAPER_POD
    gpus: int | None = None
    queue_pairs: int = 16
    months: int = 12
    seed: int = 1
    given: Assumptions = ASSUMED


@dataclass(frozen=True, slots=True)
class Spread:
    """Figure over the months: mean, least and most."""

    mean: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Losses of the job in a month on one network, all *modelled*, in GPU hours at full speed.

    At full speed every iteration has all sums at the NICs' total rate. Losses by hash collisions without faults are
    reported separately from losses by failures.
    """

    network: str
    gpus: int
    iteration_s: float  # without faults
    one_link_cut: float  # factor on the iteration time; infinite if the job cannot continue
    flaps: float  # expected number in a month
    crashes: Spread
    lost_gpu_hours: Spread
    lost_share: float  # of the month, mean
    lost_samples: float  # by failures: the samples of those GPU hours, mean
    hashes_gpu_hours: float
    slower_gpu_hours: float
    stalled_gpu_hours: float
    rolled_back_gpu_hours: float
    down_gpu_hours: float
    kind: str = "modelled"


def reckon(asked: MonthRequest, available_bytes: float, tell: Callable[[str], None]) -> Iterator[Outcome]:
    """Yield one outcome for each network. InputError for sizes that make no job; MachineError for too little memory."""
    sizes = [Pods.of(network_of(name).spec(asked.spec)) for name in asked.networks]
    gpus = [_gpus(asked, pods) for pods in sizes]
    for pods, count in zip(sizes, gpus, strict=True):
        check_memory(pods, count * asked.queue_pairs, expected_flaps(count * pods.tors, asked.given), available_bytes)

    for fabric in asked.fabrics:
        _check_flows(fabric, asked.queue_pairs, available_bytes)

    def outcome(name: str, gpus: int, network: Callable[[], JobNetwork]) -> Outcome:
        tell(f"{name}: {gpus:,} GPUs, {gpus * asked.queue_pairs:,} queue pairs, {asked.months} months")
        return _outcome(name, asked, network())

    for name, pods, count in zip(asked.networks, sizes, gpus, strict=True):
        path_control = network_of(name).path_control
        of_pods = partial(PodNetwork.first_hosts, pods, count, asked.queue_pairs, asked.seed, path_control=path_control)
        yield outcome(name, count, of_pods)
    for fabric in asked.fabrics:
        yield outcome(fabric.spec.name, len(fabric.active_nics), partial(FabricNetwork, fabric, asked.queue_pairs))


def check_memory(pods: Pods, flows: int, flaps: float, available_bytes: float) -> None:
    """Raise MachineError, before any allocation, when the model would not fit in memory."""
    needed = _ITSELF_BYTES + pods.memory_bytes(flows) + flaps * _BYTES_A_FLAP
    what = f"{flows:,} queue pairs over {pods.links:,} directed links and {flaps:,.0f} flaps a month"
    _check_fit(needed, available_bytes, what, "--pods or --queue-pairs")


def _check_flows(fabric: Fabric, queue_pairs: int, available_bytes: float) -> None:
    """Raise MachineError when a fabric's queue pairs, an object each, would not fit in memory."""
    flows = len(fabric.active_nics) * queue_pairs
    what = f"{flows:,} queue pairs on {fabric.spec.name}"
    _check_fit(_ITSELF_BYTES + flows * _BYTES_A_FLOW, available_bytes, what, "--queue-pairs")


def _check_fit(needed: float, available_bytes: float, what: str, lower: str) -> None:
    if needed > available_bytes:
        raise MachineError(
            f"{what} take about {needed / 1e9:,.1f} GB and {available_bytes / 1e9:,.1f} GB are free; lower {lower}"
        )


def _outcome(name: str, asked: MonthRequest, network: JobNetwork) -> Outcome:
    job, gpus = ModelledJob(network, asked.given), network.gpus
    speed = job.given.iteration_s / job.iteration_s
    found = [lost_hours(job, draw(network, asked.given, asked.seed, month)) for month in range(asked.months)]
    totals = [month.total_h * speed * gpus for month in found]

    def mean(of: str) -> float:
        return float(np.mean([getattr(each, of) for each in found])) * speed * gpus

    return Outcome(
        network=name,
        gpus=gpus,
        iteration_s=job.iteration_s,
        one_link_cut=job.stretch_of_a_cut if network.has_another_way else float("inf"),
        flaps=expected_flaps(network.links, asked.given),
        crashes=_spread([float(month.crashes) for month in found]),
        lost_gpu_hours=_spread(totals),
        lost_share=float(np.mean(totals)) / gpus / MONTH_H,
        lost_samples=float(np.mean(totals)) * 3600 / job.given.iteration_s * job.given.samples_a_gpu,
        hashes_gpu_hours=MONTH_H * gpus * (1 - speed),
        slower_gpu_hours=mean("slower_h"),
        stalled_gpu_hours=mean("stalled_h"),
        rolled_back_gpu_hours=mean("rolled_back_h"),
        down_gpu_hours=mean("down_h"),
    )


def network_of(name: str) -> Network:
    """Return a network. InputError for an unknown one."""
    if name not in NETWORKS:
        raise InputError(f"a month cannot be spent on {name[:60]!r}; it can on {', '.join(NETWORKS)}")
    return NETWORKS[name]


def _gpus(asked: MonthRequest, pods: Pods) -> int:
    gpus = pods.gpus if asked.gpus is None else asked.gpus
    if not 2 * pods.rails <= gpus <= pods.gpus or gpus % pods.rails:
        raise InputError(
            f"a job of {gpus:,} GPUs is not whole hosts of {pods.rails}, at least 2, on {pods.gpus:,} GPUs;"
            f" --gpus takes {2 * pods.rails} to {pods.gpus:,} in steps of {pods.rails}"
        )
    return gpus


def _spread(values: Sequence[float]) -> Spread:
    return Spread(float(np.mean(values)), min(values), max(values))
