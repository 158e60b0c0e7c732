"""Topology files: a new one to begin with, and editor support.

Changes when a command applies to topology files only; ``commands.lab`` has those that also take presets.
"""

from __future__ import annotations

from pathlib import Path

import click

from hpn.commands.completing import presets, topologies
from hpn.commands.followers import tell_next
from hpn.commands.outfile import check_free, write
from hpn.commands.schemas import Begun, schema_command, schema_option
from hpn.commands.topology_import import topology_import
from hpn.results.text.printable import printable
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.json_schema import topology_schema
from hpn.testbed.fabric.load import is_path, load_fabric
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.writing import written
from hpn.testbed.files.check import did_you_mean
from hpn.testbed.files.document import shorten
from hpn.testbed.importing.exporting import EXPORTERS


@click.group()
def topology() -> None:
    """Topology files, for your own fabric; hpn plan FILE checks one."""


topology.add_command(topology_import)
topology.add_command(schema_command("topology", "docs/architectures.md", topology_schema))


@topology.command("export")
@click.argument("name", metavar="TOPOLOGY", shell_complete=topologies)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(list(EXPORTERS)),
    default="hpn",
    show_default=True,
    help="hpn is a topology file of the architecture wired.",
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file instead of printing.")
@click.option("--force", is_flag=True, help="Overwrite the file.")
def topology_export(name: str, format_name: str, out: Path | None, force: bool) -> None:
    """Write a preset or topology file as data: every node and link, to be changed by hand.

    hpn topology import reads the other formats back. docs/your-network.md explains hpn's own.
    """
    text = EXPORTERS[format_name](load_fabric(name))
    if out is None:
        click.echo(text, nl=False)
        return
    check_free(out, force)
    write(out, text)
    click.echo(printable(str(out)))
    place = str(out) if is_path(str(out)) else f"./{out}"
    if format_name == "hpn":
        tell_next("topology export", file=place)
    else:
        tell_next("topology export", foreign=place)


@topology.command("new")
@click.option(
    "--preset",
    default="tiny",
    show_default=True,
    shell_complete=presets,
    help="What the file builds on; hpn presets lists them.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A key that differs, such as hosts=4 or lacp.rate=slow.",
)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), default=Path("topology.yaml"), show_default=True
)
@schema_option
@click.option("--force", is_flag=True, help="Overwrite files.")
def topology_new(preset: str, settings: tuple[str, ...], out: Path, schema_file: Path | None, force: bool) -> None:
    """Write a topology file to begin with: a preset and the keys that differ, each with its meaning.

    \b
    hpn topology new --preset small --set hosts=6 --set bgp.bfd.interval_ms=100 --out mine.yaml
    """
    if preset not in PRESETS:
        raise InputError(f"no preset {shorten(preset)}; {did_you_mean(preset, PRESETS, 'presets are')}")
    text = written(preset, settings)
    Begun(out, text, schema_file).write(topology_schema, force)
    place = str(out) if is_path(str(out)) else f"./{out}"
    click.echo(printable(str(out)))
    tell_next("topology new", file=place)
