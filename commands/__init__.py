"""The commands of ``hpn``, a module for each family: parse, call one function, print.

A new command is a function in one of these modules and its name here. A module is imported when one of its commands is
asked for, so that ``hpn --help`` waits for none.
"""

from __future__ import annotations

from dataclasses import dataclass

from testbed.entries import Registry


@dataclass(frozen=True, slots=True)
class Command:
    """Where a command is: ``module`` has a ``click.Command`` of that name.

    There '_' stands for '-', and one is at the end where Python, or what the command calls, has the name already.
    """

    name: str
    module: str


COMMANDS: Registry[Command] = Registry(
    "command",
    lambda command: command.name,
    (
        Command(name, f"commands.{module}")
        for module, names in {
            "lab": (
                *("plan", "presets", "up", "down", "ls", "exec", "shell", "trace", "capture"),
                *("break", "mend", "events"),
            ),
            "inspect": ("inspect",),
            "graph": ("graph",),
            "watch": ("watch",),
            "drill": ("drill", "analyse"),
            "model": ("model",),
            "compare": ("compare",),
            "report": ("report",),
            "export": ("export",),
            "results": ("results",),
            "ci": ("ci",),
            "campaign": ("campaign",),
            "paper": ("reproduce",),
            "month": ("month",),
            "config": ("config",),
            "machine": ("doctor", "selftest", "vm", "bench"),
        }.items()
        for name in names
    ),
    of=Command,
)
"""Every command by name; ``COMMANDS.add(Command("mine", __name__))`` is how a plug-in brings its own."""
