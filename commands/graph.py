"""Pictures of fabrics."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from hpn.commands.completing import topologies
from hpn.commands.outfile import write
from hpn.commands.page import Length, lab_option
from hpn.results.graph.dot import fabric_dot
from hpn.results.graph.faults import marks_of
from hpn.results.graph.grouping import Level
from hpn.results.graph.overlay import Mark, Overlay
from hpn.results.graph.svg import fabric_svg
from hpn.results.run.folder import load as run_folder
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.lab.service import control, load, registry

_FORMATS = {"svg": fabric_svg, "dot": fabric_dot}
_AUTO = "auto"

FlowAsked = tuple[str, str, int]


@click.command()
@click.argument("what", metavar="[TOPOLOGY|RUN]", required=False, shell_complete=topologies)
@lab_option
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="The file to write; default: print it.")
@click.option("--format", "form", type=click.Choice([*_FORMATS]), help="Default: as --out ends, else svg.")
@click.option(
    "--group",
    type=click.Choice([_AUTO, *map(str, Level)]),
    default=_AUTO,
    show_default=True,
    help="What is drawn as one box.",
)
@click.option("--mark", multiple=True, metavar="PART[=TEXT]", help="Number a node, NIC or link as a fault.")
@click.option("--flow", type=(str, str, click.IntRange(1, 65535)), metavar="SRC DST SPORT", help="Trace it in the lab.")
@click.option("--load", "load_ns", type=Length(), metavar="DURATION", help="Count for so long what passes in the lab.")
def graph(
    what: str | None,
    lab_name: str | None,
    out: Path | None,
    form: str | None,
    group: str,
    mark: tuple[str, ...],
    flow: FlowAsked | None,
    load_ns: int | None,
) -> None:
    """Draw a preset, a topology file or the fabric of a run folder, or else a running lab as it is now.

    As SVG or for Graphviz. Of a run folder, what its drill broke is numbered. Hosts are in the middle, plane 0 above,
    plane 1 below. Of a lab, what is down is crossed out. What is too large to be drawn node by node is grouped.
    hpn graph medium --out medium.svg; hpn graph --format dot | dot -Tpdf
    """
    if what is not None and (lab_name or flow or load_ns):
        raise InputError("--lab, --flow and --load are of a running lab; leave the topology or run folder out")
    drawn = _FORMATS[form or _format_of(out)]
    marks = tuple(Mark(part, text or "marked") for part, _, text in (each.partition("=") for each in mark))
    if what is None:
        fabric, seen = _running(lab_name, flow, load_ns)
    else:
        fabric, seen = _of_run(Path(what)) if Path(what).is_dir() else (load_fabric(what), Overlay())
    text = drawn(fabric, replace(seen, faults=(*seen.faults, *marks)), None if group == _AUTO else Level(group))
    if out is None:
        click.echo(text, nl=False)
        return
    write(out, text)


def _format_of(out: Path | None) -> str:
    """Return the format by the file's ending; SVG without one. InputError for an unsupported format."""
    ending = out.suffix[1:].lower() if out is not None else ""
    if ending and ending not in _FORMATS:
        raise InputError(
            f"{out} ends in .{ending}, which is not drawn; end it in .svg or .dot, or say --format"
            " (for PNG: rsvg-convert x.svg > x.png)"
        )
    return ending or "svg"


def _of_run(path: Path) -> tuple[Fabric, Overlay]:
    """Return the fabric of a run folder, and the faults of its drill if the folder has them."""
    run = run_folder(path)
    fabric = run.fabric()
    try:
        return fabric, Overlay(faults=marks_of(fabric, run.drill().faults))
    except InputError as error:
        click.echo(f"no fault is marked: {error}", err=True)
        return fabric, Overlay()


def _running(lab_name: str | None, flow: FlowAsked | None, load_ns: int | None) -> tuple[Fabric, Overlay]:
    """Return the fabric of a lab, and its current state."""
    place, record = registry.find(lab_name)
    fabric = registry.fabric_of(place)
    path: tuple[str, ...] = ()
    dropped = ""
    if flow is not None:
        src, dst, sport = flow
        found = control.call_for_object(place.socket, "trace", src=src, dst=dst, sport=sport)
        path = _names(found["steps"], "link", "link")
        dropped = str(found["dropped"] or "")
    seen = Overlay(
        down_nodes=_names(control.call(place.socket, "inspect", what="nodes"), "node", "alive", wanted=False),
        down_links=_names(control.call(place.socket, "inspect", what="links"), "link", "carrier", wanted=False),
        load={} if load_ns is None else load.measure(record.first_pid, fabric, load_ns),
        path=path,
        dropped=dropped,
    )
    return fabric, seen


def _names(rows: control.JsonValue, key: str, by: str, *, wanted: bool = True) -> tuple[str, ...]:
    """Return the values of ``key`` in the rows whose value of ``by`` is ``wanted``."""
    found = rows if isinstance(rows, list) else []
    return tuple(str(row[key]) for row in found if isinstance(row, dict) and bool(row[by]) == wanted)
