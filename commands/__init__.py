"""Commands of ``hpn``, a module for each family: parse, call one function, print.

A new command is a function in one of these modules and its name here. A module is imported only when one of its
commands is used, so that ``hpn --help`` waits for none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hpn.testbed.entries import Registry


@dataclass(frozen=True, slots=True)
class Command:
    """Location of a command: ``module`` has a ``click.Command`` of that name.

    The function has '_' instead of '-'. A trailing '_' avoids names that Python, or the function it calls, uses.
    """

    name: str
    module: str
    section: str = "More"
    """Section title of ``hpn --help`` that lists it."""


_SECTIONS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Drills": {
        "drill": ("drill", "analyse"),
        "audit": ("audit",),
        "campaign": ("campaign",),
        "explore": ("explore",),
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
        "locate": ("locate",),
        "export": ("export",),
        "cite": ("cite",),
        "paper": ("reproduce",),
    },
    "This machine": {
        "machine": ("doctor", "selftest", "bench", "vm"),
        "config": ("config",),
    },
}
"""Commands by section title and module, in the order of the titles in ``hpn --help``."""

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
"""Every command by name; plug-ins add theirs with ``COMMANDS.add(Command("mine", __name__))``."""
