"""Report of run folders in the sections that draft-calabria-bmwg-ai-fabric-training-bench asks for.

Changes when the draft asks for another section. The draft forbids criteria of acceptance: verdicts of drills are listed
after the report and are no part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from hpn.results.bmwg import measured
from hpn.results.bmwg.formulas import variation
from hpn.results.bmwg.procedures import PROCEDURES, Procedure, Value
from hpn.results.export.markdown import rows as table
from hpn.results.run.reading import Run

DRAFT = "draft-calabria-bmwg-ai-fabric-training-bench (-04, August 2026; work in progress)"


_Facts = Callable[[Run], Iterator[tuple[str, Value]]]


class Entry(NamedTuple):
    """A run and its name in the report."""

    name: str
    run: Run


@dataclass(frozen=True, slots=True)
class Section:
    """A test with the rows of all runs that are one; the first column of a row is the name of its run."""

    procedure: Procedure
    rows: tuple[tuple[Value, ...], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return ("run", *self.procedure.columns)


def sections(runs: Iterable[Entry]) -> tuple[Section, ...]:
    """Return the tests of the draft, in its order, each with what the runs tell of it."""
    found = list(runs)
    return tuple(
        Section(each, tuple((entry.name, *row) for entry in found for row in each.rows(entry.run)))
        for each in sorted(
            PROCEDURES.values(), key=lambda each: [int(part) for part in each.section.split()[0].split(".")]
        )
    )


def document(runs: Sequence[Entry]) -> Mapping[str, object]:
    """Return the report as data: exact figures, units in the names of columns."""
    found = sections(runs)
    return {
        "draft": DRAFT,
        "dut": {name: dict(_subject(run)) for name, run in runs},
        "tests": [
            {
                "section": each.procedure.section,
                "title": each.procedure.title,
                "deviations": each.procedure.deviates,
                "columns": list(each.columns),
                "rows": [list(row) for row in each.rows],
            }
            for each in found
        ],
        "repeatability": [dict(zip(_REPEAT, row, strict=True)) for row in _repeatability(runs, found)],
        "comparability": {name: dict(_comparable(run)) for name, run in runs},
        "differ": list(_differ(runs)),
        "verdicts": {name: _verdict(run) for name, run in runs},
    }


def markdown(runs: Sequence[Entry]) -> str:
    """Return the report as Markdown, in the order of the draft's section 13."""
    return "\n".join(_lines(runs)) + "\n"


def _lines(runs: Sequence[Entry]) -> Iterator[str]:
    found = sections(runs)
    yield "# Benchmark of an AI training network fabric"
    yield f"\nMethod: {DRAFT}. It defines no pass and no fail. The fabric is emulated: rates are scaled.\n"
    for at, (title, facts) in enumerate((("DUT Identification", _subject), ("Test Topology", _topology)), 1):
        yield from (f"## {at}. {title}", "", *_facts(runs, facts), "")
    yield from ("## 3. Test Configuration", "", *_facts(runs, _configuration), "")
    yield from ("## 4. Host Configuration", "", *_facts(runs, _hosts), "", "## 5. Test Results", "")
    for each in found:
        yield from _result(each)
    yield from ("## 6. Anomalies", "", *(_anomalies(runs) or ["None."]), "")
    yield from ("## 7. Repeatability Statement", "", *table(_REPEAT, _shown(_repeatability(runs, found))), "")
    yield from ("## 8. Comparability Statement", "", *_facts(runs, _comparable), "")
    different = list(_differ(runs))
    yield f"Parameters that differ: {', '.join(different)}." if different else "No parameter differs."
    yield from ("", "## Not part of the method: verdicts of the drills", "")
    yield from table(("run", "verdict"), ((name, _verdict(run)) for name, run in runs))


def _result(section: Section) -> Iterator[str]:
    procedure = section.procedure
    yield f"### {procedure.section} {procedure.title}"
    yield ""
    if section.rows:
        yield from (*table(section.columns, _shown(section.rows)), "")
    elif procedure.columns:
        yield "No run of this test.\n"
    yield f"{procedure.deviates}\n"


def _shown(rows: Iterable[Sequence[Value]]) -> Iterator[Sequence[str]]:
    return (
        ["-" if each is None else f"{each:.6g}" if isinstance(each, float) else str(each) for each in row]
        for row in rows
    )


def _facts(runs: Sequence[Entry], of: _Facts) -> list[str]:
    """Return a table of facts: a row for each set of runs that agree in all of them."""
    groups: dict[tuple[tuple[str, Value], ...], list[str]] = {}
    for name, run in runs:
        groups.setdefault(tuple(of(run)), []).append(name)
    names = list(dict.fromkeys(key for facts in groups for key, _ in facts))
    told = ((", ".join(who), *(dict(facts).get(name) for name in names)) for facts, who in groups.items())
    return table(("runs", *names), _shown(told))


def _subject(run: Run) -> Iterator[tuple[str, Value]]:
    versions, spec = run.manifest.versions, run.fabric.spec if run.fabric else None
    yield "Switch", "Linux network namespace, emulated"
    yield "ASIC", "none"
    yield "Kernel", run.manifest.kernel
    yield "NOS", f"{spec.bgp.daemon if spec else '-'} {versions.get(spec.bgp.daemon, '') if spec else ''}".strip()
    yield "hpn", f"{versions.get('hpn', '-')} {run.manifest.commit[:12]}"
    if spec is not None and run.fabric is not None:
        rates = sorted({link.rate_bps for link in run.fabric.links})
        yield "Port speed (bit/s, scaled)", ", ".join(map(str, rates))
        yield "Scale", spec.scale
        yield "Buffer", f"shared, {spec.switch.buffer} bytes" if spec.switch else f"per port, {spec.queue_ms:g} ms"
    yield "Optics, cables", "none: veth pairs"
    yield "NIC", f"hpn {run.manifest.datapath} LAG, RoCEv2 in user space"


def _topology(run: Run) -> Iterator[tuple[str, Value]]:
    fabric = run.fabric
    if fabric is None:
        return
    spec = fabric.spec
    for key in ("name", "architecture", "pods", "segments", "hosts", "rails", "aggs", "uplinks", "cores"):
        yield key, getattr(spec, key)
    yield "planes", fabric.planes
    yield "leaf oversubscription", measured.oversubscription(fabric)


def _configuration(run: Run) -> Iterator[tuple[str, Value]]:
    asked = measured.marking(run)
    yield "load balancing", measured.strategy(run)
    yield "ECN Kmin (bytes)", asked.kmin if asked else None
    yield "ECN Kmax (bytes)", asked.kmax if asked else None
    yield "ECN Pmax", asked.pmax if asked else None
    switch = run.fabric.spec.switch if run.fabric else None
    lossless = [each.priority for each in switch.in_force if each.lossless] if switch else []
    yield "PFC priorities", " ".join(map(str, lossless)) or "none"
    yield "PFC watchdog", f"{switch.watchdog.detect_ms} ms" if switch and switch.watchdog else "none"
    yield "trimming", "yes" if switch and any(each.trim for each in switch.in_force) else "no"


def _hosts(run: Run) -> Iterator[tuple[str, Value]]:
    job = run.manifest.job
    yield "transport", "RoCEv2 RC" if job else "RoCEv2-like datagrams"
    yield "collective library", f"hpn {run.manifest.versions.get('hpn', '-')}" if job else "none"
    for key in ("recovery", "congestion", "queue_pairs", "path_mtu", "window_packets", "source_ports"):
        yield key, str(job.get(key, "-"))
    yield "LACP rate", run.fabric.spec.lacp.rate if run.fabric else None


def _comparable(run: Run) -> Iterator[tuple[str, Value]]:
    found = measured.collective(run)
    job = run.metrics.job if run.metrics else None
    yield "N", found.participants if found else job.ranks if job else None
    yield "placement", "one accelerator per NIC, in order" if job else None
    yield "B_acc (bit/s)", measured.line_rate(run.fabric) if run.fabric else None
    yield "leaf oversubscription", measured.oversubscription(run.fabric) if run.fabric else None
    yield "collective", found.kind if found else None
    yield "S (bytes)", found.size_bytes if found else None
    yield "algo_factor", found.factor if found else None
    yield "transport", "RoCEv2 RC" if job else "RoCEv2-like datagrams"
    yield "load balancing", measured.strategy(run)


def _differ(runs: Sequence[Entry]) -> Iterator[str]:
    """Yield the parameters of the comparability set in which runs differ."""
    each = [dict(_comparable(run)) for _, run in runs]
    yield from (key for key in (each[0] if each else ()) if len({row[key] for row in each}) > 1)


_REPEAT = ("test", "drill", "fabric", "primary metric", "runs", "mean", "CV")


def _repeatability(runs: Sequence[Entry], found: Iterable[Section]) -> Iterator[tuple[Value, ...]]:
    """Yield, by test, the primary metric over the repeats of a drill on a fabric."""
    of = {name: (run.manifest.drill, run.manifest.fabric, str(run.manifest.digests.get("drill"))) for name, run in runs}
    for section in found:
        if not section.procedure.primary:
            continue
        at = section.columns.index(section.procedure.primary)
        firsts = {str(row[0]): row[at] for row in reversed(section.rows)}  # a run may have several rows
        groups: dict[tuple[str, str, str], list[float]] = {}
        for name, value in firsts.items():
            if isinstance(value, int | float):
                groups.setdefault(of[name], []).append(float(value))
        for (drill, fabric, _), values in groups.items():
            metric = section.procedure.primary
            yield section.procedure.section, drill, fabric, metric, len(values), fmean(values), variation(values)


def _anomalies(runs: Sequence[Entry]) -> list[str]:
    gaps = [f"* {name}: {gap.part} is missing: {gap.why}" for name, run in runs for gap in run.gaps]
    doubts = (f"* {name}: {doubt}" for name, run in runs if run.verdict for doubt in run.verdict.doubts)
    wrong = (
        f"* {name}: {run.metrics.job.wrong} wrong results"
        for name, run in runs
        if _is_wrong(run) and run.metrics and run.metrics.job
    )
    return [*gaps, *doubts, *wrong]


def _is_wrong(run: Run) -> bool:
    return bool(run.metrics and run.metrics.job and run.metrics.job.wrong)


def _verdict(run: Run) -> str:
    return run.verdict.outcome.value if run.verdict else "none"
