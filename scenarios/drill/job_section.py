"""Reads a drill's ``job:``: what the ranks do, where they are, and how their queue pairs are connected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from scenarios.drill.job import MAX_QUEUE_PAIRS, Job, Saving, Work
from scenarios.drill.model import PATH_MTUS
from scenarios.drill.path_sections import rehash_of, spray_of
from scenarios.drill.trace_files import trace_of
from testbed.fabric.marking import marker_of
from testbed.fabric.spec import FabricSpec, Rate, Strict
from testbed.files.check import Mistakes, did_you_mean, dotted
from testbed.files.document import Plain, Where, shorten
from testbed.files.units import Duration, duration, format_duration, size
from testbed.files.words import OneOf
from traffic.collectives.registry import COLLECTIVES, KINDS
from traffic.congestion.written import Chosen, written
from traffic.job.collective import GROUPINGS, CollectiveWork
from traffic.job.messages import MESSAGE_PATTERNS, MessageWork
from traffic.job.placement import ORDERS
from traffic.job.restart import RestartPolicy
from traffic.job.training import Straggler, Training
from traffic.paths import CHOICES
from traffic.rc.timers import RETRY_TIMERS
from traffic.rc.work import Recovery
from traffic.rdma.choices import MESSAGE_CHOICES

_COLLECTIVE = CollectiveWork("", 1)
_MESSAGES = MessageWork("", 1)
_TRAINING = Training(1)
_JOB = Job(_COLLECTIVE)

FINDING_NS = 1_000_000_000
"""Spares: asking all hosts takes half of it, starting elsewhere the rest at most."""

Size = Annotated[int, size("1 B", "2 GiB")]
Sizes = Annotated[int, size("0 B", "1000 GB")]  # of a real network, perhaps
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
    port_recovery: bool = _JOB.port_recovery
    restart: dict[str, object] | None = None
    rehash: dict[str, object] | None = None
    spray: dict[str, object] | None = None
    samples: int = Field(default=_JOB.samples, ge=0)
    sizes: Literal["lab", "real"] = "lab"
    hosts: int | None = Field(default=None, ge=1)
    gpus: int | None = Field(default=None, ge=1)
    segments: int | None = Field(default=None, ge=1)
    order: Annotated[str, OneOf(ORDERS)] = _JOB.order
    queue_pairs: int = Field(default=_JOB.queue_pairs, ge=1, le=MAX_QUEUE_PAIRS)
    queue_pair_choice: Annotated[str, OneOf(MESSAGE_CHOICES)] = _JOB.choice
    split: bool = _JOB.split
    source_ports: Annotated[str, OneOf(CHOICES)] = _JOB.source_ports
    path_mtu: Literal[PATH_MTUS] = _JOB.path_mtu  # type: ignore[valid-type]  # made of a tuple
    recovery: Literal[tuple(map(str, Recovery))] = _JOB.recovery  # type: ignore[valid-type]  # made of an enum
    retry_timer: Annotated[str, OneOf(RETRY_TIMERS)] = _JOB.retry_timer
    ib_timeout: int = Field(default=_JOB.ib_timeout, ge=1, le=31)
    retry_count: int = Field(default=_JOB.retry_count, ge=0, le=7)
    window: int = Field(default=_JOB.window_packets, ge=1, le=65_536)
    congestion: object = _JOB.congestion_name
    stretch: float | None = Field(default=None, gt=0, le=1e6)
    nvlink_rate: Rate = int(_JOB.nvlink_bps)
    tick: Annotated[int, duration("100 us", "20 ms")] = _JOB.tick_ns


class CollectiveSection(Strict):
    """``collective:``, one an iteration."""

    model_config = Plainly

    kind: Annotated[str, OneOf(KINDS)] = Field(examples=["all-reduce"])
    size_bytes: Size = Field(alias="size", examples=["4 MB"])
    algorithm: str | None = None
    slices: int = Field(default=_COLLECTIVE.slices, ge=1, le=256)
    among: Annotated[str, OneOf(GROUPINGS)] = _COLLECTIVE.grouping
    ways: int = Field(default=_COLLECTIVE.ways, ge=1, le=1024)
    pause: Annotated[int, duration("0 ms", "10 min")] = _COLLECTIVE.pause_ns


class MessagesSection(Strict):
    """``messages:``, a pattern of them an iteration."""

    model_config = Plainly

    pattern: Annotated[str, OneOf(MESSAGE_PATTERNS)] = Field(examples=["permutation"])
    size_bytes: Size = Field(alias="size", examples=["1 MB"])
    count: int = Field(default=_MESSAGES.count, ge=1, le=1024)
    every: Annotated[int, duration("0 ms", "10 min")] = _MESSAGES.every_ns
    fan_in: int | None = Field(default=None, ge=1)


class StragglerSection(Strict):
    """A rank of a training that is late."""

    rank: int = Field(ge=0)
    extra: Duration = Field(examples=["20 ms"])


class TrainingSection(Strict):
    """``training:``, an iteration of it."""

    model_config = Plainly

    compute: Annotated[int, duration("1 us", "10 min")] = Field(examples=["100 ms"])
    data: int = Field(default=_TRAINING.data, ge=1)
    tensor: int = Field(default=_TRAINING.tensor, ge=1)
    pipeline: int = Field(default=_TRAINING.pipeline, ge=1)
    expert: int = Field(default=_TRAINING.expert, ge=1)
    micro_batches: int = Field(default=_TRAINING.micro_batches, ge=1, le=256)
    data_size: Sizes = _TRAINING.data_bytes
    tensor_size: Sizes = _TRAINING.tensor_bytes
    pipeline_size: Sizes = _TRAINING.pipeline_bytes
    expert_size: Sizes = _TRAINING.expert_bytes
    overlap: bool = _TRAINING.overlap
    buckets: int = Field(default=_TRAINING.buckets, ge=1, le=256)
    algorithm: str = _TRAINING.algorithm
    slices: int = Field(default=_TRAINING.slices, ge=1, le=256)
    stragglers: list[StragglerSection] = Field(default_factory=list)


class RestartSection(Strict):
    """``restart:``, what happens when the job has died."""

    model_config = Plainly

    after: Annotated[int, duration("100 ms", "30 min")] = Field(examples=["2 s"])
    checkpoint_every: int = Field(default=1, ge=1, le=1_000_000)
    spares: int = Field(default=0, ge=0, le=1000)


class CheckpointsSection(Strict):
    """``checkpoints:``, written beside the job."""

    model_config = Plainly

    size_bytes: Size = Field(alias="size", examples=["1 MB"])
    every: Annotated[int, duration("10 ms", "10 min")] = Field(examples=["1 s"])
    storage: list[str] = Field(min_length=1, examples=["[p0.s1.h1]"])


def job_of(mistakes: Mistakes, spec: FabricSpec | None, base: Path) -> Job | None:
    """The job of a document for a topology; None when it has none, or one that is not right.

    A trace that it names is looked for below ``base``.
    """
    if "job" not in mistakes.document.data:
        return None
    data = mistakes.document.section("job")
    section = None if data is None else mistakes.check(JobSection, data, ("job",))
    if "workload" in mistakes.document.data:
        mistakes.add(("job",), "a drill runs a job or the streams of a workload, not both; leave one out")
    if not isinstance(data, dict):
        return None
    given = data
    work, saving = _work(mistakes, given, base), _saving(mistakes, given.get("checkpoints"))
    restart = _restart(mistakes, given.get("restart"))
    if section is not None and section.port_failover and section.queue_pairs < 2:
        text = "job.port_failover needs another queue pair to go on with; write queue_pairs: 2 or more"
        mistakes.add(("job", "port_failover"), text)
    rehash = rehash_of(mistakes, given.get("rehash"), spec, str(given.get("source_ports", _JOB.source_ports)))
    spray = None
    if section is not None:
        rehashes = section.rehash is not None
        spray = spray_of(mistakes, given.get("spray"), section.recovery, section.window, rehashes=rehashes)
    if section is not None and section.port_recovery and not section.port_failover:
        text = "job.port_recovery brings back what port failover has left; write port_failover: yes too"
        mistakes.add(("job", "port_recovery"), text)
    chosen = _congestion(mistakes, given.get("congestion", _JOB.congestion_name), spec)
    if section is None or work is None or chosen is None or (saving is None and section.checkpoints is not None):
        return None
    return Job(
        work=work,
        checkpoints=saving,
        real_sizes=section.sizes == "real",
        hosts=section.hosts,
        gpus=section.gpus,
        segments=section.segments,
        order=section.order,
        queue_pairs=section.queue_pairs,
        choice=section.queue_pair_choice,
        split=section.split,
        source_ports=section.source_ports,
        path_mtu=section.path_mtu,
        recovery=section.recovery,
        retry_timer=section.retry_timer,
        ib_timeout=section.ib_timeout,
        retry_count=section.retry_count,
        window_packets=section.window,
        congestion=chosen.values,
        congestion_name=chosen.name,
        stretch=section.stretch,
        nvlink_bps=section.nvlink_rate,
        tick_ns=section.tick,
        port_failover=section.port_failover,
        port_recovery=section.port_recovery,
        restart=restart,
        rehash=rehash,
        spray=spray.ports if spray is not None else _JOB.spray,
        reorder_packets=spray.reorder_packets if spray is not None else _JOB.reorder_packets,
        samples=section.samples,
    )


def _congestion(mistakes: Mistakes, given: Plain, spec: FabricSpec | None) -> Chosen | None:
    """The congestion control that is asked for; None when it is not right, or nobody can tell."""
    if spec is None:
        return None
    chosen, problems = written(given, spec.nic_port_rate, marker_of(spec))
    for where, text in problems:
        mistakes.add(("job", "congestion", *where), f"job.congestion: {text}")
    return None if problems else chosen


def _work(mistakes: Mistakes, job: Mapping[str, Plain], base: Path) -> Work | None:
    given = {name: job[name] for name in WORKS if name in job}
    if len(given) != 1:
        text = "says nothing that its ranks do" if not given else f"has {' and '.join(given)}"
        mistakes.add(("job",), f"job {text}; write one of {', '.join(WORKS)}")
        return None
    name, data = next(iter(given.items()))
    if name == "trace":
        return trace_of(mistakes, base / str(data))
    return _WORKS[name](mistakes, ("job", name), data)


def _collective(mistakes: Mistakes, where: Where, data: Plain) -> Work | None:
    section = mistakes.check(CollectiveSection, data, where)
    if section is None or not _is_algorithm(mistakes, where, section.kind, section.algorithm):
        return None
    return CollectiveWork(
        kind=section.kind,
        size_bytes=section.size_bytes,
        algorithm=section.algorithm,
        slices=section.slices,
        grouping=section.among,
        ways=section.ways,
        pause_ns=section.pause,
    )


def _messages(mistakes: Mistakes, where: Where, data: Plain) -> Work | None:
    section = mistakes.check(MessagesSection, data, where)
    if section is None:
        return None
    return MessageWork(section.pattern, section.size_bytes, section.count, section.every, section.fan_in)


def _training(mistakes: Mistakes, where: Where, data: Plain) -> Work | None:
    section = mistakes.check(TrainingSection, data, where)
    if section is None or not _is_algorithm(mistakes, where, "all-reduce", section.algorithm):
        return None
    return Training(
        compute_ns=section.compute,
        data=section.data,
        tensor=section.tensor,
        pipeline=section.pipeline,
        expert=section.expert,
        micro_batches=section.micro_batches,
        data_bytes=section.data_size,
        tensor_bytes=section.tensor_size,
        pipeline_bytes=section.pipeline_size,
        expert_bytes=section.expert_size,
        overlap=section.overlap,
        buckets=section.buckets,
        algorithm=section.algorithm,
        slices=section.slices,
        stragglers=tuple(Straggler(each.rank, each.extra) for each in section.stragglers),
    )


_WORKS: Mapping[str, Callable[[Mistakes, Where, Plain], Work | None]] = {
    "collective": _collective,
    "training": _training,
    "messages": _messages,
}
WORKS = (*_WORKS, "trace")
"""Keys of a job of which it has one: what its ranks do."""


def _is_algorithm(mistakes: Mistakes, where: Where, kind: str, algorithm: str | None) -> bool:
    """Whether a kind of collective has that algorithm; notes it when not."""
    names = [entry.algorithm for entry in COLLECTIVES.values() if entry.kind == kind]
    if algorithm is None or algorithm in names:
        return True
    hint = did_you_mean(algorithm, names, f"{kind} has")
    mistakes.add((*where, "algorithm"), f"{dotted((*where, 'algorithm'))} is {shorten(algorithm)}; {hint}")
    return False


def _restart(mistakes: Mistakes, data: Plain) -> RestartPolicy | None:
    found = None if data is None else mistakes.check(RestartSection, data, ("job", "restart"))
    if found is not None and found.spares and found.after < FINDING_NS:
        text = f"job.restart.after is {format_duration(found.after)}, and to find out which hosts are lost takes longer"
        mistakes.add(("job", "restart", "after"), f"{text}; write {format_duration(FINDING_NS)} or more")
    return None if found is None else RestartPolicy(found.after, found.checkpoint_every, found.spares)


def _saving(mistakes: Mistakes, data: Plain) -> Saving | None:
    found = None if data is None else mistakes.check(CheckpointsSection, data, ("job", "checkpoints"))
    return None if found is None else Saving(found.size_bytes, found.every, tuple(found.storage))
