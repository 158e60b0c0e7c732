"""Comparison of runs with each other, or with stored figures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from pydantic_core import to_json
from rich.text import Text

from hpn.commands.completing import places
from hpn.commands.followers import tell_next
from hpn.commands.outfile import write
from hpn.commands.page import as_json_option, show
from hpn.results.comparison.baseline import baseline_of, held_against, read, written
from hpn.results.comparison.differences import Difference, Finding, differences
from hpn.results.comparison.figures import Key, Summary, summaries
from hpn.results.comparison.groups import Across, Compared, Group, check_trusted, grouped, why_not
from hpn.results.comparison.run_arguments import labelled, opened
from hpn.results.judge.repeats.source_ports import shared_source_ports
from hpn.results.run.folder import RunFolder
from hpn.results.text.answer import answer
from hpn.results.text.comparison import comparison_parts, held_lines
from hpn.results.text.evidence import evidence_parts
from hpn.results.text.printable import printable
from hpn.testbed.errors import HpnError, InputError, MachineError

if TYPE_CHECKING:
    from hpn.results.comparison.science import DifferenceEvidence

_ANY = click.Path(path_type=Path)
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("compare")
@click.argument("folders", metavar="RUN...", nargs=-1, required=True, type=_ANY, shell_complete=places)
@click.option(
    "--across",
    multiple=True,
    type=click.Choice([str(what) for what in Across if what is not Across.VERSION]),
    help="The runs may differ in this; may be given again.",
)
@click.option("--save", type=_FILE, help="Keep the figures of these runs as a baseline.")
@click.option("--baseline", type=_FILE, help="Hold the runs against this file: exit code 1 where any figure is worse.")
@click.option("--html", type=_FILE, help="Write the comparison as a page too: one file that needs nothing else.")
@click.option(
    "--tell",
    type=click.FloatRange(min=1e-9, max=1e12),
    help="The difference, in a figure's unit, that is asked how many more runs would tell; else the one seen.",
)
@as_json_option
def compare_(
    folders: tuple[Path, ...],
    across: tuple[str, ...],
    save: Path | None,
    baseline: Path | None,
    html: Path | None,
    tell: float | None,
    as_json: bool,
) -> int:
    """Hold run folders against each other: what differs, by how much, and what could have been seen.

    RUN is a run folder, a folder that holds some (all that came to a verdict are taken), or a repeats.json (the runs of
    its folder). Other files that runs leave beside their folders are passed over. NAME=RUN names the group of its runs.
    A run that is damaged is named and left out, and the exit code is 2.

    Runs of one drill, fabric, engine, settings and version of hpn (with its commit) are one group, whose figures are
    medians; digests decide, not names. Groups differ in a figure when no value that one may have had is one that the
    other may have had. Of a lone group its figures are shown, and how far its runs are apart.

    Of groups of two runs or more it shows too what the runs say of the difference: its 95 % interval (BCa bootstrap,
    of five runs or more), Cliff's delta, an exact test, and about how many more runs of each would tell it. Runs with
    a phase and seeds of their own are pairs. What follows from a bound is a bound, or not determined.

    \b
    hpn compare runs/A/link-down runs/B/link-down --across fabric
    hpn compare runs/A/* runs/B/* --html comparison.html
    hpn compare hash=runs/A plb=runs/B --across settings
    hpn compare runs/main/* --save baseline.json; hpn compare runs/change/* --baseline baseline.json
    """
    if html is not None and (save is not None or baseline is not None):
        raise InputError("--html is of groups held against each other; leave --save and --baseline out")
    if tell is not None and math.isnan(tell):
        raise InputError("--tell takes a number")
    runs, problems = _opened(folders)
    groups = grouped(runs, [Across(what) for what in across])
    if save is not None or baseline is not None:
        code = _held(_only(groups), save, baseline, as_json=as_json)
        if code:
            tell_next("compare", quiet=as_json, worse=groups[0].runs[0].folder)
        elif baseline is None:
            tell_next("compare", quiet=as_json, runs=folders, saved=save)
        left_out = _left_out(problems)
        return code or left_out
    _tell(groups, html, tell, as_json=as_json)
    if html is None and len(groups) > 1:
        tell_next("compare", quiet=as_json, runs=folders, across=across)
    return _left_out(problems)


def _tell(groups: Sequence[Group], html: Path | None, tell: float | None, *, as_json: bool) -> None:
    """Print groups compared with the first, or a single group; write a page if requested."""
    check_trusted(groups)
    found = differences(groups)
    why_no_evidence = why_not(groups)
    evidence = () if why_no_evidence else _science(groups, tell)
    if html is not None:
        from hpn.results.page.comparing import comparison_page
        from hpn.results.page.side_by_side import beside  # Jinja and numpy, which other commands need not load

        write(html, comparison_page(groups, found, evidence, beside(groups), html), "--html")
    if len(groups) == 1:
        told = [_own(*each) for each in summaries(groups[0]).items()]
    else:
        told = [_with_evidence(each, evidence, why_no_evidence) for each in found]
    if as_json:
        click.echo(to_json(told, indent=2, inf_nan_mode="null"))
    else:
        parts = evidence_parts(evidence, why_no_evidence) if len(groups) > 1 else []
        told_apart = {(key, each.group) for each in evidence if each.significant for key in each.keys}
        said = [Text(f"Do they differ? {printable(answer(groups, found, evidence))}")] if len(groups) > 1 else []
        show(*said, *comparison_parts(groups, found, told_apart), *_shared(groups), *parts)


def _shared(groups: Sequence[Group]) -> Iterator[Text]:
    """Yield a line for each group whose runs have the same source ports."""
    for group in groups:
        if note := shared_source_ports(RunFolder(Path(run.folder)) for run in group.runs):
            yield Text(printable(f"{group.label}: {note}"))


def _opened(words: Sequence[Path]) -> tuple[list[Compared], list[HpnError]]:
    """Return the runs, and the errors of those left out. The first of these errors is raised if no run is left."""
    runs, problems = list[Compared](), list[HpnError]()
    for name, folder in labelled(words):
        try:
            runs.append(opened(folder, name))
        except (InputError, MachineError) as error:
            problems.append(error)
    if not runs:
        raise problems[0]
    return runs, problems


def _left_out(problems: Sequence[HpnError]) -> int:
    """Print the runs left out; return exit code 2, or 3 if only memory was short, as ``hpn results export`` does."""
    for problem in problems:
        click.echo(f"hpn: left out: {printable(str(problem))}", err=True)
    return min((problem.exit_code for problem in problems), default=0)


def _held(group: Group, save: Path | None, baseline: Path | None, *, as_json: bool) -> int:
    """Store the group's figures, or compare them with a baseline."""
    if save is not None:
        write(save, written(baseline_of(group)), "--save")
    if baseline is None:
        return 0
    held = held_against(read(baseline), group)
    if as_json:
        click.echo(to_json(asdict(held), indent=2, inf_nan_mode="null"))
    else:
        show(*held_lines(held))
    return 1 if held.worse else 0


def _science(groups: Sequence[Group], tell: float | None) -> Sequence[DifferenceEvidence]:
    from hpn.results.comparison.science import science  # numpy, which baselines do not wait for

    return science(groups, tell)


def _with_evidence(of: Difference, evidence: Sequence[DifferenceEvidence], why_none: str) -> dict[str, object]:
    """Return a difference with its evidence; infinite ends of bounds become null."""
    found = next((each for each in evidence if of.key in each.keys and each.group == of.group), None)
    told = None if found is None else asdict(found)
    lacking = of.finding if of.finding is Finding.START_MOVED else "fewer than 2 runs have it"
    return asdict(of) | {"evidence": told, "no_evidence": why_none or ("" if found else str(lacking))}


def _own(key: Key, summary: Summary) -> dict[str, object]:
    return {"key": asdict(key), "summary": asdict(summary)}


def _only(groups: Sequence[Group]) -> Group:
    if len(groups) > 1:
        raise InputError(f"a baseline is of one experiment and these are {len(groups)}: name runs of one")
    return groups[0]
