"""Terminal summary of a run: verdict, outages and phases per edge, expectations with their margins. Pure.

Changes when the first output that a reader sees changes. Every outage is shown with its resolution and the noise floor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import starmap

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hpn.failover.analysis.intervals import downtime_interval, loop_lag_ms
from hpn.failover.analysis.model import DrillMetrics, EdgeKind, EdgeResult, Phase
from hpn.failover.analysis.phases import converged
from hpn.failover.analysis.phrases import packets
from hpn.failover.analysis.scattered import recovery
from hpn.results.judge.repeats.random_faults import one_draw
from hpn.results.judge.verdict import Outcome, Verdict
from hpn.results.run.drill import AskedDrill
from hpn.results.run.manifest import Manifest
from hpn.results.text.bounds import at_least
from hpn.results.text.buffers import buffers_table
from hpn.results.text.checks import checks_table
from hpn.results.text.harm import cost_told
from hpn.results.text.impairment import impairment_table
from hpn.results.text.job import job_parts
from hpn.results.text.outages import outage_notes, outages_table
from hpn.results.text.ports import balance_lines, course_table, ports_table
from hpn.results.text.tables import table
from hpn.results.text.transfers import transfers_table
from hpn.results.text.values import milliseconds
from hpn.testbed.fabric.profiles import LAB
from hpn.testbed.lag.datapaths import DATAPATHS
from hpn.testbed.vm.engines import ENGINES

_STYLE = {Outcome.PASS: "bold green", Outcome.FAIL: "bold red", Outcome.INCONCLUSIVE: "bold yellow"}
_CONVERGED = "converged"
_LONG_SWITCH_MS = 1_000
_WAY_OUT = "  way out: --tries 3, --slow 2 (half the traffic), or --engine uml-virtual-time (CPU load cannot touch it)"


def summary(
    manifest: Manifest, metrics: DrillMetrics | None, verdict: Verdict, asked: AskedDrill | None = None
) -> Group:
    """Return the summary of one run; ``metrics`` is None if it did not get as far as measuring."""
    parts: list[RenderableType] = [_headline(manifest, verdict)]
    parts += [Text(f"  {line}") for line in (cost_told(verdict, metrics), one_draw(manifest, asked)) if line]
    parts += [Text(f"  cause: {line}") for line in verdict.causes]
    parts += [Text(f"  because {reason}") for reason in verdict.reasons]
    parts += [Text(_WAY_OUT)] if verdict.doubts and _on_this_kernel(manifest) else []
    parts += [Text(f"  note: {line}") for line in (*verdict.notes, *(metrics.unexplained if metrics else ()))]
    if metrics is not None and metrics.job is not None:
        parts += [Text(), *job_parts(metrics, metrics.job)]
    if metrics is not None and metrics.beside is not None:
        parts += [Text(), *job_parts(metrics, metrics.beside)]
    if metrics is not None and metrics.edges and metrics.has_streams:
        delays = impairment_table(metrics)
        parts += [Text(), outages_table(metrics), *outage_notes(metrics)]
        parts += [] if delays is None else [Text(), delays]
    if metrics is not None and metrics.edges:
        parts += [Text(), _phases(metrics), *_notes(metrics), *_of_lag(manifest, metrics)]
        parts += _downtimes(metrics)
    if metrics is not None and metrics.transfers is not None:
        parts += [Text(), transfers_table(metrics, metrics.transfers)]
    if metrics is not None and metrics.ports is not None:
        course = course_table(metrics.ports)
        parts += [Text(), ports_table(metrics.ports), *map(Text, balance_lines(metrics.ports))]
        parts += [] if course is None else [Text(), course]
    if metrics is not None and metrics.buffers is not None:
        parts += [Text(), buffers_table(metrics.buffers)]
    if verdict.checks:
        parts += [Text(), checks_table(verdict.checks)]
    if metrics is not None:
        parts += [Text(), *(Text(line) for line in _method(metrics))]
    return Group(*parts)


def _on_this_kernel(manifest: Manifest) -> bool:
    """Return True if the run shares this machine's kernel, so that the machine's load affects it."""
    spec = ENGINES.get(manifest.engine)
    return spec is not None and not spec.own_kernel


def _headline(manifest: Manifest, verdict: Verdict) -> Text:
    line = Text(verdict.outcome.value.upper(), style=_STYLE[verdict.outcome])
    repeat = f" #{manifest.repeat}" if manifest.repeat else ""
    repeat += f" (try {manifest.attempt})" if manifest.attempt > 1 else ""
    facts = [f"{manifest.datapath} datapath", f"{manifest.engine} engine", manifest.accelerator]
    facts += [f"Linux {manifest.kernel}", f"{manifest.profile} profile" if manifest.profile else ""]
    facts += [f"{manifest.host_profile} hosts"] if manifest.host_profile not in {"", LAB} else []
    facts += [f"phase {manifest.phase}: faults {manifest.phase_ms:.0f} ms later"] if manifest.phase > 1 else []
    line.append(f"  {manifest.drill}{repeat} on {manifest.fabric} ({', '.join(filter(None, facts))})", style="default")
    return line


def _phases(metrics: DrillMetrics) -> Table:
    named = [_named(result, metrics) for result in metrics.edges]
    columns = ("edge", *(f">{name}" for name, _ in named[0]))
    rows = [(result.edge.label, *starmap(_phase, of)) for result, of in zip(metrics.edges, named, strict=True)]
    return table("phases in ms since the injection (switch: since detect; converged: the whole lab)", columns, rows)


def _phase(name: str, phase: Phase) -> str:
    open_ended = name == _CONVERGED and phase.ms is not None and bool(phase.reason)
    return at_least(milliseconds(phase.ms), open_ended=open_ended)


def _named(result: EdgeResult, metrics: DrillMetrics) -> Sequence[tuple[str, Phase]]:
    """Return all phases; 'recover' only for streams.

    A job retransmits losses, and its iterations show the recovery.
    """
    phases = result.phases
    return (
        ("detect", phases.detect),
        ("switch", phases.switch),
        ("converge", phases.converge),
        ("path first", phases.path_first),
        ("path last", phases.path_last),
        *([("recover", recovery(metrics, result))] if metrics.has_streams else []),
        (_CONVERGED, converged(result, metrics.settings.validation_s)),
    )


def _notes(metrics: DrillMetrics) -> Iterable[Text]:
    """Yield the reasons for missing or partial phases, each once, with the first edge it applies to."""
    found: dict[tuple[str, str], list[str]] = {}
    for result in metrics.edges:
        names: dict[str, list[str]] = {}
        for name, phase in _named(result, metrics):
            if phase.reason:
                names.setdefault(phase.reason, []).append(name)
        for reason, phases in names.items():
            found.setdefault((", ".join(phases), reason), []).append(result.edge.label)
    for (phase_names, reason), labels in found.items():
        more = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
        yield Text(f"  {phase_names}: {reason} ({labels[0]}{more})", style="dim")


def _downtimes(metrics: DrillMetrics) -> Iterable[Text]:
    """Yield the downtime of jobs whose hosts were replaced."""
    for result in metrics.edges:
        found = result.downtime
        if found is None:
            continue
        if found.ms is None:
            yield Text(f"  job downtime: it did not go on, {found.reason} ({result.edge.label})")
            continue
        yield Text(
            f"  job downtime {milliseconds(found.ms)} ms ({downtime_interval(found.ms, found, metrics).text}): death to"
            f" {metrics.settings.recovery_packets} packets in order of the last of {found.stand_ins} replacement flows"
            f" ({result.edge.label})"
        )


def _of_lag(manifest: Manifest, metrics: DrillMetrics) -> Iterable[Text]:
    """Yield what the LAG's time at a repair consists of, where it took long: it decides the outage without a spare."""
    kind = DATAPATHS.get(manifest.datapath)
    repairs = [edge.phases for edge in metrics.edges if edge.edge.kind is EdgeKind.REPAIR]
    took_ms = max((phases.switch.ms for phases in repairs if phases.switch.ms is not None), default=0.0)
    if kind is not None and took_ms >= _LONG_SWITCH_MS:
        yield Text(f"  switch at a repair, {milliseconds(took_ms)} ms: {kind.at_repair}")


def _method(metrics: DrillMetrics) -> Iterable[str]:
    yield from _of_streams(metrics) if metrics.has_streams else ()
    host = metrics.host
    if host is not None:
        waited = "" if host.run_delay_mean_pct is None else f", own processes waited {host.run_delay_mean_pct:.1f} %"
        yield (
            f"host: {host.idle_mean_pct:.0f} % idle, {host.steal_mean_pct:.1f} % stolen{waited}, "
            f"worst event-loop lag {milliseconds(host.loop_lag_max_ms)} ms"
        )


def _of_streams(metrics: DrillMetrics) -> Iterable[str]:
    settings, noise = metrics.settings, metrics.noise
    yield (
        f"noise floor {milliseconds(noise.noise_floor_ms)} ms ({noise.pseudo_edges} pseudo-edges in "
        f"{noise.window_s:g} s without a fault, {packets(noise.lost)} lost), resolution "
        f"{milliseconds(metrics.resolution_ms)} ms, largest sender pause {milliseconds(noise.send_gap_max_ms)} ms then,"
        f" {milliseconds(max((edge.send_gap_ms for edge in metrics.edges), default=0.0))} ms at an edge"
    )
    skew_ms = max((edge.edge.skew_ms for edge in metrics.edges), default=0.0)
    yield (
        "intervals: an outage lay between the packets around it, give or take noise floor and clock; events are stamped"
        f" late by up to {milliseconds(loop_lag_ms(metrics))} ms (event loop), injections took up to "
        f"{milliseconds(skew_ms)} ms"
    )
    few = " (fewer than the 16 that RFC 6414 asks for)" if metrics.few_flows else ""
    later = sum(flow.replaces is not None for flow in metrics.flows)
    stand_ins = f" and {later} replacement flows" if later else ""
    yield (
        f"{metrics.flow_count} flows{stand_ins}{few}; recovered = {settings.recovery_packets} packets in order, then "
        f"{settings.validation_s:g} s without loss; holes without {settings.merge_packets} in order between them "
        "are one outage"
    )
    if metrics.transfers is not None:
        plan = metrics.transfers.plan
        yield (
            f"transfers: {plan.packets} packets in {milliseconds(plan.sending_ms)} ms, every"
            f" {milliseconds(plan.every_ms)} ms; planned pauses count neither for outages nor as pauses of senders, and"
            " goodput is that of the time in which was to be sent; a recovery is seen up to a pause late"
        )
