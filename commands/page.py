"""Output and options that several commands share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import click
from pydantic_core import to_json
from rich.console import Console, RenderableType

from hpn.commands.completing import labs, topologies
from hpn.testbed.fabric.load import load_topology
from hpn.testbed.fabric.profiles import PROFILES
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.files.units import format_percent, parse_duration, parse_percent
from hpn.testbed.vm.standstill import STALL_S, STALL_VARIABLE

Decorated = TypeVar("Decorated", bound=Callable[..., object])


def _set_stall_limit(_context: click.Context, _option: click.Parameter, seconds: float | None) -> None:
    """Set the stall limit by environment variable, for every guest that this command or its children boot."""
    if seconds is not None:
        os.environ[STALL_VARIABLE] = f"{seconds:g}"


stall_limit_option = click.option(
    "--stall-limit",
    type=click.FloatRange(1, 86_400),
    metavar="SECONDS",
    expose_value=False,
    callback=_set_stall_limit,
    help=f"End a guest whose clock stands for so long. Default: {STALL_S:g}, or {STALL_VARIABLE}.",
)


def raise_neighbours_option(span: str) -> Callable[[Decorated], Decorated]:
    """Return the option ``--raise-neighbour-limit``; ``span``: its duration, such as 'the lab is up'."""
    return click.option(
        "--raise-neighbour-limit",
        is_flag=True,
        help="Root: let the machine's neighbour table hold this lab, which may need more than 170 NICs have room for,"
        f" as long as {span}.",
    )


def _topology(context: click.Context, _option: click.Parameter, name: str | None) -> FabricSpec | None:
    context.meta[_TOPOLOGY] = name
    return None if name is None else load_topology(name)


def topology_asked() -> str | None:
    """Return the command line's value of ``topology_option``."""
    name: str | None = click.get_current_context().meta.get(_TOPOLOGY)
    return name


_TOPOLOGY = "hpn.topology"


topology_option = click.option(
    "--topology",
    metavar="NAME|FILE",
    shell_complete=topologies,
    callback=_topology,
    help="Your fabric in the place of each drill's own: a preset or a topology file. What a drill breaks becomes the"
    " same, or the first of its kind, there.",
)
profile_option = click.option(
    "--profile",
    type=click.Choice([*PROFILES]),
    help="Hosts of this profile in the place of each drill's own. Keys of lacp that a topology sets stay.",
)
as_json_option = click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document; progress goes to stderr.")
lab_option = click.option("--lab", "lab_name", shell_complete=labs, help="Which lab; not needed when only one is up.")


class Length(click.ParamType[int]):
    """A duration in the syntax of drill files, as nanoseconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the duration of '2 s', '500ms' and the like."""
        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Share(click.ParamType[float]):
    """A percentage in the syntax of drill files, from 0 to 1000 %, as a share: 1.0 is 100 %."""

    name = "percent"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the share of '10 %', '2.5%' and the like."""
        try:
            share = parse_percent(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if share > _MOST_SHARE:
            self.fail(
                f"{format_percent(share)} is out of range; write 0 % to {format_percent(_MOST_SHARE)}", param, ctx
            )
        return share


_MOST_SHARE = 10.0
_ENDLESS = 100_000  # columns


@dataclass(frozen=True)
class Page:
    """Output of a long-running command: with --json one document on stdout, progress on stderr."""

    as_json: bool

    @property
    def console(self) -> Console:
        """Console for progress of more than a line."""
        return terminal(stderr=self.as_json)

    def tell(self, line: str) -> None:
        """Print one line of progress."""
        click.echo(line, err=self.as_json)

    def show(self, *renderables: RenderableType) -> None:
        """Print the answer as tables, without --json."""
        if not self.as_json:
            show(*renderables)

    def end(self, document: Callable[[], object]) -> None:
        """Print the answer as JSON, with --json; infinity, which JSON lacks, becomes null."""
        if self.as_json:
            click.echo(to_json(document(), indent=2, inf_nan_mode="null"))


def terminal(stderr: bool = False) -> Console:
    """Return the console: as wide as the terminal or COLUMNS, else unlimited. Brackets are never markup.

    So in a file or a pipe each row of a table is one line, for grep.
    """
    wide = (sys.stderr if stderr else sys.stdout).isatty() or "COLUMNS" in os.environ
    return Console(stderr=stderr, width=None if wide else _ENDLESS, markup=False, emoji=False, highlight=False)


def starting(title: str, where: str) -> str:
    """Return the line for a run that begins; ``where``: its worker, '' for this machine."""
    return f"starting {title} on {where}" if where else f"starting {title}"


def tell_left_out(drills: Iterable[str]) -> None:
    """Print the library's drills that lack their client on this machine, each with what is missing, on stderr."""
    for drill in drills:
        click.echo(f"left out: {drill}", err=True)


def show(*renderables: RenderableType) -> None:
    """Print tables, separated by blank lines."""
    console = terminal()
    for renderable in renderables:
        console.print(renderable)
        console.print()
