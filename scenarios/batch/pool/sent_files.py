"""Files sent with a drill to a worker elsewhere: its own, files in its folder that it names, and plug-ins.

Changes when a drill names files in another way, or plug-ins are stored differently. Each word of a file that is the
path of a file below the drill's folder counts as its name. So a topology, a trace or a client's program is found there
as here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from hpn.testbed import plugins
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.wired.configs import names_in
from hpn.testbed.files.document import read

MOST_BYTES = 32 << 20
MOST_OF_PLUGINS, MOST_FILES = 4 << 20, 1000
"""Limits over all folders of plug-ins: they are sent with every task."""
_MOST_WORDS = 20_000
_RANK_0 = re.compile(r"(.+)\.0\.json")
_YAML = (".yaml", ".yml")


Files: TypeAlias = Mapping[str, bytes]
"""File contents by path below a folder."""


def files_of(drill: Path) -> Files:
    """Return file contents by path below the drill's folder; the drill's own file has its own name.

    InputError when one lies outside that folder, cannot be read, or all of them are too much to send.
    """
    base = drill.parent
    found: dict[str, bytes] = {}
    left, todo = MOST_BYTES, [drill.name]
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found[name] = _content(base / name, left)
        left -= len(found[name])
        if left < 0:
            raise InputError(f"{drill} names more than {MOST_BYTES >> 20} MB of files; run it without --scheduler")
        if name.endswith(_YAML):
            todo += _named(base / name, base)
    return found


def _content(file: Path, most: int) -> bytes:
    """Return the content of a file, cut to one byte more than ``most``."""
    try:
        with file.open("rb") as stream:
            return stream.read(most + 1)
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}; a worker elsewhere needs it") from error


def plugins_here() -> tuple[Files, ...]:
    """Return the files of each plug-in folder of this command: Python files, and files that they may read.

    InputError when one cannot be read, or they are too much to send.
    """
    left, found = MOST_OF_PLUGINS, list[Files]()
    for folder in plugins.folders():
        files = {}
        for path in _within(folder):
            content = files[str(path.relative_to(folder))] = _content(path, left)
            left -= len(content)
            if left < 0:
                raise _too_much(folder)
        found.append(files)
    return tuple(found)


def _within(folder: Path) -> Iterator[Path]:
    """Yield regular files in the order of their names, without those of Python or an editor."""
    count = 0
    for below, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith((".", "__pycache__")))
        for name in sorted(names):
            if not name.startswith(".") and Path(below, name).is_file():
                count += 1
                if count > MOST_FILES:
                    raise _too_much(folder)
                yield Path(below, name)


def _too_much(folder: Path) -> InputError:
    return InputError(
        f"with {folder} plug-ins are more than {MOST_FILES} files or {MOST_OF_PLUGINS >> 20} MB, too much to go to"
        " workers elsewhere; keep them in a folder of their own"
    )


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
    """Yield every text in a YAML file, and every word of it, which may be an argument of a program."""
    todo: list[object] = [read(file).data]
    for _ in range(_MOST_WORDS):
        if not todo:
            return
        match todo.pop():
            case str() as text:
                yield from (text, *text.split())
            case Mapping() as section:
                todo += section.values()
                if isinstance(folder := section.get("config"), str):
                    yield from _of_host(file.parent / folder, folder)
            case Iterable() as items:
                todo += items


def _of_host(path: Path, folder: str) -> Iterator[str]:
    """Yield the files of a folder that is a host's configuration in a topology."""
    try:
        yield from (f"{folder}/{name}" for name in (names_in(path) if path.is_dir() else ()))
    except (OSError, ValueError):
        return  # the topology is refused for it


def _is_file(path: Path) -> bool:
    try:
        return os.path.isfile(path)
    except ValueError:  # the name contains a NUL
        return False


def _lies_below(path: Path, base: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(base))


def _plain(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)
