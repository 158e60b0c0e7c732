"""Reader of a drill's ``job:``: the work of its ranks, their places, and the transport of their queue pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from hpn.scenarios.drill.client_section import has_client, is_alone
from hpn.scenarios.drill.failover_section import failover_of
from hpn.scenarios.drill.job import Checkpointing, JobSpec, Work
from hpn.scenarios.drill.job_keys import (
    CheckpointsSection,
    CollectiveSection,
    JobSection,
    MessagesSection,
    RestartSection,
    TrainingSection,
)
from hpn.scenarios.drill.path_sections import rehash_of, spray_of
from hpn.scenarios.drill.trace_files import trace_of
from hpn.scenarios.drill.transport_section import transport_of
from hpn.testbed.fabric.buffers import balances, rdma_marker
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.files.check import Mistakes, did_you_mean, dotted
from hpn.testbed.files.document import Plain, Where, shorten
from hpn.testbed.files.units import format_duration
from hpn.traffic.collectives.registry import COLLECTIVES
from hpn.traffic.congestion.chosen_control import ChosenControl, written
from hpn.traffic.job.collective import CollectiveWork
from hpn.traffic.job.messages import MessageWork
from hpn.traffic.job.restart import RestartPolicy
from hpn.traffic.job.trace import TraceWork
from hpn.traffic.job.training import Straggler, Training
from hpn.traffic.multipath.settings import Multipath
from hpn.traffic.transport.transports import MULTIPATH

FINDING_NS = 1_000_000_000
"""Time to find spares: probing all hosts takes half of it, the new start at most the rest."""

_JOB = JobSpec(CollectiveWork("", 1))


def job_of(mistakes: Mistakes, spec: FabricSpec | None, base: Path) -> JobSpec | None:
    """Return the job of a document for a topology; None if there is none or it is invalid.

    The path of a trace is relative to ``base``.
    """
    if "job" not in mistakes.document.data:
        return None
    data = mistakes.document.section("job")
    section = None if data is None else mistakes.check(JobSection, data, ("job",))
    if "workload" in mistakes.document.data and not is_alone(mistakes):
        what = "leave the other keys of workload out" if has_client(mistakes) else "leave one out"
        mistakes.add(("job",), f"a drill runs a job or the streams of a workload, not both; {what}")
    if not isinstance(data, dict):
        return None
    given = data
    work, saving = _work(mistakes, given, base), _saving(mistakes, given.get("checkpoints"))
    restart = _restart(mistakes, given.get("restart"))
    _watchdog(mistakes, restart, work)
    recovery = None if section is None else failover_of(mistakes, section)
    rehash = rehash_of(mistakes, given.get("rehash"), spec, str(given.get("source_ports", _JOB.source_ports)))
    spray = None
    if section is not None:
        rehashes = section.rehash is not None
        spray = spray_of(
            mistakes, given.get("spray"), spec, section.recovery, section.window_packets, rehashes=rehashes
        )
    many = transport_of(mistakes, given, spec)
    chosen = _congestion(mistakes, given.get("congestion", _JOB.congestion_name), spec)
    if chosen is not None and chosen.kind.telemetry:
        name = chosen.base.name
        if many is not None:
            text = f"{name} compares reports of one path, and packets take many; write another congestion"
            mistakes.add(("job", "congestion"), f"job.congestion: {text}")
        elif spray is not None:
            text = f"{name} compares reports of one path, and sprayed packets take many; leave one of both out"
            mistakes.add(("job", "spray"), f"job.spray: {text}")
        elif spec is not None and balances(spec):
            text = f"{name} compares reports of one path, and switches choose among many; leave out switch.balancing"
            mistakes.add(("job", "congestion"), f"job.congestion: {text}")
    if chosen is not None and chosen.kind.many_paths and many is None:
        text = f"{chosen.base.name} takes marks from acknowledgements that name them; write transport: multipath"
        mistakes.add(("job", "congestion"), f"job.congestion: {text}")
    if section is None or work is None or chosen is None or (saving is None and section.checkpoints is not None):
        return None
    return JobSpec(
        work=work,
        checkpoints=saving,
        real_sizes=section.sizes == "real",
        congestion=chosen.values,
        congestion_name=chosen.name,
        port_recovery=recovery,
        restart=restart,
        rehash=rehash,
        spray=spray.ports if spray is not None else _JOB.spray,
        reorder_packets=spray.reorder_packets if spray is not None else _JOB.reorder_packets,
        multipath=many,
        **{**section.model_dump(exclude=_READ_APART), **_recovery(many)},
    )


def _recovery(many: Multipath | None) -> dict[str, str]:
    """Return the recovery of a transport that has one of its own."""
    return {} if many is None or MULTIPATH.recovery is None else {"recovery": MULTIPATH.recovery.value}


def _congestion(mistakes: Mistakes, given: Plain, spec: FabricSpec | None) -> ChosenControl | None:
    """Return the chosen congestion control; None if it is invalid or the topology is unknown."""
    if spec is None:
        return None
    chosen, problems = written(given, spec.nic_port_rate, rdma_marker(spec), telemetry=spec.switch is not None)
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
    return CollectiveWork(**section.model_dump())


def _messages(mistakes: Mistakes, where: Where, data: Plain) -> Work | None:
    section = mistakes.check(MessagesSection, data, where)
    if section is None:
        return None
    return MessageWork(**section.model_dump())


def _training(mistakes: Mistakes, where: Where, data: Plain) -> Work | None:
    section = mistakes.check(TrainingSection, data, where)
    if section is None or not _is_algorithm(mistakes, where, "all-reduce", section.algorithm):
        return None
    stragglers = tuple(Straggler(each.rank, each.extra_ns) for each in section.stragglers)
    return Training(**section.model_dump(exclude={"stragglers"}), stragglers=stragglers)


_WORKS: Mapping[str, Callable[[Mistakes, Where, Plain], Work | None]] = {
    CollectiveWork.KEY: _collective,
    Training.KEY: _training,
    MessageWork.KEY: _messages,
}
WORKS = (*_WORKS, TraceWork.KEY)
"""Keys for the work of the ranks; a job has exactly one of them."""
_READ_APART = {*WORKS, "checkpoints", "restart", "rehash", "spray", "sizes", "congestion", "port_recovery", "transport"}
"""Keys that need more than their own model."""


def _is_algorithm(mistakes: Mistakes, where: Where, kind: str, algorithm: str | None) -> bool:
    """Return True if a kind of collective has that algorithm; else note the mistake."""
    names = [entry.algorithm for entry in COLLECTIVES.values() if entry.kind == kind]
    if algorithm is None or algorithm in names:
        return True
    hint = did_you_mean(algorithm, names, f"{kind} has")
    mistakes.add((*where, "algorithm"), f"{dotted((*where, 'algorithm'))} is {shorten(algorithm)}; {hint}")
    return False


def _restart(mistakes: Mistakes, data: Plain) -> RestartPolicy | None:
    found = None if data is None else mistakes.check(RestartSection, data, ("job", "restart"))
    if found is not None and found.spares and found.after_ns < FINDING_NS:
        text = (
            f"job.restart.after is {format_duration(found.after_ns)}, and to find out which hosts are lost takes longer"
        )
        mistakes.add(("job", "restart", "after"), f"{text}; write {format_duration(FINDING_NS)} or more")
    return None if found is None else RestartPolicy(**found.model_dump())


def _watchdog(mistakes: Mistakes, policy: RestartPolicy | None, work: Work | None) -> None:
    """Note a watchdog that ends a job for its computing."""
    if policy is None or policy.watchdog_ns is None or not isinstance(work, Training):
        return
    longest_ns = work.compute_ns + max((each.extra_ns for each in work.stragglers), default=0)
    if policy.watchdog_ns <= longest_ns:
        text = f"job.restart.watchdog is {format_duration(policy.watchdog_ns)}, and a rank computes that long alone"
        mistakes.add(("job", "restart", "watchdog"), f"{text}; write more than {format_duration(longest_ns)}")


def _saving(mistakes: Mistakes, data: Plain) -> Checkpointing | None:
    found = None if data is None else mistakes.check(CheckpointsSection, data, ("job", "checkpoints"))
    return None if found is None else Checkpointing(found.size_bytes, found.every_ns, tuple(found.storage))
