"""The table own model / gloo / rxe as Markdown. PURE."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hpn.results.judge.verdict import Outcome, Verdict
from hpn.results.run.manifest import Manifest
from tests.product.client_cells import (
    ASKED,
    GLOO_TIMEOUT,
    IB_TIMEOUT,
    JOBS,
    RETRIES,
    SCALE,
    SIZE,
    Course,
    Fault,
)
from tests.product.client_loss import Loss
from tests.product.lossless_page import TITLE, Tried, section

TOLD = f"""\
# What faults cost a job: own model, gloo, Soft-RoCE

Written by `make client-table`. [Why jobs differ](clients.md#the-same-faults-for-three-jobs).

Four hosts repeat a ring all-reduce of {SIZE}: by `job:` (*own model*), `client: torch` (*gloo*) or `client: verbs`
(*rxe*). Queue pairs have `ib_timeout: {IB_TIMEOUT}`, `retry_count: {RETRIES}`; gloo has `timeout: {GLOO_TIMEOUT}`.

* `46/5.6`: 46 iterations lost, longest stall 5.6 s.
* **died 7.52**: the job died after 7.52 s. *dead*: already.
* *none*: no iteration ended since the fault before.
"""


@dataclass(frozen=True, slots=True)
class Made:
    """A run of the table."""

    course: Course
    manifest: Manifest
    verdict: Verdict
    losses: Mapping[str, Loss]  # by fault


def page(runs: Sequence[Made], tried: Sequence[Tried] = (), before: str = "") -> str:
    """Return both tables; one without runs is that of the page before, if there is one."""
    first, _, second = before.partition(TITLE)
    if runs or not first:
        first = "\n".join((TOLD, *_facts(runs), "", *_losses(runs), *_doubted(runs))) + "\n"
    if tried:
        second = "\n".join(section(tried)) + "\n"
    return first + (TITLE + second if second else "")


def _facts(runs: Sequence[Made]) -> Iterator[str]:
    """What must be the same for the table to come out again."""
    manifests = [made.manifest for made in runs]
    kernels, datapaths = {each.kernel for each in manifests}, {each.datapath for each in manifests}
    shifts = sorted({(each.phase, each.phase_ms) for each in manifests})
    yield f"Virtual time, Linux {_listed(kernels)}, LAG datapath {_listed(datapaths)}, {len(runs)} runs."
    yield f"Ports have {200_000 // SCALE} Mbit/s, single-ToR twice that."
    yield f"Ranges are over phases of {', '.join(f'{ms:.0f}' for _, ms in shifts)} ms."


def _listed(values: Iterable[str]) -> str:
    return ", ".join(sorted(values))


def _losses(runs: Sequence[Made]) -> Iterator[str]:
    """A row for each network and job, a column for each fault."""
    titles = {fault.key: fault.title for fault in max(ASKED.values(), key=len)}
    yield f"| network | job | {' | '.join(titles.values())} |"
    yield f"|---|---|{'---|' * len(titles)}"
    for network, faults in ASKED.items():
        asked = {fault.key: fault for fault in faults}
        for number, job in enumerate(JOBS):
            of = _of(runs, Course(network, job))
            found = [_cell(of, asked[key]) if key in asked else "" for key in titles]
            yield f"| {'' if number else network.title} | {job.title} | {' | '.join(found)} |"


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
        more = ">" if any(loss.unfinished for loss in alive) else ""
        lost = _span([loss.lost for loss in alive], ".0f")
        stalls = _span([loss.stall_ms / 1000 for loss in alive], ".1f")
        found.append("0" if (lost, more, stalls) == ("0", "", "0.0") else f"{lost}/{more}{stalls}")
    if dead:
        found.append(f"**died {_span(dead, '.2f')}**")
    before = [[*made.losses.values()][-1] for made in runs if made.losses and fault.key not in made.losses]
    found += dict.fromkeys("none" if loss.died_s is None else "dead" for loss in before)
    return " or ".join(found) or ("nothing measured" if runs else "not run")


def _span(values: Sequence[float], form: str) -> str:
    """'1.2', or '1.2-3.4' when they differ as they are shown."""
    shown = [format(value, form) for value in (min(values), max(values))] if values else []
    return "-".join(dict.fromkeys(each.removeprefix("-") if float(each) == 0 else each for each in shown))
