"""Options of commands that make many runs in a folder, and go on with what is left in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from hpn.commands.engine_option import VIRTUAL_TIME, engine_option, scheduler_option
from hpn.commands.page import Decorated, stall_limit_option
from hpn.testbed.vm.engines import EngineSpec


def runs_options(
    out: str, offered: Callable[[EngineSpec], bool] = lambda _spec: True
) -> Callable[[Decorated], Decorated]:
    """Return --jobs, --engine, --stall-limit, --scheduler and --out; ``out``: its default, ``offered``: the engines."""
    options = (
        click.option("--jobs", type=click.IntRange(1, 256), help="Runs side by side; default: one per core."),
        engine_option("Where.", offered, default=VIRTUAL_TIME),
        stall_limit_option,
        scheduler_option,
        click.option(
            "--out",
            type=click.Path(file_okay=False, path_type=Path),
            default=Path(out),
            show_default=True,
            help="Folder of drills, runs and answer; the same command goes on with what is left in it.",
        ),
    )

    def declare(command: Decorated) -> Decorated:
        for option in reversed(options):
            command = option(command)
        return command

    return declare
