"""From a drill file to a ``Drill``: read, check every section and what they mean together, all mistakes at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from typing import cast

from failover.analysis.ports import Ports, Sampling
from failover.faults import FAULTS, Fault, PlannedFault, make, parameters, settled
from results.repeats.statistic import Statistic
from scenarios.drill.checks import Parts, check_drill
from scenarios.drill.model import Drill, Profile, Timeline, Workload
from scenarios.drill.schema import (
    DrillFile,
    FaultEntry,
    SampleSection,
    TimelineSection,
    WorkloadSection,
    expectation_model,
    fault_model,
)
from scenarios.drill.spares import assigned, stand_ins
from scenarios.drill.special import order, scope_of, untouched
from scenarios.drill.workload import flows_of
from scenarios.expect.expectation import At, Bound, Expectation, Flows
from scenarios.expect.metric import Metric, Shape
from scenarios.expect.metrics import METRICS
from testbed.errors import InputError
from testbed.fabric.build import build
from testbed.fabric.load import topology_from
from testbed.fabric.model import Fabric
from testbed.fabric.spec import FabricSpec
from testbed.files.check import Mistakes, did_you_mean, dotted
from testbed.files.document import Document, Plain, Where, read, shorten
from traffic.flow import FlowSpec

SECOND = 10**9


def load_drill(path: str | Path) -> Drill:
    """The drill in that file. InputError with every mistake as 'file:line: what was wrong; what to write instead'."""
    return drill_from(read(path), Path(path).parent)


def drill_from(document: Document, base: Path) -> Drill:
    """The drill in a document; a topology file it names is looked for below ``base``."""
    mistakes = Mistakes(document)
    top = mistakes.check(DrillFile, document.data)
    spec, fabric = _topology(mistakes, base)
    workload = _workload(mistakes)
    profile = _profile(document.data.get("profile"))
    timeline, faults = _timeline(mistakes, profile, fabric)
    expectations = _expectations(mistakes)
    sample = _sample(mistakes)
    complete = timeline is not None and len(faults) == len(_entries(document))
    flows = _flows(mistakes, workload, fabric, faults)
    parts = Parts(fabric, workload, profile, timeline, faults, expectations, complete, flows, document.line, sample)
    check_drill(mistakes, parts)
    mistakes.raise_any()
    assert top is not None
    assert spec is not None
    assert workload is not None
    assert timeline is not None
    return Drill(
        name=top.drill,
        summary=top.summary,
        description=top.description.strip(),
        topology=spec,
        workload=workload,
        profile=profile,
        timeline=timeline,
        expectations=tuple(e for e, _ in expectations),
        source=document.name,
        sample=sample,
        delay_threshold_ns=top.delay_threshold,
    )


def _section(document: Document, key: str) -> dict[str, Plain] | None:
    """A section's data; None when it is not a mapping (which the model of the whole file reports)."""
    data = document.data.get(key, {})
    return data if isinstance(data, dict) else None


def _topology(mistakes: Mistakes, base: Path) -> tuple[FabricSpec | None, Fabric | None]:
    if "topology" not in mistakes.document.data:
        return None, None
    spec = topology_from(mistakes, ("topology",), base)
    if spec is None:
        return None, None
    try:
        return spec, build(spec)
    except InputError as error:
        mistakes.add_all(("topology",), error, "topology: ")
        return spec, None


def _workload(mistakes: Mistakes) -> Workload | None:
    data = _section(mistakes.document, "workload")
    section = None if data is None else mistakes.check(WorkloadSection, data, ("workload",))
    if section is None:
        return None
    return Workload(**section.model_dump())


def _sample(mistakes: Mistakes) -> Sampling | None:
    """What is to be sampled; something also when the section is wrong, as whoever wrote it wants samples."""
    if "sample" not in mistakes.document.data:
        return None
    data = _section(mistakes.document, "sample")
    section = None if data is None else mistakes.check(SampleSection, data, ("sample",))
    return Sampling(section.queues, Ports(section.ports)) if section is not None else Sampling(SECOND)


def _flows(
    mistakes: Mistakes, workload: Workload | None, fabric: Fabric | None, faults: list[tuple[PlannedFault, Where]]
) -> tuple[FlowSpec, ...]:
    """The flows of the workload and their stand-ins; none when something is wrong with it, the fabric or a spare."""
    if workload is None or fabric is None:
        return ()
    try:
        flows = flows_of(workload, fabric)
    except InputError as error:
        written = "workload" in mistakes.document.data  # a section left out is right by itself: blame the fabric
        mistakes.add_all(("workload", "pattern") if written else ("topology",), error, "workload: ")
        return ()
    planned = [fault for fault, _ in faults]
    replacements = [each.fault.replacement for each in planned if each.fault.replacement is not None]
    if any(not replacement.spare for replacement in replacements):
        return ()
    return (*flows, *chain.from_iterable(stand_ins(fabric, planned, flows)))


def _profile(given: Plain) -> Profile:
    return Profile.FULL if given == "full" else Profile.QUICK


def _timeline(
    mistakes: Mistakes, profile: Profile, fabric: Fabric | None
) -> tuple[Timeline | None, list[tuple[PlannedFault, Where]]]:
    data = _section(mistakes.document, "timeline")
    section = None if data is None else mistakes.check(TimelineSection, data, ("timeline",))
    entries = _entries(mistakes.document)
    faults: list[tuple[PlannedFault, Where]] = []
    for at, (entry, default_id) in enumerate(zip(entries, _ids(entries), strict=True)):
        where: Where = ("timeline", "faults", at)
        fault = _fault(mistakes, where, entry, default_id, fabric) if isinstance(entry, dict) else None
        faults += [] if fault is None else [(fault, where)]
    faults = _with_spares(mistakes, fabric, faults)
    if section is None:
        return None, faults
    settle_ns = section.settle
    if settle_ns is None:
        settle_ns = profile.validation_ns + SECOND if faults else 0
    return Timeline(section.healthy, tuple(fault for fault, _ in faults), settle_ns), faults


def _with_spares(
    mistakes: Mistakes, fabric: Fabric | None, faults: list[tuple[PlannedFault, Where]]
) -> list[tuple[PlannedFault, Where]]:
    """The faults with the spares that take over; one that can have none is noted and keeps none."""
    if fabric is None:
        return faults
    found = assigned(fabric, [fault for fault, _ in faults])
    for at, problem in found.problems.items():
        planned, where = faults[at]
        replacement = planned.fault.replacement
        key = (*where, "spare" if replacement is not None and replacement.spare else "fault")
        mistakes.add(key, f"{dotted(where)}: {problem}")
    return [(fault, where) for fault, (_, where) in zip(found.faults, faults, strict=True)]


def _entries(document: Document) -> list[Plain]:
    """The faults as written; empty when they are not a list (which the model of the timeline reports)."""
    faults = (_section(document, "timeline") or {}).get("faults")
    return faults if isinstance(faults, list) else []


def _ids(entries: list[Plain]) -> list[str]:
    """The id of every fault: its own, or its kind, numbered where there are several of that kind."""
    kinds = [str(e.get("fault")) if isinstance(e, dict) and "id" not in e else "" for e in entries]
    many = Counter(kinds)
    seen: Counter[str] = Counter()
    found = []
    for kind in kinds:
        seen[kind] += 1
        found.append(f"{kind}-{seen[kind]}" if many[kind] > 1 else kind)
    return found


def _fault(
    mistakes: Mistakes, where: Where, entry: dict[str, Plain], default_id: str, fabric: Fabric | None
) -> PlannedFault | None:
    kind = entry.get("fault")
    if not isinstance(kind, str) or kind not in FAULTS:
        if "fault" in entry:
            hint = did_you_mean(str(kind), FAULTS, "write one of")
            mistakes.add((*where, "fault"), f"{dotted((*where, 'fault'))} is {shorten(kind)}; {hint}")
        else:
            mistakes.add(where, f"'fault' is missing in {dotted(where)}; add 'fault: link-down' or another of its kind")
        return None
    section = mistakes.check(fault_model(kind), entry, where)
    if section is None:
        return None
    values = section.model_dump()
    arguments = {name: values[p.key] for name, p in parameters(FAULTS[kind]).items()}
    fault = _settled(make(kind, section.target, arguments), fabric)
    return PlannedFault(section.id or default_id, fault, section.at, _restored_after(section))


def _settled(fault: Fault, fabric: Fabric | None) -> Fault:
    """The fault as it meets the fabric; as it is when it cannot, which ``scenarios.drill.checks`` explains."""
    try:
        return fault if fabric is None else settled(fault, fabric)
    except InputError:
        return fault


def _restored_after(section: FaultEntry) -> int | None:
    return cast("int | None", getattr(section, "for_ns", None))


def _expectations(mistakes: Mistakes) -> list[tuple[Expectation, Where]]:
    entries = mistakes.document.data.get("expect")
    found: list[tuple[Expectation, Where]] = []
    for at, entry in enumerate(entries if isinstance(entries, list) else []):
        if isinstance(entry, dict):
            found += _expectation(mistakes, ("expect", at), entry)
    return found


def _expectation(mistakes: Mistakes, where: Where, entry: dict[str, Plain]) -> list[tuple[Expectation, Where]]:
    if len(entry) != 1:
        mistakes.add(where, f"{dotted(where)} holds {len(entry)} keys; write one '- metric: {{...}}' entry for each")
    found: list[tuple[Expectation, Where]] = []
    for key, given in entry.items():
        inside = (*where, key)
        if key in METRICS:
            found += _READ[METRICS[key].shape](mistakes, inside, METRICS[key], given)
        else:
            hint = did_you_mean(key, METRICS, "metrics are")
            mistakes.add(inside, f"unknown metric {shorten(key)} in {dotted(where)}; {hint}")
    return found


def _yes_or_no(mistakes: Mistakes, where: Where, metric: Metric, given: Plain) -> list[tuple[Expectation, Where]]:
    if not isinstance(given, bool):
        mistakes.add(where, f"{dotted(where)} is {shorten(given)}; write yes or no")
        return []
    return [(Expectation(metric, Bound.AT_LEAST, float(given), line=mistakes.document.line(where)), where)]


def _limits(mistakes: Mistakes, where: Where, metric: Metric, given: Plain) -> list[tuple[Expectation, Where]]:
    section = mistakes.check(expectation_model(metric), given, where)
    if section is None:
        return []
    values = section.model_dump(exclude_none=True)
    bounds = [bound for bound in Bound if bound.value in values]
    if not bounds:
        keys = ", ".join(bound.value for bound in Bound)
        mistakes.add(where, f"{dotted(where)} has no limit; add one of {keys}")
    return [
        (
            Expectation(
                metric,
                bound,
                float(values[bound.value]),
                Flows(values.get("flows", "all")),
                At(values.get("edge", "any")),
                values.get("fault"),
                mistakes.document.line(where),
                scope_of(values),
                over=Statistic(values["over_repeats"]),
            ),
            (*where, bound.value),
        )
        for bound in bounds
    ]


_READ: Mapping[Shape, Callable[[Mistakes, Where, Metric, Plain], list[tuple[Expectation, Where]]]] = {
    Shape.LIMITS: _limits,
    Shape.YES_NO: _yes_or_no,
    Shape.PARTS: untouched,
    Shape.EVENTS: order,
}
"""What reads the shape in which a metric is written; notes mistakes and gives nothing when it is not right."""
