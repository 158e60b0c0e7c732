"""Reader of the trace files that a job replays: find them alongside the drill and detect their format.

Trace files are untrusted input.
"""

from __future__ import annotations

import re
from pathlib import Path
from stat import S_ISREG

from hpn.testbed.errors import InputError
from hpn.testbed.files.check import Mistakes
from hpn.testbed.files.units import format_size
from hpn.traffic.job.chakra.reading import read_chakra
from hpn.traffic.job.chakra.work import ChakraWork
from hpn.traffic.job.trace import TraceWork
from hpn.traffic.job.tracefile import read_trace

MOST_TRACE_BYTES = 8 << 20
"""Maximum size of all files of a trace."""

_WHERE = ("job", "trace")
_OF_RANK = re.compile(r"(?P<name>.+)\.(?P<rank>0|[1-9][0-9]{0,5})\.json", re.DOTALL)


def trace_of(mistakes: Mistakes, path: Path) -> TraceWork | ChakraWork | None:
    """Return the work of a trace file in PARAM's form (a JSON list) or in Chakra's; None if it is invalid.

    A Chakra trace ``NAME.0.json`` is read with the files of the other ranks in its folder. A file with any other name
    applies to all ranks.
    """
    try:
        text = _read(path, MOST_TRACE_BYTES)
        if not text.lstrip().startswith("{"):
            return read_trace(text, path.name)
        files = [(path.name, text)]
        left = MOST_TRACE_BYTES - len(text.encode())
        for other in _others(path):
            files.append((other.name, _read(other, left)))
            left -= len(files[-1][1].encode())
        return read_chakra(files, shared=_OF_RANK.fullmatch(path.name) is None)
    except InputError as error:
        mistakes.add_all(_WHERE, error, "job.trace: ")
    except OSError as error:
        mistakes.add(_WHERE, f"job.trace: cannot look for the files of other ranks beside {path}: {error.strerror}")
    return None


def _others(first: Path) -> list[Path]:
    """Return the files of ranks 1, 2, ... that belong to the file of rank 0. InputError when one is missing."""
    found = _OF_RANK.fullmatch(first.name)
    if found is None:
        return []
    name = found["name"]
    ranks = {
        int(other["rank"])
        for each in first.parent.iterdir()
        if (other := _OF_RANK.fullmatch(each.name)) is not None and other["name"] == name
    }
    missing = next((rank for rank in range(len(ranks)) if rank not in ranks), None)
    if missing is not None:
        text = f"{name}.{missing}.json is missing, and there is {name}.{max(ranks)}.json"
        raise InputError(f"{text}; a trace has a file for each rank")
    if found["rank"] != "0":
        raise InputError(f"{first.name} is of rank {found['rank']} alone; name {name}.0.json, the others are found")
    return [first.with_name(f"{name}.{rank}.json") for rank in range(1, len(ranks))]


def _read(path: Path, most: int) -> str:
    """Return the text of a file of at most ``most`` bytes. InputError when it is not such a file."""
    try:
        if not S_ISREG(path.stat().st_mode):
            raise InputError(f"cannot read {path}: it is no regular file; name a file beside the drill")
        with path.open("rb") as file:
            content = file.read(most + 1)  # do not trust the size: the file may grow, or be generated
        if len(content) <= most:
            return content.decode()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; name a file beside the drill") from None
    except ValueError as error:
        why = "it is no text" if isinstance(error, UnicodeDecodeError) else "no file has such a name"
        raise InputError(f"cannot read {path.name!r}: {why}; name a file beside the drill") from None
    before = "" if most == MOST_TRACE_BYTES else ", with those of the ranks before it,"
    raise InputError(f"{path}{before} is longer than {format_size(MOST_TRACE_BYTES)}; cut it to a few iterations")
