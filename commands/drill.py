"""Commands for drills: list, read, check, run, analyse again, compare engines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from hpn.commands.completing import drill_names, runs
from hpn.commands.drill_matrix import drill_matrix
from hpn.commands.drill_runs import RunOptions, make, one_by_one, pooled, refusals_told
from hpn.commands.engine_option import engine_option, scheduler_option, virtual_time_option
from hpn.commands.followers import tell_next
from hpn.commands.group import RenamedGroup
from hpn.commands.page import (
    Page,
    as_json_option,
    json_option,
    profile_option,
    raise_neighbours_option,
    show,
    stall_limit_option,
    tell_left_out,
    terminal,
    topology_asked,
    topology_option,
)
from hpn.commands.waiting import still_runs
from hpn.commands.writing import drill_new, drill_schema_
from hpn.results.export.junit import check_place
from hpn.results.run.claim import claimed, place_for
from hpn.results.run.folder import load as load_run
from hpn.results.run.folder import run_document
from hpn.results.text.tables import (
    table,
)
from hpn.results.text.terminal import summary
from hpn.scenarios.batch.pool.choose import pool_for
from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.describe import describe, put_elsewhere
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.notes import drill_notes
from hpn.scenarios.drill.wrapping import wrapped
from hpn.scenarios.run import client_site, estimate, refusals, repeats
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.vm.engines import EngineSpec, asked_for


@click.group(cls=RenamedGroup)
def drill() -> None:
    """Scripted failure drills: list, read, write, check and run them."""


drill.add_command(drill_new)
drill.add_command(drill_schema_)
drill.add_command(drill_matrix)


@drill.command("ls")
@as_json_option
def drill_ls(as_json: bool) -> None:
    """List the drills that come with hpn."""
    if as_json:
        click.echo(json.dumps([{"name": d.name, "summary": d.summary} for d in catalogue.ls()], indent=2))
        return
    show(table("drills", ("name", "what happens"), ((d.name, d.summary) for d in catalogue.ls())))
    tell_next("drill ls", drill="link-down")


@drill.command("show")
@click.argument("name", shell_complete=drill_names)
@topology_option
@profile_option
def drill_show(name: str, topology: FabricSpec | None, profile: str | None) -> None:
    """Explain a drill: what happens in hardware, what is emulated, its load, timeline and expectations."""
    from hpn.scenarios.model.fitted_drill import load_lines  # numpy

    chosen = catalogue.load(name, topology, profile)
    loads, notes = load_lines(chosen), drill_notes(chosen)
    more = ("offered load once failover is over", *(f"  {each}" for each in loads)) if loads else ()
    noted = ("notes", *(f"  {each}" for each in notes)) if notes else ()
    for line in wrapped((*describe(chosen), *more, *noted), terminal().width):
        click.echo(line)
    tell_next("drill show", drill=name, topology=topology_asked(), profile=profile)


@drill.command("validate")
@click.argument("names", nargs=-1, required=True, shell_complete=drill_names)
@topology_option
@profile_option
def drill_validate(names: tuple[str, ...], topology: FabricSpec | None, profile: str | None) -> None:
    """Check drill files: every mistake at once, with file and line; and where their load exceeds a link's rate.

    A drill that this machine would refuse to run is not called good: what is in the way is told, and whether it can
    run in virtual time. Where it cannot, the exit code is 3.
    """
    from hpn.scenarios.model.fitted_drill import congestion_lines  # numpy

    problems: list[str] = []
    refused_here: dict[str, refusals.Refused] = {}
    for name in names:
        try:
            found = catalogue.load(name, topology, profile)
            refused = refusals.of_drill(found)
            click.echo("\n  ".join((f"{name}: {_answer(name, refused)}", *put_elsewhere(found))))
            if refused is not None:
                refused_here[name] = refused
            for line in (*congestion_lines(found), *drill_notes(found)):
                click.echo(f"{name}: note: {line}")
            if line := estimate.virtual_time_line(found):
                click.echo(f"{name}: note: {line}")
        except InputError as error:
            problems.extend(error.problems)
    if problems:
        raise InputError(problems)
    if nowhere := [name for name, refused in refused_here.items() if refused.elsewhere]:
        raise MachineError(f"without mistakes, but nothing here can run it: {', '.join(nowhere)}")
    if not refused_here:  # else it has been told where they run
        tell_next("drill validate", drills=names, topology=topology_asked(), profile=profile)


def _answer(name: str, refused: refusals.Refused | None) -> str:
    if refused is None:
        return "good"
    return "\n  ".join(("no mistake, but this machine refuses to run it", *refused.lines(f"hpn drill run {name}")))


@drill.command("run")
@click.argument("names", nargs=-1, shell_complete=drill_names)
@click.option("--all", "everything", is_flag=True, help="Every drill that comes with hpn.")
@topology_option
@profile_option
@engine_option("Where.")
@virtual_time_option
@stall_limit_option
@click.option(
    "--slow", type=click.IntRange(1, 100), help="Divide the traffic by this; default: 10 in UML, 40 in emulated QEMU."
)
@click.option("--repeat", type=click.IntRange(1, 1000), default=1, show_default=True, help="Runs of each drill.")
@click.option(
    "--phase",
    type=click.IntRange(1, 10**6),
    default=1,
    show_default=True,
    help="Number of the first run: faults fall into the protocols' timers, and seeds are, as drawn from it.",
)
@click.option(
    "--tries", type=click.IntRange(1, 20), default=1, show_default=True, help="Of a run, while it cannot be trusted."
)
@click.option(
    "--jobs", type=click.IntRange(1, 256), default=1, show_default=True, help="Runs side by side, as cores allow."
)
@scheduler_option
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Write a JUnit report here.")
@click.option("--summary", type=click.Path(dir_okay=False, path_type=Path), help="Write a summary in Markdown here.")
@raise_neighbours_option("the drill lasts")
@click.option("--keep-records", is_flag=True, help="Keep every packet's record, compressed, for: hpn analyse")
@json_option
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for run folders; default: runs/TIME."
)
def drill_run(**given: Any) -> int:
    """Run drills, each in a lab of its own, and judge them. The exit code is the worst answer.

    With --jobs or --scheduler they run side by side; each comes to its folder when it is whole.
    """
    options = RunOptions(**given)
    spec = asked_for(options.engine, options.virtual_time)
    _check_together(options, spec)
    with refusals_told(options.junit, options.summary):
        drills = _chosen(options, spec)
    page = Page(options.as_json)
    with place_for(options.out) as place:
        batch = options.batch(drills, place)
        if options.scheduler is None and options.jobs == 1:
            with claimed(place) as claim:
                return make(batch, one_by_one(batch, spec, claim, page), page, options.junit, options.summary)
        with pool_for(place, options.width, options.scheduler, still_runs) as pool:
            return make(batch, pooled(batch, spec, pool, page), page, options.junit, options.summary)


def _check_together(options: RunOptions, spec: EngineSpec) -> None:
    """Raise InputError for options that exclude each other, and reports that cannot be written."""
    if options.scheduler is not None and options.jobs != 1:
        raise InputError("--jobs is for this machine; with --scheduler the number of workers decides")
    if options.raise_neighbour_limit and spec.own_kernel:
        raise InputError(
            f"--raise-neighbour-limit is for this machine's table; a guest of engine {options.engine} has its own"
        )
    if options.everything == bool(options.names):
        raise InputError("name the drills to run, or say --all; hpn drill ls lists those that come with hpn")
    for option, path in (("--junit", options.junit), ("--summary", options.summary)):
        if path is not None:
            check_place(path, option)


def _chosen(options: RunOptions, spec: EngineSpec) -> list[Drill]:
    drills = [catalogue.load(name, options.topology, options.profile) for name in options.names]
    if options.everything:
        library = client_site.library(options.topology, [spec.name], options.profile)
        tell_left_out(library.left_out)
        drills = [*library.drills]
    if options.slow:
        drills = [chosen.slowed(options.slow) for chosen in drills]
    repeats.check(drills, options.repeat)
    return drills


@click.command("analyse")
@click.argument("run", type=click.Path(file_okay=False, path_type=Path), shell_complete=runs)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Write metrics and verdict anew here.")
@json_option
def analyse_(run: Path, out: Path | None, as_json: bool) -> int:
    """Make metrics and verdict of a run folder anew, from what --keep-records kept in it.

    The exit code is the verdict's; 2 when the folder holds other metrics or another verdict than its records give,
    unless --out takes the new ones.
    """
    from hpn.scenarios.run.analyse import analyse  # numpy, which a drill loads after its measurement only

    page, found = Page(as_json), analyse(load_run(run))
    page.show(summary(found.manifest, found.metrics, found.verdict))
    page.tell(f"measured with hpn {found.measured_by}, analysed with hpn {found.analysed_by}")
    for line in found.differences:
        page.tell(f"differs: {line}")
    for line in found.gaps:
        page.tell(f"gap: {line}")
    page.end(lambda: run_document(found.run, found.files) | {"differences": found.differences, "gaps": found.gaps})
    if out is not None:
        page.tell(f"run folder: {found.write(out).path}")
    elif found.differences:
        raise InputError(f"{run} does not follow from its own records; --out DIR writes what does")
    else:
        page.tell(f"{', '.join(found.files)}: equal to those of the run, byte for byte")
    tell_next("analyse", quiet=as_json, run=run if out is None else out)
    return found.verdict.exit_code
