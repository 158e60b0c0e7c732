"""Editor support for users' files: the schema of each kind, and the line of a file that names it.

Changes when a schema is printed or written in another way, or editors look for it elsewhere.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from hpn.commands.outfile import check_free, make_folder, write
from hpn.testbed.errors import InputError
from hpn.testbed.files.document import shorten
from hpn.testbed.files.json_schema import Schema


def schema_text(schema: Schema) -> str:
    """Return the schema as the content of a file."""
    return json.dumps(schema, indent=1) + "\n"


def schema_command(kind: str, page: str, schema: Callable[[], Schema]) -> click.Command:
    """Return the command ``schema`` of a group: the JSON Schema of files of that kind.

    ``page``: editor instructions.
    """

    @click.command("schema", help=f"Print the JSON Schema of {kind} files, for editors ({page}).")
    @click.option(
        "--out", type=click.Path(dir_okay=False, path_type=Path), help="The file to write; default: print it."
    )
    def command(out: Path | None) -> None:
        text = schema_text(schema())
        if out is None:
            click.echo(text, nl=False)
            return
        write(out, text)

    return command


schema_option = click.option(
    "--schema",
    "schema_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the JSON Schema here, and a first line that names it for editors.",
)


@dataclass(frozen=True, slots=True)
class Begun:
    """A new file of a user: its path, its text, and the path of its schema if requested."""

    out: Path
    text: str
    schema_file: Path | None = None

    def write(self, schema: Callable[[], Schema], force: bool) -> None:
        """Write the schema, then the file. InputError, and nothing is written, if something else is there.

        A schema file with the same text is left unchanged.
        """
        check_free(self.out, force)
        make_folder(self.out.parent, "--out")
        text = self.text
        if self.schema_file is not None:
            text = modeline(self.out, self.schema_file) + text
            _write_schema(self.schema_file, schema_text(schema()), force)
        write(self.out, text)


def modeline(file: Path, schema: Path) -> str:
    """Return the line by which a YAML language server finds the schema, relative to the file's folder.

    InputError for a name that such a line cannot contain.
    """
    place = os.path.relpath(os.path.realpath(schema), os.path.realpath(file.parent))
    if os.path.realpath(file) == os.path.realpath(schema):
        raise InputError(f"--schema {shorten(str(schema))} is the file to be written itself; choose another")
    if any(each.isspace() or not each.isprintable() for each in place):
        raise InputError(f"--schema {shorten(place)}: editors take no blanks in this name; choose another")
    return f"# yaml-language-server: $schema={place}\n"


def _write_schema(path: Path, text: str, force: bool) -> None:
    try:
        if path.read_text() == text:
            return
    except (OSError, UnicodeDecodeError):
        pass  # missing, or not text
    check_free(path, force, "--schema")
    write(path, text, "--schema")
