"""The commands of ``hpn``, a module for each family: parse, call one function, print.

A new command is a function in one of these modules and its name here. A module is imported when one of its commands is
asked for, so that ``hpn --help`` waits for none.
"""

from __future__ import annotations

from collections.abc import Mapping

COMMANDS: Mapping[str, str] = {
    name: f"commands.{module}"
    for module, names in {
        "lab": ("plan", "presets", "up", "down", "ls", "inspect", "exec", "shell", "trace", "break", "mend", "events"),
        "drill": ("drill", "analyse", "compare"),
        "ci": ("ci",),
        "campaign": ("campaign",),
        "paper": ("reproduce",),
        "machine": ("doctor", "selftest", "vm", "bench"),
    }.items()
    for name in names
}
"""The module of each command by the command's name; its function has that name too, or one with '_' at the end."""
