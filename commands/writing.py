"""New drill files, and editor support for all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from hpn.commands.completing import faults, targets, templates, topologies
from hpn.commands.followers import tell_next
from hpn.commands.schemas import Begun, schema_command, schema_option
from hpn.failover.faults import FAULTS
from hpn.scenarios.drill.json_schema import drill_schema
from hpn.scenarios.drill.templates import TEMPLATES
from hpn.scenarios.drill.writing import DrillRequest, completed
from hpn.testbed.fabric.load import is_path
from hpn.testbed.fabric.presets import PRESETS
from hpn.traffic.flows.paths import CHOICES


@click.command("new")
@click.argument("name", required=False)
@click.option("--template", shell_complete=templates, help=f"What runs: {', '.join(TEMPLATES)}.")
@click.option("--fault", shell_complete=faults, help="What breaks; docs/drills.md has all kinds.")
@click.option(
    "--topology",
    shell_complete=topologies,
    help="Where: a preset, a topology file or '{preset: tiny, rails: 4}'.",
)
@click.option("--target", shell_complete=targets, help="Which part of it: a link, NIC, node or plane.")
@click.option(
    "--source-ports",
    type=click.Choice(list(CHOICES)),
    help="How queue pairs choose their paths; docs/drills.md.",
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="The file to write; default: NAME.yaml")
@schema_option
@click.option("--force", is_flag=True, help="Overwrite files.")
def drill_new(
    name: str | None,
    template: str | None,
    fault: str | None,
    topology: str | None,
    target: str | None,
    source_ports: str | None,
    out: Path | None,
    schema_file: Path | None,
    force: bool,
) -> None:
    """Write a drill file to begin with; it runs as it is. Asks what runs, what breaks and where, unless told.

    \b
    hpn drill new my-crash --fault tor-crash --template job
    """
    from hpn.scenarios.model.fitted_drill import fitted  # numpy

    told = any(given is not None for given in (template, fault, topology, target))
    wish = DrillRequest(template or "streams", fault or "link-down", topology or "", target or "", name or "")
    if not told:
        wish = _asked(name)
    wish = completed(replace(wish, source_ports=source_ports or ""))
    out = out or Path(f"{wish.name}.yaml")
    text = fitted(replace(wish, folder=str(out.parent)))
    Begun(out, text, schema_file).write(drill_schema, force)
    click.echo(out)
    tell_next("drill new", file=out if is_path(str(out)) else f"./{out}")


def _asked(name: str | None) -> DrillRequest:
    """Prompt for the missing choices; every question has a default."""
    for each in TEMPLATES.values():
        click.echo(f"  {each.name:<10} {each.summary}")
    template = click.prompt("What runs", type=click.Choice(list(TEMPLATES)), default="streams", show_choices=False)
    wish = DrillRequest(template=template, name=name or "")
    if TEMPLATES[template].breaks:
        click.echo(f"  {', '.join(FAULTS)}")
        fault = click.prompt("What breaks", type=click.Choice(list(FAULTS)), default="link-down", show_choices=False)
        wish = DrillRequest(template=template, fault=fault, name=name or "")
    click.echo(f"  {', '.join(PRESETS)}, a topology file, or {{preset: tiny, rails: 4}}")
    topology = click.prompt("Where", default=completed(wish).topology)
    wish = DrillRequest(template, wish.fault, topology, name=wish.name)
    target = click.prompt("Which part", default=completed(wish).target) if TEMPLATES[template].breaks else ""
    wish = completed(DrillRequest(template, wish.fault, topology, target, wish.name))
    return (
        wish if name else DrillRequest(template, wish.fault, topology, target, click.prompt("Name", default=wish.name))
    )


drill_schema_ = schema_command("drill", "docs/writing-drills.md", drill_schema)
