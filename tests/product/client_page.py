"""The table own model / gloo / rxe as Markdown. PURE."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hpn.results.run.manifest import Manifest
from hpn.results.verdict import Outcome, Verdict
from tests.product.client_cells import (
    ASKED,
    GLOO_TIMEOUT,
    HEALTHY_S,
    IB_TIMEOUT,
    JOBS,
    RETRIES,
    SCALE,
    SIZE,
    Course,
    Fault,
)
from tests.product.client_loss import Loss

TOLD = f"""\
# What faults cost a job: own model, gloo, Soft-RoCE

Written by `make client-table`, which keeps the runs that it has made. Why jobs differ is in
[clients.md](clients.md#the-same-faults-for-three-jobs).

Four ranks, one in each host, sum {SIZE} by a ring all-reduce again and again, without a pause. *own model* is
`job:`, *gloo* PyTorch's over TCP (`client: torch`, `timeout: {GLOO_TIMEOUT}`), *rxe* the kernel's own queue pairs
(`client: verbs`, `work: all-reduce`). Queue pairs have `ib_timeout: {IB_TIMEOUT}`, `retry_count: {RETRIES}`.
The faults of a network come one after the other, 12 to 20 s apart, the first after {HEALTHY_S} s and the phase's shift.
A cell has the iterations lost, and the longest time without one, less the usual time from one to the next; or when the
job died, from the fault on. Where phases differ both ends are told. Not told: no iteration had ended since the fault
before.
"""


@dataclass(frozen=True, slots=True)
class Made:
    """A run of the table."""

    course: Course
    manifest: Manifest
    verdict: Verdict
    losses: Mapping[str, Loss]  # by fault


def page(runs: Sequence[Made]) -> str:
    """All of it."""
    usual = "Milliseconds from the end of an iteration to that of the next, without a fault:"
    parts = (TOLD, *_facts(runs), "", *_losses(runs), "", usual, "", *_periods(runs), *_doubted(runs))
    return "\n".join(parts) + "\n"


def _facts(runs: Sequence[Made]) -> Iterator[str]:
    """What must be the same for the table to come out again."""
    manifests = [made.manifest for made in runs]
    kernels, datapaths = {each.kernel for each in manifests}, {each.datapath for each in manifests}
    shifts = sorted({(each.phase, each.phase_ms) for each in manifests})
    yield f"Virtual time, Linux {_listed(kernels)}, LAG datapath {_listed(datapaths)}, {len(runs)} runs."
    yield f"Ports have {200_000 // SCALE} Mbit/s, the single ToR's twice that."
    yield f"Phases: {', '.join(f'{number} (+{ms:.0f} ms)' for number, ms in shifts)}."


def _listed(values: Iterable[str]) -> str:
    return ", ".join(sorted(values))


def _losses(runs: Sequence[Made]) -> Iterator[str]:
    yield f"| network | fault | {' | '.join(job.title for job in JOBS)} |"
    yield f"|---|---|{'---|' * len(JOBS)}"
    for network, faults in ASKED.items():
        for fault in faults:
            found = [_cell(_of(runs, Course(network, job)), fault) for job in JOBS]
            yield f"| {network.title} | {fault.title} | {' | '.join(found)} |"


def _periods(runs: Sequence[Made]) -> Iterator[str]:
    yield f"| network | {' | '.join(job.title for job in JOBS)} |"
    yield f"|---|{'---|' * len(JOBS)}"
    for network in ASKED:
        by_job = (_of(runs, Course(network, job)) for job in JOBS)
        found = [[loss.period_ms for made in of for loss in made.losses.values()] for of in by_job]
        yield f"| {network.title} | {' | '.join(_span(each, '.1f') or '-' for each in found)} |"


def _doubted(runs: Sequence[Made]) -> Iterator[str]:
    """Runs that broke a promise, or cannot be trusted: they are in the table, and named."""
    for made in runs:
        broken = [check.text for check in made.verdict.checks if check.outcome is Outcome.FAIL]
        if made.verdict.outcome is not Outcome.PASS:
            why = ", ".join(broken) or next(iter(made.verdict.doubts), "a limit was too near")
            yield f"\n{made.course.name}, phase {made.manifest.phase}: {made.verdict.outcome.value}, {why}"


def _of(runs: Sequence[Made], course: Course) -> list[Made]:
    return [made for made in runs if made.course == course]


def _cell(runs: Sequence[Made], fault: Fault) -> str:
    """What one fault cost one job in one network, in all of the runs."""
    losses = [made.losses[fault.key] for made in runs if fault.key in made.losses]
    alive = [loss for loss in losses if loss.died_s is None]
    dead = [loss.died_s for loss in losses if loss.died_s is not None]
    found = []
    if alive:
        more = "more than " if any(loss.unfinished for loss in alive) else ""
        stalls = _span([loss.stall_ms for loss in alive], ".0f")
        found.append(f"{_span([loss.lost for loss in alive], '.0f')} lost, {more}{stalls} ms")
    if dead:
        found.append(f"**dies** after {_span(dead, '.2f')} s")
    before = [[*made.losses.values()][-1] for made in runs if made.losses and fault.key not in made.losses]
    found += dict.fromkeys("not told" if loss.died_s is None else "dead already" for loss in before)
    return "; or ".join(found) or ("nothing measured" if runs else "not run")


def _span(values: Sequence[float], form: str) -> str:
    """'1.2', or '1.2 to 3.4' when they differ as they are shown."""
    shown = [format(value, form) for value in (min(values), max(values))] if values else []
    return " to ".join(dict.fromkeys("0" if each == "-0" else each for each in shown))
