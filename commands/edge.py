"""Entry point of every program of hpn: errors become lines and an exit code.

Changes when programs start in another way, or another kind of error is reported in another way.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import click

from hpn.testbed import plugins
from hpn.testbed.errors import HpnError, MachineError
from hpn.testbed.kernel.process.processes import interrupted_by_any_signal
from hpn.testbed.vm import repeatable

_SIGPIPE = 128 + signal.SIGPIPE  # a shell's exit code for a program whose reader ended; no drill returns it


def run(load: Callable[[], object], body: Callable[[], object]) -> NoReturn:
    """Call ``load`` to import what the body needs, run ``body``, and exit with the code that it returns.

    hpn's own errors become a line each and their exit code. A guest's clock starts between the two calls: later imports
    or file accesses would advance it.
    """
    stdout = sys.stdout
    try:
        plugins.load_all()
        load()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        repeatable.begin()
        _open_standard_streams()
        stdout = sys.stdout
        with interrupted_by_any_signal():
            code = body()
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
        # A closed pipe: rich ends like this, and so does click, which replaces the stream.
        if not isinstance(leave.__context__, BrokenPipeError) and sys.stdout is stdout:
            raise
        _drop_output()
        code = _SIGPIPE
    except OSError as error:  # a full disk, another user's folder, a working directory that is gone
        where = f" ({error.filename})" if error.filename else ""
        click.echo(f"hpn: {error.strerror or error}{where}; check disk, path and permissions", err=True)
        code = MachineError.exit_code
        try:
            sys.stdout.flush()
        except OSError:
            _drop_output()
    except Exception:  # noqa: BLE001  # Python would exit with 1, which means that the network failed
        traceback.print_exc()
        whose = f"hpn itself or of a plug-in ({', '.join(loaded)})" if (loaded := plugins.loaded()) else "hpn itself"
        click.echo(f"hpn: this is a mistake of {whose}, and says nothing of the network; please report it", err=True)
        code = MachineError.exit_code
    sys.exit(code if isinstance(code, int) else 0)


def _open_standard_streams() -> None:
    """Open /dev/null for streams that the caller closed (``>&-``), so that no other file gets their numbers.

    Characters that the other streams cannot encode are escaped, so that a name from a drill file ends no command.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115  # open until the program ends
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Discard pending output, so that Python does not write it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
