"""``hpn topology import``: a network from files of other tools becomes a topology file.

Changes when an import takes another option; the formats are in ``testbed.importing``.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from hpn.commands.followers import tell_next
from hpn.commands.outfile import check_free, make_folder, write
from hpn.commands.page import as_json_option
from hpn.results.text.printable import printable
from hpn.testbed.fabric.load import is_path
from hpn.testbed.importing.importers import import_network
from hpn.testbed.importing.sources import read_sources
from hpn.testbed.importing.telling import as_data, told, topology_text
from hpn.testbed.importing.wishes import wishes_of


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option("--format", "format_name", metavar="NAME", help="Default: told from the files.")
@click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="PATTERN=ROLE",
    help="Role of nodes, such as 'leaf*=tor': host, tor, agg or core; goes before the file's.",
)
@click.option("--leave", multiple=True, metavar="PATTERN", help="Nodes to leave out, or cables by 'NODE:PORT'.")
@click.option(
    "--nic",
    "nics",
    multiple=True,
    metavar="PORT[+PORT]",
    help="Ports of hosts that are one NIC, such as eth1+eth2; 'eth*' makes each a NIC.",
)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), default=Path("topology.yaml"), show_default=True
)
@click.option("--force", is_flag=True, help="Overwrite the file.")
@as_json_option
def topology_import(
    files: tuple[Path, ...],
    format_name: str | None,
    roles: tuple[str, ...],
    leave: tuple[str, ...],
    nics: tuple[str, ...],
    out: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Write a topology file for a network in files of another tool.

    Formats: containerlab, netlab (JSON), SONiC (config_db.json of several switches), NetBox (JSON), CSV of cables,
    SimAI. It prints what it took, what it left and why.

    \b
    hpn topology import lab.clab.yml --role 'leaf*=tor' --role 'spine*=agg' --nic eth1+eth2
    """
    check_free(out, force)
    wishes = wishes_of(roles, leave, nics)
    result = import_network(read_sources(files), wishes, format_name)
    make_folder(out.parent, "--out")
    write(out, topology_text(result, [file.name for file in files]))
    if as_json:
        click.echo(json.dumps({"file": str(out)} | as_data(result), indent=2))
        return
    for line in (*told(result), str(out)):
        click.echo(printable(line))
    tell_next("topology import", file=str(out) if is_path(str(out)) else f"./{out}")
