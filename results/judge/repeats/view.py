"""Verdict over repeats for the terminal: headline, proof, a row for every expectation. Pure.

Changes when its presentation changes. ``results.judge.repeats.judging`` has the rule of judging.
"""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from hpn.results.judge.repeats.repeated import Estimate, Repeated, figures, median_ends
from hpn.results.judge.repeats.spread import PUBLISHABLE_REPEATS
from hpn.results.judge.verdict import Outcome
from hpn.results.text.comparison import Sheet
from hpn.results.text.tables import table
from hpn.results.text.values import value_text


def repeats_summary(found: Repeated) -> Group:
    """Return headline, reasons, proof and table."""
    parts: list[RenderableType] = [Text(headline(found), style="bold")]
    parts += [Text(f"  because {reason}") for reason in found.reasons]
    parts += [Text(f"  because {each.text}: {each.too_few}") for each in found.estimates if each.too_few]
    parts += [Text(f"  {found.proof} (one-sided exact binomial)")] if found.proof else []
    parts += [Text(f"  {found.note}")] if found.note else []
    return Group(*parts, *([table(*estimates_sheet(found), keys=2)] if found.estimates else []))


def estimates_sheet(found: Repeated) -> Sheet:
    """Return every expectation with its figures over the runs, for a terminal or a page."""
    columns = (
        "",
        "expectation",
        ">worst",
        "run",
        ">median",
        ">95 % bootstrap",
        ">p95",
        ">limit",
        ">kept",
        ">left out",
    )
    rows = tuple(
        (
            each.outcome.value,
            each.text,
            *([""] * 5 if each.limit is None or not each.runs else _figures(each)),
            "" if each.limit is None else value_text(each.limit, each.unit),
            f"{each.kept} of {each.runs}",
            str(each.left_out) if each.left_out else "",
        )
        for each in found.estimates
    )
    return Sheet("expectations over all runs", columns, rows)


def _figures(each: Estimate) -> tuple[str, ...]:
    worst, middle, p95 = figures(each)
    ends = " ".join(median_ends(each)) if each.interval else ""
    return worst, "" if each.worst_run is None else f"#{each.worst_run}", middle, ends, p95


def headline(found: Repeated) -> str:
    """Return 'FAIL  link-down over 5 repeats: 4 pass, 1 fail; UNSTABLE: runs pass and fail'."""
    counts = [f"{found.answers.count(answer)} {answer}" for answer in Outcome if answer in found.answers]
    said = [f"{found.outcome.value.upper()}  {found.name}: {', '.join(counts)}"]
    said += [f"{found.left_out} left out"] if found.left_out else []
    said += ["UNSTABLE: runs pass and fail"] if found.unstable else []
    if len(found.answers) < PUBLISHABLE_REPEATS:
        said += [f"fewer than the {PUBLISHABLE_REPEATS} repeats of a published figure"]
    return "; ".join(said)
