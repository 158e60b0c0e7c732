"""Places of a run folder in which something else may stand than a run would write, and what may stand there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hpn.results.run.reading import read
from hpn.testbed.errors import InputError

NASTY = "</script><img src=x onerror=alert(1)><!--'\"; DROP TABLE runs; --\n\x1b[2J\u202e{{7*7}}" + "x" * 300
NUMBERS = (0, -1, 1e300, -1e300, 5e-324, 2**62, None)


@dataclass(frozen=True)
class Place:
    """Where in a file: the keys and indices on the way."""

    file: str
    way: tuple[str | int, ...]


def places(folder: Path, kind: type | tuple[type, ...]) -> Iterator[Place]:
    """The first place of each key, in every file, that holds something of that kind."""
    for path in sorted(folder.iterdir()):
        if path.suffix in {".json", ".jsonl"}:
            seen: set[tuple[str, ...]] = set()
            for way, value in _walk(_content(path), ()):
                keys = tuple(part for part in way if isinstance(part, str))
                if isinstance(value, kind) and not isinstance(value, bool) and keys not in seen:
                    seen.add(keys)
                    yield Place(path.name, way)


def put(folder: Path, place: Place, value: object) -> bytes:
    """Write the file with that value there; what it held before."""
    path = folder / place.file
    before = path.read_bytes()
    content = _content(path)
    at = content
    for part in place.way[:-1]:
        at = at[part]  # type: ignore[index]  # as the file has it
    at[place.way[-1]] = value  # type: ignore[index]  # likewise
    lines = content if path.suffix == ".jsonl" else None
    text = json.dumps(content) if not isinstance(lines, list) else "".join(f"{json.dumps(each)}\n" for each in lines)
    path.write_text(text)
    return before


def forget_sizes(folder: Path) -> None:
    """A changed file has another size, which the manifest would tell."""
    put(folder, Place("manifest.json", ("files",)), {})


def poisoned(folder: Path) -> int:
    """Put NASTY everywhere where a reader lets it stand; in how many places."""
    forget_sizes(folder)
    count = 0
    for place in list(places(folder, str)):
        before = put(folder, place, NASTY)
        try:
            taken = not read(folder).gaps
        except InputError:
            taken = False
        if not taken:
            (folder / place.file).write_bytes(before)
        count += taken
    return count


def _content(path: Path) -> object:
    text = path.read_text()
    return [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)


def _walk(value: object, way: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], object]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _walk(each, (*way, key))
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from _walk(each, (*way, at))
    else:
        yield way, value
