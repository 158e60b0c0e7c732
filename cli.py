"""The ``hpn`` command: dispatches to its subcommands."""

from __future__ import annotations

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # until ``main`` runs, Ctrl-C just ends this process: no traceback

import sys
from pathlib import Path

import click
from click.core import ParameterSource

from hpn.commands import COMMANDS, edge
from hpn.commands.group import LazyGroup
from hpn.testbed import plugins, versions
from hpn.testbed.kernel import neighbour_table


def _use(context: click.Context, _option: click.Parameter, folders: tuple[Path, ...]) -> None:
    plugins.use(folders)
    if context.get_parameter_source("plugin") is ParameterSource.COMMANDLINE:
        context.meta[plugins.GIVEN] = folders


@click.group(cls=LazyGroup, commands_of=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(versions.HPN, package_name="hpn")
@click.option(
    "--plugin",
    multiple=True,
    is_eager=True,
    expose_value=False,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    callback=_use,
    help=f"A folder with Python files that add faults, metrics, ... (docs/extending.md); also {plugins.VARIABLE}.",
)
def command_line() -> None:
    """A failover testbed for AI training networks.

    Builds a scaled-down HPN (non-stacked dual-ToR LACP, dual plane, rails) in Linux namespaces, breaks it under
    RoCE-like load and measures the failover. Start with: hpn drill run link-down

    Any option may also come from the environment or from hpn.toml: hpn config says how, and which do.

    Exit codes: 0 pass, 1 fail, 2 usage or file error, 3 this machine cannot run it, 4 inconclusive (too noisy).
    """


def main() -> None:
    """Run the command line, after undoing changes that killed commands left on the machine."""
    neighbour_table.put_back()
    edge.run(lambda: command_line.load(sys.argv[1:]), lambda: command_line.main(prog_name="hpn", standalone_mode=False))


if __name__ == "__main__":
    main()
