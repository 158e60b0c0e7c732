"""What a shell completes behind a command: names that a person would have to look up."""

from __future__ import annotations

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem


def drill_names(_context: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Drills of the library; files once it looks like one."""
    from scenarios.drill import catalogue

    return _names(catalogue.names(), incomplete)


def topologies(_context: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Presets; files once it looks like one."""
    from testbed.fabric.presets import PRESETS

    return _names(PRESETS, incomplete)


def _names(known: Iterable[str], incomplete: str) -> list[CompletionItem]:
    if incomplete.startswith(".") or "/" in incomplete:
        return [CompletionItem(incomplete, type="file")]
    found = [CompletionItem(name) for name in known if name.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="file")]
