"""The ``hpn`` command: finds the command asked for, and turns what goes wrong into one line and an exit code."""

from __future__ import annotations

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # until ``main`` runs, Ctrl-C just ends this process: no traceback

import io
import os
import sys
import traceback
from pathlib import Path

import click

from commands import COMMANDS
from commands.group import LazyGroup
from testbed import plugins
from testbed.errors import HpnError, MachineError
from testbed.vm import repeatable

_SIGPIPE = 128 + signal.SIGPIPE  # what a shell reports of a program whose reader went away; no answer of a drill


@click.group(cls=LazyGroup, commands_of=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hpn")
@click.option(
    "--plugin",
    multiple=True,
    is_eager=True,
    expose_value=False,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    callback=lambda _context, _option, folders: plugins.use(folders),
    help=f"A folder with Python files that add faults, metrics, ... (docs/extending.md); also {plugins.VARIABLE}.",
)
def command_line() -> None:
    """A failover testbed for AI training networks.

    Builds a scaled-down HPN (non-stacked dual-ToR LACP, dual plane, rails) in Linux namespaces, breaks it under
    RoCE-like load and measures the failover. Start with: hpn drill run link-down

    Exit codes: 0 pass, 1 fail, 2 usage or file error, 3 this machine cannot run it, 4 inconclusive (too noisy).
    """


def main() -> None:
    """Run the command line: the product's own errors become one line each and their exit code."""
    stdout = sys.stdout
    try:
        plugins.load_all()
        command_line.load(sys.argv[1:])  # before a guest's clock counts: what is imported later would move it
        signal.signal(signal.SIGINT, signal.default_int_handler)
        repeatable.begin()
        _open_standard_streams()
        stdout = sys.stdout
        code = command_line.main(prog_name="hpn", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        code = 130
    except HpnError as error:
        for line in str(error).splitlines():
            click.echo(f"hpn: {line}", err=True)
        code = error.exit_code
    except BrokenPipeError:
        _drop_output()
        code = _SIGPIPE
    except SystemExit as leave:
        # A closed pipe: rich ends so, and click, which puts something in the place of the stream.
        if not isinstance(leave.__context__, BrokenPipeError) and sys.stdout is stdout:
            raise
        _drop_output()
        code = _SIGPIPE
    except OSError as error:  # a full disk, a folder of somebody else, a working directory that is gone
        where = f" ({error.filename})" if error.filename else ""
        click.echo(f"hpn: {error.strerror or error}{where}; check disk, path and permissions", err=True)
        code = MachineError.exit_code
        try:
            sys.stdout.flush()
        except OSError:
            _drop_output()
    except Exception:  # noqa: BLE001  # Python would end with 1, which says that the network failed
        traceback.print_exc()
        click.echo("hpn: this is a mistake of hpn itself, and says nothing of the network; please report it", err=True)
        code = MachineError.exit_code
    sys.exit(code if isinstance(code, int) else 0)


def _open_standard_streams() -> None:
    """Give /dev/null to streams that the caller closed (``>&-``): no file of ours may get their numbers.

    What the others cannot encode, they escape: a name from a drill file ends no command.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115  # for as long as we run
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """What cannot be written is not tried again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
