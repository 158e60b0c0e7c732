"""Keys below a drill's ``job:``, with their types, limits and defaults.

A field is named as in the class that it fills (``JobSpec``, ``Training``, ...); its alias is the key in a drill file.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from hpn.scenarios.drill.job import MAX_QUEUE_PAIRS, JobSpec
from hpn.scenarios.drill.model import PATH_MTUS
from hpn.testbed.fabric.values import Rate, Strict
from hpn.testbed.files.units import Duration, duration, size
from hpn.testbed.files.words import OneOf
from hpn.traffic.collectives.registry import KINDS
from hpn.traffic.flows.paths import CHOICES
from hpn.traffic.job.collective import GROUPINGS, CollectiveWork
from hpn.traffic.job.messages import MESSAGE_PATTERNS, MessageWork
from hpn.traffic.job.placement import ORDERS
from hpn.traffic.job.training import Training
from hpn.traffic.jobengine.message_choice import MESSAGE_CHOICES
from hpn.traffic.jobengine.port_use import PORT_USES
from hpn.traffic.transport.timers import RETRY_TIMERS
from hpn.traffic.transport.transports import RC
from hpn.traffic.transport.work import Recovery

_COLLECTIVE = CollectiveWork("", 1)
_MESSAGES = MessageWork("", 1)
_TRAINING = Training(1)
_JOB = JobSpec(_COLLECTIVE)

Size = Annotated[int, size("1 B", "2 GiB")]
Sizes = Annotated[int, size("0 B", "1000 GB")]  # perhaps of a real network
Plainly = ConfigDict(frozen=True, extra="forbid", validate_by_alias=True)


class JobSection(Strict):
    """``job:``; what it does is one of ``collective``, ``training`` and ``messages``, each read by itself."""

    model_config = Plainly

    collective: dict[str, object] | None = None
    training: dict[str, object] | None = None
    messages: dict[str, object] | None = None
    trace: str | None = Field(default=None, min_length=1, max_length=4096, examples=["trace.json"])
    checkpoints: dict[str, object] | None = None
    port_failover: bool = _JOB.port_failover
    port_recovery: object = False
    port_use: Annotated[str, OneOf(PORT_USES)] = _JOB.port_use
    restart: dict[str, object] | None = None
    rehash: dict[str, object] | None = None
    spray: dict[str, object] | None = None
    transport: object = RC.name
    samples: int = Field(default=_JOB.samples, ge=0)
    sizes: Literal["lab", "real"] = "lab"
    hosts: int | None = Field(default=None, ge=1)
    gpus: int | None = Field(default=None, ge=1)
    segments: int | None = Field(default=None, ge=1)
    order: Annotated[str, OneOf(ORDERS)] = _JOB.order
    queue_pairs: int = Field(default=_JOB.queue_pairs, ge=1, le=MAX_QUEUE_PAIRS)
    choice: Annotated[str, OneOf(MESSAGE_CHOICES)] = Field(default=_JOB.choice, alias="queue_pair_choice")
    split: bool = _JOB.split
    source_ports: Annotated[str, OneOf(CHOICES)] = _JOB.source_ports
    path_mtu: Literal[PATH_MTUS] = _JOB.path_mtu  # type: ignore[valid-type]  # made of a tuple
    recovery: Literal[tuple(map(str, Recovery))] = _JOB.recovery  # type: ignore[valid-type]  # made of an enum
    retry_timer: Annotated[str, OneOf(RETRY_TIMERS)] = _JOB.retry_timer
    ib_timeout: int = Field(default=_JOB.ib_timeout, ge=1, le=31)
    retry_count: int = Field(default=_JOB.retry_count, ge=0, le=7)
    window_packets: int = Field(default=_JOB.window_packets, alias="window", ge=1, le=65_536)
    congestion: object = _JOB.congestion_name
    stretch: float | None = Field(default=None, gt=0, le=1e6)
    nvlink_bps: Rate = Field(default=int(_JOB.nvlink_bps), alias="nvlink_rate")
    tick_ns: Annotated[int, duration("100 us", "20 ms")] = Field(default=_JOB.tick_ns, alias="tick")


class CollectiveSection(Strict):
    """``collective:``, one an iteration."""

    model_config = Plainly

    kind: Annotated[str, OneOf(KINDS)] = Field(examples=["all-reduce"])
    size_bytes: Size = Field(alias="size", examples=["4 MB"])
    algorithm: str | None = None
    slices: int = Field(default=_COLLECTIVE.slices, ge=1, le=256)
    grouping: Annotated[str, OneOf(GROUPINGS)] = Field(default=_COLLECTIVE.grouping, alias="among")
    ways: int = Field(default=_COLLECTIVE.ways, ge=1, le=1024)
    pause_ns: Annotated[int, duration("0 ms", "10 min")] = Field(default=_COLLECTIVE.pause_ns, alias="pause")


class MessagesSection(Strict):
    """``messages:``, a pattern of them an iteration."""

    model_config = Plainly

    pattern: Annotated[str, OneOf(MESSAGE_PATTERNS)] = Field(examples=["permutation"])
    size_bytes: Size = Field(alias="size", examples=["1 MB"])
    count: int = Field(default=_MESSAGES.count, ge=1, le=1024)
    every_ns: Annotated[int, duration("0 ms", "10 min")] = Field(default=_MESSAGES.every_ns, alias="every")
    fan_in: int | None = Field(default=None, ge=1)


class StragglerSection(Strict):
    """A rank of a training that is late."""

    model_config = Plainly

    rank: int = Field(ge=0)
    extra_ns: Duration = Field(alias="extra", examples=["20 ms"])


class TrainingSection(Strict):
    """``training:``, an iteration of it."""

    model_config = Plainly

    compute_ns: Annotated[int, duration("1 us", "10 min")] = Field(alias="compute", examples=["100 ms"])
    data: int = Field(default=_TRAINING.data, ge=1)
    tensor: int = Field(default=_TRAINING.tensor, ge=1)
    pipeline: int = Field(default=_TRAINING.pipeline, ge=1)
    expert: int = Field(default=_TRAINING.expert, ge=1)
    micro_batches: int = Field(default=_TRAINING.micro_batches, ge=1, le=256)
    data_bytes: Sizes = Field(default=_TRAINING.data_bytes, alias="data_size")
    tensor_bytes: Sizes = Field(default=_TRAINING.tensor_bytes, alias="tensor_size")
    pipeline_bytes: Sizes = Field(default=_TRAINING.pipeline_bytes, alias="pipeline_size")
    expert_bytes: Sizes = Field(default=_TRAINING.expert_bytes, alias="expert_size")
    overlap: bool = _TRAINING.overlap
    buckets: int = Field(default=_TRAINING.buckets, ge=1, le=256)
    algorithm: str = _TRAINING.algorithm
    slices: int = Field(default=_TRAINING.slices, ge=1, le=256)
    stragglers: list[StragglerSection] = Field(default_factory=list)


class RestartSection(Strict):
    """``restart:``, what happens when the job has died."""

    model_config = Plainly

    after_ns: Annotated[int, duration("100 ms", "30 min")] = Field(alias="after", examples=["2 s"])
    checkpoint_every: int = Field(default=1, ge=1, le=1_000_000)
    spares: int = Field(default=0, ge=0, le=1000)
    watchdog_ns: Annotated[int | None, duration("500 ms", "30 min")] = Field(
        default=None, alias="watchdog", examples=["2 s"]
    )


class CheckpointsSection(Strict):
    """``checkpoints:``, written beside the job."""

    model_config = Plainly

    size_bytes: Size = Field(alias="size", examples=["1 MB"])
    every_ns: Annotated[int, duration("10 ms", "10 min")] = Field(alias="every", examples=["1 s"])
    storage: list[str] = Field(min_length=1, examples=["[p0.s1.h1]"])
