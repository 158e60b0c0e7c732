"""Single files of a run folder: written atomically, read as untrusted input.

Changes when a file may be damaged in another way. A file must lie in its folder, be a regular file and fit into memory,
and its numbers must be possible in a run. Anything else is an InputError of one line.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NoReturn, TypeVar

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from hpn.results.run import size_limits
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.files.document import shorten
from hpn.testbed.files.replacing import replace

T = TypeVar("T")

_MEMORY_SHARE = 0.25
_DIGITS = 20
_PERHAPS = re.compile(rb"NaN|Infinity|[0-9.][eE]\+?[0-9]{3}|[0-9]{%d}" % _DIGITS)
"""Patterns that no number of a run has; a text may contain them."""


def write(path: Path, content: bytes) -> None:
    """Replace a file in one step: after a crash a reader sees the old or the new content, never part of it."""
    replace(path, content)


def within(path: Path, folder: Path) -> Path:
    """Return ``path`` if it lies in the folder.

    InputError when a link leads out of it, since that file is not the run's.
    """
    real = os.path.realpath(path)
    if not real.startswith(os.path.join(os.path.realpath(folder), "")):
        raise InputError(f"{path} is a link that leads out of the run folder; put the file itself there")
    return path


def content(path: Path, folder: Path | None = None) -> bytes:
    """Return the content of a file of ``folder`` (None: the folder that contains it).

    InputError when it is missing, not a regular file, elsewhere, or larger than any such file of a run. MachineError
    when it is larger than memory allows.
    """
    with opened(path, folder) as file:
        _check_size(path, file)
        return file.read()


@contextmanager
def opened(path: Path, folder: Path | None = None) -> Iterator[BinaryIO]:
    """Open the same file. InputError as for ``content``, also when a later read fails."""
    try:
        number = os.open(within(path, folder or path.parent), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(number, "rb") as file:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise InputError(f"{path} is not a regular file; repeat the run")
            yield file
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(f"{path}: {why}; the run did not get that far or is not a run folder") from error


def dumped(adapter: TypeAdapter[T], item: T, indent: int | None = None) -> bytes:
    """Return an item as JSON.

    A lone surrogate, which a command line or a YAML file can contain, becomes a question mark.
    """
    try:
        return adapter.dump_json(item, indent=indent)
    except PydanticSerializationError:
        plain = _encodable(adapter.dump_python(item, mode="json"))
        return json.dumps(plain, indent=indent, ensure_ascii=False).encode()


def lines_of(adapter: TypeAdapter[T], items: Iterable[T]) -> bytes:
    """Return the items as JSON lines."""
    return b"".join(dumped(adapter, item) + b"\n" for item in items)


def read(path: Path, adapter: TypeAdapter[T], folder: Path | None = None) -> T:
    """Read a file of JSON. InputError when it is missing or does not match the type."""
    return parse(path, adapter, content(path, folder))


def read_lines(path: Path, adapter: TypeAdapter[T], folder: Path | None = None) -> tuple[T, ...]:
    """Read a file of JSON lines. InputError as for ``read``, with the line number."""
    with opened(path, folder) as file:
        _check_size(path, file)
        return tuple(parse(path, adapter, line, f"line {at}: ") for at, line in enumerate(_lines(path, file), 1))


def parse(path: Path, adapter: TypeAdapter[T], text: bytes, where: str = "") -> T:
    """Parse JSON of a file; ``where``: the place in it. InputError when it does not match the type."""
    try:
        made = adapter.validate_json(text)
    except ValidationError as error:
        raise damaged(path, where + first_mistake(error)) from error
    if _PERHAPS.search(text):
        _check_numbers(path, text, where)
        read_as = to_json(made, inf_nan_mode="constants", fallback=repr)
        _check_numbers(path, read_as, where)  # a text may have been read as a number
    return made


def first_mistake(error: ValidationError) -> str:
    """Return place and text of the first mistake: 'figures.0.low: Field required'."""
    first = error.errors()[0]
    at = ".".join(str(part) for part in first["loc"])
    return f"{at}: {first['msg']}" if at else first["msg"]


def damaged(path: Path, why: str) -> InputError:
    """Return the error for a file that no run can have written."""
    return InputError(f"{path} is damaged or of another version ({shorten(why, 200, quoted=False)}); repeat the run")


def check_memory(path: Path, needed: int) -> None:
    """Raise MachineError when ``needed`` bytes of records at ``path`` are more than one process should take."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > memory * _MEMORY_SHARE:
        raise MachineError(
            f"{path}: {needed / 1e9:.1f} GB of records, more than {_MEMORY_SHARE:.0%} of this machine's memory"
        )


def _check_size(path: Path, file: BinaryIO) -> None:
    size, most = os.fstat(file.fileno()).st_size, size_limits.limit_of(path.name)
    if size > most:
        text = f"no {path.name} of a run has more than {most / 1e6:.1f} MB"
        raise InputError(f"{path} has {size / 1e6:.1f} MB, and {text}; repeat the run")
    check_memory(path, size)


def _lines(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file. InputError for one that is longer than any of a run."""
    at = 0
    while line := file.readline(size_limits.LINE + 1):
        at += 1
        if len(line) > size_limits.LINE:
            raise damaged(path, f"line {at}: longer than {size_limits.LINE} bytes")
        yield line


def _encodable(item: JsonValue) -> JsonValue:
    match item:
        case str():
            return item.encode(errors="replace").decode()
        case list():
            return [_encodable(each) for each in item]
        case dict():
            return {key.encode(errors="replace").decode(): _encodable(value) for key, value in item.items()}
    return item


def _check_numbers(path: Path, text: bytes, where: str) -> None:
    """Raise InputError for a non-finite number (NaN, infinity, 1e999) or one with more digits than any counter."""

    def refuse(found: str) -> NoReturn:
        raise damaged(path, f"{where}{shorten(found)} is no number of a run")

    def whole(found: str) -> int:
        return int(found) if len(found.lstrip("-")) <= _DIGITS else refuse(found)

    def finite(found: str) -> float:
        number = float(found)
        return number if math.isfinite(number) else refuse(found)

    json.loads(text, parse_constant=refuse, parse_int=whole, parse_float=finite)
