"""A training iteration: compute, and the communication of tensor, pipeline, expert and data parallelism. PURE.

Ranks count tensor first, then data, then pipeline (Megatron's order: Narayanan et al., "Efficient large-scale language
model training on GPU clusters using Megatron-LM", 2021). HPN's example (section 2.1) is GPT-3 175B with TP 8, PP 8, DP
512. It exchanges 560 MB in a tensor group (inside a host), 6 MB between pipeline stages and 5.5 GB in a data group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from hpn.testbed.errors import InputError
from hpn.traffic.collectives.compose import Composer
from hpn.traffic.collectives.locations import Place
from hpn.traffic.collectives.registry import Collective, collective
from hpn.traffic.job.job import Site

_FORWARD = 1 / 3
"""Share of a micro-batch's compute; the backward pass is two matrix products for each of the forward pass."""


@dataclass(frozen=True, slots=True)
class Straggler:
    """A rank that computes ``extra_ns`` longer in every iteration, with its first micro-batch."""

    rank: int
    extra_ns: int


@dataclass(frozen=True, slots=True)
class Training:
    """One iteration of all ranks, of which there are tensor x data x pipeline.

    ``compute_ns``: of a rank in the complete iteration. ``tensor_bytes``: AllReduce after each forward and backward
    pass of a micro-batch. ``expert_bytes``: each of the two all-to-alls after that (tokens to their experts and back).
    ``pipeline_bytes``: from stage to stage for a micro-batch. ``data_bytes``: AllReduce of the gradients. ``overlap``:
    gradients go in ``buckets``, each as soon as the last backward pass has produced it; otherwise all at once after
    that pass. Pipeline schedule: one forward, one backward.
    """

    KEY: ClassVar[str] = "training"  # of a job in drill files

    compute_ns: int
    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    expert: int = 1  # ranks of a data group that share experts
    micro_batches: int = 1
    data_bytes: int = 0
    tensor_bytes: int = 0
    pipeline_bytes: int = 0
    expert_bytes: int = 0
    overlap: bool = True
    buckets: int = 4
    algorithm: str = "ring"  # of the gradients' AllReduce
    slices: int = 4
    stragglers: tuple[Straggler, ...] = ()

    def compose(self, composer: Composer, site: Site) -> None:
        """Write the ranks' operations. InputError when the degrees do not fit the site or each other."""
        _check(self, site.places)
        layout = _Layout(self, composer, site)
        for stage, task in _schedule(self.pipeline, self.micro_batches):
            layout.run(stage, task)


@dataclass(frozen=True, slots=True)
class _Task:
    """The forward or backward pass of one micro-batch in a stage."""

    forward: bool
    micro_batch: int


class _Layout:
    """Writer of an iteration; ``_last`` holds, by rank, the operations that its next pass comes after."""

    def __init__(self, training: Training, composer: Composer, site: Site) -> None:
        self._training, self._composer, self._site = training, composer, site
        self._last: dict[int, tuple[int, ...]] = {}
        self._arrived: dict[tuple[int, _Task], int] = {}  # by rank: what a pass needs from the neighbouring stage
        self._extra = {straggler.rank: site.scale.ns(straggler.extra_ns) for straggler in training.stragglers}
        self._in_host = collective("all-reduce", "ring")
        self._exchange = collective("all-to-all", "pairwise")

    def run(self, stage: int, task: _Task) -> None:
        """Write a pass of all ranks of a stage."""
        training, ranks = self._training, _ranks_of_stage(self._training, stage)
        gradients = not task.forward and task.micro_batch == training.micro_batches - 1
        parts = training.buckets if gradients and training.overlap else 1
        made = [self._compute(ranks, task, part, parts) for part in range(parts)]
        self._together(self._in_host, _tensor_groups(training, ranks), training.tensor_bytes, f"tensor {_name(task)}")
        for way in ("to experts", "back"):
            groups = _expert_groups(training, ranks)
            self._together(self._exchange, groups, training.expert_bytes, f"expert {_name(task)} {way}")
        self._pass_on(ranks, stage, task)
        if gradients:
            self._reduce(ranks, made)

    def _compute(self, ranks: Sequence[int], task: _Task, part: int, parts: int) -> Mapping[int, int]:
        """Write one part of a pass at each rank; return the last operations. Parts add up to the compute time."""
        training = self._training
        whole_ns = self._site.scale.ns(training.compute_ns)
        forward_ns = round(_FORWARD * whole_ns)
        pass_ns = _share(
            forward_ns if task.forward else whole_ns - forward_ns, task.micro_batch, training.micro_batches
        )
        label = _name(task) if parts == 1 else f"{_name(task)}.{part}"
        ends = {}
        for rank in ranks:
            ns = _share(pass_ns, part, parts)
            if task == _Task(forward=True, micro_batch=0):
                ns += self._extra.get(rank, 0)
            arrived = self._arrived.get((rank, task))
            after = self._last.get(rank, ()) if arrived is None else (*self._last.get(rank, ()), arrived)
            ends[rank] = self._composer.compute(rank, ns, label, after)
            self._last[rank] = (ends[rank],)
        return ends

    def _together(self, chosen: Collective, groups: Sequence[Sequence[int]], real_bytes: int, label: str) -> None:
        """Write a collective that the ranks' next steps wait for."""
        for group in groups:
            if real_bytes and len(group) > 1:
                size, after = self._site.size(real_bytes), self._last
                for rank, end in self._composer.collective(chosen, group, size, label, after=after).items():
                    self._last[rank] = (end,)

    def _pass_on(self, ranks: Sequence[int], stage: int, task: _Task) -> None:
        """Send activations to the next stage, or gradients to the one before, while the next pass runs."""
        training = self._training
        to = stage + 1 if task.forward else stage - 1
        if not 0 <= to < training.pipeline:
            return
        for source in ranks:
            target = source + (to - stage) * training.tensor * training.data
            after = {source: self._last[source]}
            size = self._site.size(training.pipeline_bytes)
            ends = self._composer.message(source, target, size, f"pipeline {_name(task)}", after=after)
            self._arrived[target, task] = ends[target]

    def _reduce(self, ranks: Sequence[int], made: Sequence[Mapping[int, int]]) -> None:
        """Sum gradients, bucket by bucket in order of production."""
        training = self._training
        chosen = collective("all-reduce", training.algorithm)
        for group in _data_groups(training, ranks) if training.data > 1 else ():
            before: dict[int, tuple[int, ...]] = dict.fromkeys(group, ())
            for bucket, ready in enumerate(made):
                after = {
                    rank: (*before[rank], ready[rank] if training.overlap else self._last[rank][0]) for rank in group
                }
                size = self._site.size(_share(training.data_bytes, bucket, len(made)))
                ends = self._composer.collective(
                    chosen, group, size, f"data {bucket}", slices=training.slices, after=after
                )
                before = {rank: (end,) for rank, end in ends.items()}


def _name(task: _Task) -> str:
    return f"{'forward' if task.forward else 'backward'} {task.micro_batch}"


def _share(total: int, part: int, parts: int) -> int:
    return total * (part + 1) // parts - total * part // parts


def _schedule(stages: int, micro_batches: int) -> Iterator[tuple[int, _Task]]:
    """Yield passes by stage in an order that respects their inputs: one forward, one backward (Megatron's 1F1B)."""
    due = [_passes(stages, stage, micro_batches) for stage in range(stages)]
    done: set[tuple[int, _Task]] = set()
    at = [0] * stages
    while any(at[stage] < len(due[stage]) for stage in range(stages)):
        for stage in range(stages):
            while at[stage] < len(due[stage]):
                task = due[stage][at[stage]]
                before = stage - 1 if task.forward else stage + 1
                if 0 <= before < stages and (before, task) not in done:
                    break
                done.add((stage, task))
                at[stage] += 1
                yield stage, task


def _passes(stages: int, stage: int, micro_batches: int) -> list[_Task]:
    """Return the passes of a stage: as many forward as stages follow it, then backward and forward in turn."""
    ahead = min(stages - 1 - stage, micro_batches)
    order = [_Task(True, at) for at in range(ahead)]
    for at in range(micro_batches):
        if ahead + at < micro_batches:
            order.append(_Task(True, ahead + at))
        order.append(_Task(False, at))
    return order


def _ranks_of_stage(training: Training, stage: int) -> range:
    size = training.tensor * training.data
    return range(stage * size, (stage + 1) * size)


def _tensor_groups(training: Training, ranks: Sequence[int]) -> list[Sequence[int]]:
    return [ranks[at : at + training.tensor] for at in range(0, len(ranks), training.tensor)]


def _data_groups(training: Training, ranks: Sequence[int]) -> list[Sequence[int]]:
    return [ranks[at :: training.tensor] for at in range(training.tensor)]


def _expert_groups(training: Training, ranks: Sequence[int]) -> list[Sequence[int]]:
    size = training.expert
    return [group[at : at + size] for group in _data_groups(training, ranks) for at in range(0, len(group), size)]


def _check(training: Training, places: Sequence[Place]) -> None:
    problems = [*_degrees(training, places), *_sizes(training)]
    problems += [
        (f"straggler {straggler.rank} is none of the ranks 0 to {len(places) - 1}", (f"stragglers.{at}.rank",))
        for at, straggler in enumerate(training.stragglers)
        if not 0 <= straggler.rank < len(places)
    ]
    if problems:
        raise InputError.of_each(
            [(f"training: {problem}", [f"training.{key}" for key in keys]) for problem, keys in problems]
        )


_Problem = tuple[str, tuple[str, ...]]
"""Problem text, and the keys of ``training`` that it is about."""


def _degrees(training: Training, places: Sequence[Place]) -> Iterator[_Problem]:
    """Yield the first mismatch between the degrees of parallelism and the job's ranks."""
    degrees = (training.tensor, training.data, training.pipeline, training.expert)
    if min(*degrees, training.micro_batches, training.buckets, training.compute_ns) < 1:
        yield "degrees of parallelism, micro-batches, buckets and compute are at least 1", ()
    elif training.tensor * training.data * training.pipeline != len(places):
        text = (
            f"tensor {training.tensor} x data {training.data} x pipeline {training.pipeline} is"
            f" {training.tensor * training.data * training.pipeline} ranks; the job has {len(places)} GPUs"
        )
        yield text, ("data", "tensor", "pipeline")
    elif training.data % training.expert:
        yield f"expert {training.expert} does not divide data {training.data}", ("expert",)
    elif any(len({places[rank].host for rank in group}) > 1 for group in _tensor_groups(training, range(len(places)))):
        text = (
            f"tensor {training.tensor} reaches beyond a host; take a divisor of the GPUs of one, as its traffic"
            " belongs on NVLink"
        )
        yield text, ("tensor",)


def _sizes(training: Training) -> Iterator[_Problem]:
    """Yield the problems of empty messages and buckets."""
    if training.pipeline > 1 and training.pipeline_bytes < 1:
        yield "a pipeline needs pipeline_size of at least 1 B", ("pipeline_size", "pipeline")
    if training.data > 1 and training.data_bytes < training.buckets:
        text = f"gradients need data_size of at least 1 B for each of {training.buckets} buckets"
        yield text, ("data_size", "buckets", "data")
