"""Load a ``Drill`` from a file: read it, check each section and rules across them, report all mistakes at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from hpn.failover.analysis.port_sampling import Ports, Sampling
from hpn.failover.faults import PlannedFault
from hpn.scenarios.drill.capture import Captures
from hpn.scenarios.drill.checks import check_drill
from hpn.scenarios.drill.client_section import client_of, has_client, is_alone
from hpn.scenarios.drill.expectations import expectations_of
from hpn.scenarios.drill.job import JobSpec, plan_of
from hpn.scenarios.drill.job_section import WORKS, job_of
from hpn.scenarios.drill.locate_section import Act, LocateSection, Locating
from hpn.scenarios.drill.model import Drill, Profile, Workload
from hpn.scenarios.drill.parts import Parts
from hpn.scenarios.drill.schema import (
    CaptureSection,
    DrillFile,
    SampleSection,
    WorkloadSection,
)
from hpn.scenarios.drill.spares import replacement_flows
from hpn.scenarios.drill.timeline import entries_of, timeline_of
from hpn.scenarios.drill.workload import flows_of
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import topology_from
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.files import kinds
from hpn.testbed.files.check import Mistakes
from hpn.testbed.files.document import Document, Plain, Where, read
from hpn.traffic.flows.flow import FlowSpec

SECOND = 10**9


def load_drill(path: str | Path) -> Drill:
    """Return the drill in that file. InputError with every mistake as 'file:line: problem; what to write instead'."""
    document = read(path)
    kinds.expect(document, "drill")
    return drill_from(document, Path(path).parent)


def drill_from(document: Document, base: Path) -> Drill:
    """Return the drill in a document; a topology file that it names is relative to ``base``."""
    mistakes = Mistakes(document)
    top = mistakes.check(DrillFile, document.data)
    spec, fabric = _topology(mistakes, base)
    job = job_of(mistakes, spec, base)
    workload, client = _workload(mistakes), client_of(mistakes, fabric, base)
    alone = is_alone(mistakes)
    if spec is not None and client is not None and client.NEEDS_RDMA:
        spec = spec.model_copy(update={"soft_roce": True})
    profile = _profile(document.data.get("profile"))
    timeline, faults = timeline_of(mistakes, profile, fabric)
    expectations = expectations_of(mistakes, fabric)
    sample, captures, locating = _sample(mistakes), _captures(mistakes), _locating(mistakes)
    complete = timeline is not None and len(faults) == len(entries_of(document))
    flows = () if alone and "job" not in document.data else _flows(mistakes, workload, job, fabric, faults)
    streams = None if "job" in document.data or alone else workload
    parts = Parts(
        fabric,
        streams,
        job,
        profile,
        timeline,
        faults,
        expectations,
        complete,
        flows,
        document.line,
        sample,
        captures,
        locating,
        has_client(mistakes) and (job is not None or "job" not in document.data),
        spec is not None and spec.soft_roce,
    )
    check_drill(mistakes, parts)
    if mistakes or top is None or spec is None or workload is None or timeline is None:
        raise mistakes.error()
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
        job=job,
        client=client,
        streams=job is None and not alone,
        captures=captures,
        locating=locating,
        delay_threshold_ns=top.delay_threshold,
    )


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
    data = mistakes.document.section("workload")
    section = None if data is None else mistakes.check(WorkloadSection, data, ("workload",))
    if section is None:
        return None
    return Workload(**section.model_dump(exclude={"client"}))


def _sample(mistakes: Mistakes) -> Sampling | None:
    """Return the sampling settings; a default if the section is invalid, as the drill needs samples anyway."""
    if "sample" not in mistakes.document.data:
        return None
    data = mistakes.document.section("sample")
    section = None if data is None else mistakes.check(SampleSection, data, ("sample",))
    return Sampling(section.queues, Ports(section.ports)) if section is not None else Sampling(SECOND)


def _captures(mistakes: Mistakes) -> Captures | None:
    data = mistakes.document.section("capture") if "capture" in mistakes.document.data else None
    section = None if data is None else mistakes.check(CaptureSection, data, ("capture",))
    if section is None:
        return None
    return Captures(tuple(section.links), section.before, section.after, section.snap)


def _locating(mistakes: Mistakes) -> Locating | None:
    data = mistakes.document.section("locate") if "locate" in mistakes.document.data else None
    section = None if data is None else mistakes.check(LocateSection, data, ("locate",))
    return None if section is None else Locating(section.method, Act(section.act), section.hold_ns)


def _flows(
    mistakes: Mistakes,
    workload: Workload | None,
    job: JobSpec | None,
    fabric: Fabric | None,
    faults: list[tuple[PlannedFault, Where]],
) -> tuple[FlowSpec, ...]:
    """Return the flows of the workload with replacement flows; empty if these, the fabric or a spare is invalid."""
    if fabric is None or workload is None:
        return ()
    if "job" in mistakes.document.data:
        return _of_job(mistakes, job, fabric)
    try:
        flows = flows_of(workload, fabric)
    except InputError as error:
        written = "workload" in mistakes.document.data  # an omitted section has valid defaults, so blame the fabric
        mistakes.add_all(("workload", "pattern") if written else ("topology",), error, "workload: ")
        return ()
    planned = [fault for fault, _ in faults]
    replacements = [each.fault.replacement for each in planned if each.fault.replacement is not None]
    if any(not replacement.spare for replacement in replacements):
        return ()
    return (*flows, *chain.from_iterable(replacement_flows(fabric, planned, flows)))


def _of_job(mistakes: Mistakes, job: JobSpec | None, fabric: Fabric) -> tuple[FlowSpec, ...]:
    """Return the queue pairs of the job."""
    try:
        return () if job is None else plan_of(job, fabric).flows
    except InputError as error:
        for problem, about in zip(error.problems, error.about, strict=True):
            mistakes.add(("job", *_key(mistakes.document, about)), f"job: {problem}")
        return ()


def _key(document: Document, about: Sequence[str]) -> Where:
    """Return the place in the job of a problem: its own key, else the work that causes it."""
    places: Iterator[Where] = (
        tuple(int(part) if part.isdecimal() else part for part in key.split(".")) for key in (*about, *WORKS)
    )
    return next((place for place in places if ("job", *place) in document.lines), ())


def _profile(given: Plain) -> Profile:
    return Profile.FULL if given == "full" else Profile.QUICK
