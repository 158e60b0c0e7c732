"""The files that go with a drill to a worker elsewhere: its own, and those beside it that it names.

Changes when a drill names files in another way. What a file names is told by its words: each that is the path of a file
below the drill's folder goes along, so that a topology, a trace or a program of a client is found there as it is here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from testbed.errors import InputError
from testbed.files.document import read

MOST_BYTES = 32 << 20
_MOST_WORDS = 20_000
_RANK_0 = re.compile(r"(.+)\.0\.json")
_YAML = (".yaml", ".yml")


def files_of(drill: Path) -> Mapping[str, bytes]:
    """By path below the drill's folder, what is in each file; its own under its own name.

    InputError when one lies outside that folder, cannot be read, or all of them are too much to send.
    """
    base = drill.parent
    found: dict[str, bytes] = {}
    todo = [drill.name]
    while todo:
        name = todo.pop()
        if name in found:
            continue
        try:
            found[name] = (base / name).read_bytes()
        except OSError as error:
            raise InputError(f"cannot read {base / name}: {error.strerror}; a worker elsewhere needs it") from error
        if sum(map(len, found.values())) > MOST_BYTES:
            raise InputError(f"{drill} names more than {MOST_BYTES >> 20} MB of files; run it without --scheduler")
        if name.endswith(_YAML):
            todo += _named(base / name, base)
    return found


def _named(file: Path, base: Path) -> Iterator[str]:
    for word in dict.fromkeys(_words(file)):
        path = PurePosixPath(word)
        if path.is_absolute() or not _is_file(base / word):
            continue
        if ".." in path.parts or not _lies_below(base / word, base):
            raise InputError(f"{file} names {word}, which no worker elsewhere has; put it beside the drill")
        yield str(path)
        if (rank := _RANK_0.fullmatch(path.name)) is not None:
            others = sorted(base.joinpath(path.parent).glob(f"{_plain(rank[1])}.[0-9]*.json"))
            yield from (str(path.with_name(other.name)) for other in others)


def _words(file: Path) -> Iterator[str]:
    """Every text in a file of YAML, and every word of it, which may be an argument of a program."""
    todo: list[object] = [read(file).data]
    for _ in range(_MOST_WORDS):
        if not todo:
            return
        match todo.pop():
            case str() as text:
                yield from (text, *text.split())
            case Mapping() as section:
                todo += section.values()
            case Iterable() as items:
                todo += items


def _is_file(path: Path) -> bool:
    try:
        return os.path.isfile(path)
    except ValueError:  # a NUL in it
        return False


def _lies_below(path: Path, base: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(base))


def _plain(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)
