"""Topology files: what editors must know of them.

Changes when something else can be done with a topology file than with a preset, as ``commands.lab`` does.
"""

from __future__ import annotations

import click

from commands.schemas import schema_command
from testbed.fabric.json_schema import topology_schema


@click.group()
def topology() -> None:
    """Topology files, for your own fabric; hpn plan FILE checks one."""


topology.add_command(schema_command("topology", "docs/architectures.md", topology_schema))
