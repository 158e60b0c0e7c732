"""Command groups that import a command's module only when it is used, and list all commands without imports."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Container, Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import click
from click.shell_completion import CompletionItem

from hpn.commands import Command, settings
from hpn.testbed.errors import InputError

_INDENT = 6  # columns that click leaves free next to the names


class _Alone(click.exceptions.NoArgsIsHelpError):
    """Error for hpn without arguments: shows help and hints."""

    def show(self, file: IO[Any] | None = None) -> None:
        from hpn.commands.next_step import hints  # reads runs and labs, which other commands need not do

        super().show(file)
        for line in ("", *hints()):
            click.echo(line, err=True)


class RenamedGroup(click.Group):
    """A group that also accepts former names of its commands."""

    WAS: Mapping[str, str] = {"list": "ls"}

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return the command of that name or former name."""
        return super().get_command(ctx, self.WAS.get(name, name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command by its current name, which settings files also use."""
        return super().resolve_command(ctx, [*(self.WAS.get(name, name) for name in args[:1]), *args[1:]])


class LazyGroup(click.Group):
    """A group whose commands are in modules of their own."""

    def __init__(self, *args: Any, commands_of: Mapping[str, Command], **kwargs: Any) -> None:
        """Create the group. ``commands_of``: the commands by name, read on use, as plug-ins add to them."""
        super().__init__(*args, **kwargs)
        self._known = commands_of

    def list_commands(self, _context: click.Context) -> list[str]:
        """Return every name in alphabetical order, as click does."""
        return sorted(self._known)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Import and return the command; None if there is none of that name."""
        if name not in self._known:
            return None
        if context.resilient_parsing:
            return self._outline(name)
        return self._command(name)

    def _outline(self, name: str) -> click.Command:
        """Return the command for completion, without importing its module if it is cached."""
        from hpn.commands.completion_cache import kept
        from hpn.commands.outline import command_of, outline

        try:
            return command_of(name, kept(f"command-{name}", lambda: outline(self._command(name))))
        except (KeyError, TypeError, ValueError, AttributeError):  # the cache is damaged
            return self._command(name)

    def _command(self, name: str) -> click.Command:
        module = importlib.import_module(self._known[name].module)
        found = vars(module).get(_function_of(name, vars(module)))
        if not isinstance(found, click.Command):
            raise InputError(f"{module.__file__} has no click command for 'hpn {name}', which it says it brings")
        settings.name_variables(found, (name,))
        return found

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Handle missing arguments: show help and hints, and exit with code 2, as nothing was run."""
        if not args and not ctx.resilient_parsing:
            raise _Alone(ctx)
        return super().parse_args(ctx, args)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Create the context, with defaults for hpn's own options from settings files."""
        try:
            found = settings.files()
            extra.setdefault("default_map", settings.root_defaults(self, found))
            extra.setdefault("obj", found)
        except InputError as error:  # raised when a command is used, so that --help still works
            extra.setdefault("obj", error)
        return super().make_context(info_name, args, parent, **extra)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command, with its defaults from settings files. InputError for a mistake in these.

        UsageError with similar names for an unknown command.
        """
        if args and args[0] not in self._known and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise self._no_such(args[0], ctx)
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and command is not None and not ctx.resilient_parsing:
            if isinstance(ctx.obj, InputError):
                raise ctx.obj
            for file in ctx.obj:
                if file.state.startswith("ignored"):
                    click.echo(f"hpn: {file.path} is {file.state}", err=True)
            settings.check_commands(self.list_commands(ctx), self, ctx.obj)
            ctx.default_map = {name: settings.defaults(command, (name,), ctx.obj)}
        return name, command, rest

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return names of commands and options, without importing any command."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        found = [CompletionItem(name, help=said.partition("\n")[0]) for name, said in self._said(names)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def load(self, arguments: Sequence[str]) -> None:
        """Import the module of this command line's command, if any."""
        if arguments and arguments[0] in self._known:
            importlib.import_module(self._known[arguments[0]].module)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by section with their docstrings, which are read without importing them."""
        names = self.list_commands(context)
        longest = max(map(len, names))
        width = formatter.width - _INDENT - longest
        said = dict(self._said(names))
        for section in dict.fromkeys(command.section for command in self._known.values()):
            shown = [name for name, command in self._known.items() if command.section == section]
            rows = [
                (name.ljust(longest), click.Command(name, help=said[name]).get_short_help_str(width)) for name in shown
            ]
            with formatter.section(section):
                formatter.write_dl(rows)

    def _no_such(self, name: str, context: click.Context) -> click.UsageError:
        """Return an error with similar names, and commands of groups with that name: 'drill run' for 'run'."""
        below = [
            f"{group} {name}"
            for group in self._known
            if isinstance(found := self.get_command(context, group), click.Group) and name in found.commands
        ]
        close = get_close_matches(name, self._known)
        meant = " or ".join(f"hpn {each}" for each in (*close, *below))
        return click.UsageError(f"No such command {name!r}." + (f" Did you mean {meant}?" if meant else ""), context)

    def _said(self, names: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield the docstring of each command."""
        trees = {module: _functions(module) for module in {command.module for command in self._known.values()}}
        for name in names:
            of_module = trees[self._known[name].module]
            yield name, of_module.get(_function_of(name, of_module), "")


def _function_of(command: str, known: Container[str]) -> str:
    """Return the name of a command's function among those ``known``."""
    name = command.replace("-", "_")
    return f"{name}_" if f"{name}_" in known else name


def _functions(module: str) -> dict[str, str]:
    """Return the docstrings of a module's functions by name."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:  # a plug-in that was removed
        return {}
    tree = ast.parse(Path(spec.origin).read_text())
    return {node.name: ast.get_docstring(node) or "" for node in tree.body if isinstance(node, ast.FunctionDef)}
