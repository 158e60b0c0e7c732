"""The commands of ``hpn``, a module for each family: parse, call one function, print.

A new command is a function in one of these modules and its name here. A module is imported when one of its commands is
asked for, so that ``hpn --help`` waits for none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hpn.testbed.entries import Registry


@dataclass(frozen=True, slots=True)
class Command:
    """Where a command is: ``module`` has a ``click.Command`` of that name.

    There '_' stands for '-', and one is at the end where Python, or what the command calls, has the name already.
    """

    name: str
    module: str
    section: str = "More"
    """Below which title ``hpn --help`` lists it."""


_SECTIONS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Drills": {
        "drill": ("drill", "analyse"),
        "campaign": ("campaign",),
        "ci": ("ci",),
        "model": ("model",),
        "month": ("month",),
    },
    "Labs": {
        "lab": ("plan", "presets", "up", "down", "ls", "exec", "shell", "trace", "capture"),
        "breaking": ("break", "mend", "events"),
        "inspect": ("inspect",),
        "topology": ("topology",),
        "graph": ("graph",),
        "watch": ("watch",),
    },
    "Results": {
        "report": ("report",),
        "compare": ("compare",),
        "results": ("results",),
        "export": ("export",),
        "cite": ("cite",),
        "paper": ("reproduce",),
    },
    "This machine": {
        "machine": ("doctor", "selftest", "bench", "vm"),
        "config": ("config",),
    },
}
"""Title to module to the commands in it, in the order in which ``hpn --help`` shows the titles."""

COMMANDS: Registry[Command] = Registry(
    "command",
    lambda command: command.name,
    (
        Command(name, f"hpn.commands.{module}", section)
        for section, modules in _SECTIONS.items()
        for module, names in modules.items()
        for name in names
    ),
    of=Command,
)
"""Every command by name; ``COMMANDS.add(Command("mine", __name__))`` is how a plug-in brings its own."""
