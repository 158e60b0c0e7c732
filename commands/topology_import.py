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
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.load import is_path, load_fabric
from hpn.testbed.importing.configs import with_configs
from hpn.testbed.importing.importers import import_network
from hpn.testbed.importing.sources import read_sources
from hpn.testbed.importing.telling import as_data, told, topology_text
from hpn.testbed.importing.wishes import wishes_of


def _check(out: Path) -> None:
    """Load what was written. InputError with the lines that hpn cannot build: what the importer could not know."""
    try:
        load_fabric(_place(out))
    except InputError as error:
        hint = f"{out} is written, but does not load: correct it, or the network's file"
        raise InputError([*error.problems, hint]) from None


def _place(out: Path) -> str:
    """Return the path as commands take it: without '/' or a suffix of YAML it would be a preset's name."""
    return str(out) if is_path(str(out)) else f"./{out}"


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
    result = with_configs(result, files[0].parent, out.parent)
    write(out, topology_text(result, [file.name for file in files]))
    _check(out)
    if as_json:
        click.echo(json.dumps({"file": str(out)} | as_data(result), indent=2))
        return
    for line in (*told(result), str(out)):
        click.echo(printable(line))
    tell_next("topology import", file=_place(out))
