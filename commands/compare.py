"""Comparison of runs with each other, or with stored figures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import click
from pydantic_core import to_json

from hpn.commands.completing import places
from hpn.commands.followers import tell_next
from hpn.commands.outfile import write
from hpn.commands.page import as_json_option, show
from hpn.results.comparison.baseline import baseline_of, held_against, read, written
from hpn.results.comparison.differences import Difference, Finding
from hpn.results.comparison.drills import Comparison, DrillGroups, compare, groups_by_drill
from hpn.results.comparison.figures import Key, Summary, summaries
from hpn.results.comparison.groups import Across, Compared, Group, grouped
from hpn.results.comparison.run_arguments import labelled, opened
from hpn.results.text.compared import comparison_parts
from hpn.results.text.comparison import held_lines
from hpn.results.text.printable import printable
from hpn.testbed.errors import HpnError, InputError, MachineError

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
@click.option("--all-figures", is_flag=True, help="Print every figure, also those that do not differ, and each test.")
@as_json_option
def compare_(
    folders: tuple[Path, ...],
    across: tuple[str, ...],
    save: Path | None,
    baseline: Path | None,
    html: Path | None,
    tell: float | None,
    all_figures: bool,
    as_json: bool,
) -> int:
    """Hold run folders against each other: what differs, by how much, and what could have been seen.

    RUN is a run folder, a folder that holds some (all that came to a verdict are taken), or a repeats.json (the runs of
    its folder). Other files that runs leave beside their folders are passed over. NAME=RUN names the group of its runs.
    A run that is damaged is named and left out, and the exit code is 2.

    Runs of one drill, fabric, engine, settings and version of hpn (with its commit) are one group, whose figures are
    medians; digests decide, not names. Groups differ in a figure when no value that one may have had is one that the
    other may have had. Only figures that differ are shown, one row each, unless --all-figures is given. Of a lone group
    all its figures are shown, and how far its runs are apart.

    Of groups of two runs or more it shows too what the runs say of the difference: its 95 % interval (BCa bootstrap,
    of five runs or more), Cliff's delta, an exact test, and about how many more runs of each would tell it. Runs with
    a phase and seeds of their own are pairs. What follows from a bound is a bound, or not determined.

    \b
    hpn compare runs/A/link-down runs/B/link-down --across fabric
    hpn compare runs/A/* runs/B/* --html comparison.html
    hpn compare HPN=runs/hpn single=runs/single-tor --across fabric --html comparison.html
    hpn compare hash=runs/A plb=runs/B --across settings
    hpn compare runs/main/* --save baseline.json; hpn compare runs/change/* --baseline baseline.json
    """
    if html is not None and (save is not None or baseline is not None):
        raise InputError("--html is of groups held against each other; leave --save and --baseline out")
    if tell is not None and math.isnan(tell):
        raise InputError("--tell takes a number")
    runs, problems = _opened(folders)
    asked = [Across(what) for what in across]
    if save is not None or baseline is not None:
        groups = grouped(runs, asked)
        code = _held(_only(groups), save, baseline, as_json=as_json)
        if code:
            tell_next("compare", quiet=as_json, worse=groups[0].runs[0].folder)
        elif baseline is None:
            tell_next("compare", quiet=as_json, runs=folders, saved=save)
        left_out = _left_out(problems)
        return code or left_out
    of_drills, lone = groups_by_drill(runs, asked)
    found = [compare(each, tell) for each in of_drills]
    if html is not None:
        _write_page(html, found, lone)
    if as_json:
        click.echo(to_json([entry for each in found for entry in _entries(each)], indent=2, inf_nan_mode="null"))
    else:
        show(*comparison_parts(found, lone, all_figures=all_figures, tells=tell is not None))
    if html is None and len(found[0].groups) > 1:
        tell_next("compare", quiet=as_json, runs=folders, across=across)
    return _left_out(problems)


def _write_page(html: Path, found: Sequence[Comparison], lone: Sequence[DrillGroups]) -> None:
    from hpn.results.page.comparing import comparison_page
    from hpn.results.page.side_by_side import beside  # Jinja and numpy, which other commands need not load

    charts = [beside(each.groups) for each in found]
    write(html, comparison_page(found, charts, html, lone), "--html")


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


def _entries(of: Comparison) -> Iterator[dict[str, object]]:
    """Yield an entry for each difference; for a single group, for each of its figures."""
    said = {"notes": of.notes, **({"drill": of.drill} if of.drill else {})}
    if len(of.groups) == 1:
        yield from (_own(*each) | said for each in summaries(of.groups[0]).items())
    else:
        yield from (_with_evidence(each, of) | said for each in of.found)


def _with_evidence(difference: Difference, of: Comparison) -> dict[str, object]:
    """Return a difference with its evidence; infinite ends of bounds become null."""
    key, group = difference.key, difference.group
    found = next((each for each in of.evidence if key in each.keys and each.group == group), None)
    told = None if found is None else asdict(found)
    lacking = difference.finding if difference.finding is Finding.START_MOVED else "fewer than 2 runs have it"
    why_none = of.why_no_evidence or ("" if found else str(lacking))
    return asdict(difference) | {"evidence": told, "no_evidence": why_none}


def _own(key: Key, summary: Summary) -> dict[str, object]:
    return {"key": asdict(key), "summary": asdict(summary)}


def _only(groups: Sequence[Group]) -> Group:
    if len(groups) > 1:
        raise InputError(f"a baseline is of one experiment and these are {len(groups)}: name runs of one")
    return groups[0]
