"""What editors must know of files that users write: ``schema`` of each group whose commands take a kind of file.

Changes when a schema is printed or written in another way.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import click

from commands.outfile import write
from testbed.files.json_schema import Schema


def schema_text(schema: Schema) -> str:
    """The schema as a file has it."""
    return json.dumps(schema, indent=1) + "\n"


def schema_command(kind: str, page: str, schema: Callable[[], Schema]) -> click.Command:
    """``schema`` of a group: the JSON Schema of files of that kind; ``page`` says how an editor takes it."""

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
