"""A command: ``hpn cabling TOPOLOGY`` prints which port is plugged into which, one line a cable."""

from __future__ import annotations

import csv
import sys

import click

from hpn import load_fabric
from hpn.commands import COMMANDS, Command


@click.command()
@click.argument("topology", default="tiny")
def cabling(topology: str) -> None:
    """Print every cable of a topology as CSV: tier, plane, the port at each end."""
    rows = csv.writer(sys.stdout, lineterminator="\n")
    rows.writerow(("tier", "plane", "lower node", "lower port", "upper node", "upper port"))
    for link in load_fabric(topology).links:
        rows.writerow((link.kind.value, link.plane, link.lower.node, link.lower.name, link.upper.node, link.upper.name))


COMMANDS.add(Command("cabling", __name__))
