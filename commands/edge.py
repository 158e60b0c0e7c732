"""The edge of every program of hpn: what goes wrong becomes lines and an exit code.

Changes when programs begin otherwise, or another kind of trouble is to be told in another way.
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

_SIGPIPE = 128 + signal.SIGPIPE  # what a shell reports of a program whose reader went away; no answer of a drill


def run(load: Callable[[], object], body: Callable[[], object]) -> NoReturn:
    """``load`` what the body imports, do the ``body``, and leave with the exit code that it returns.

    The product's own errors become a line each and their exit code. Between the two a guest's clock begins to count:
    what is imported or opened later would move it.
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
        whose = f"hpn itself or of a plug-in ({', '.join(loaded)})" if (loaded := plugins.loaded()) else "hpn itself"
        click.echo(f"hpn: this is a mistake of {whose}, and says nothing of the network; please report it", err=True)
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
