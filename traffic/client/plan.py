"""Plan of a client's run as data: processes, their ranks, and the adapter for their output. PURE.

Changes when the runner of clients (``scenarios.run.clients_on_lab``) needs more data about one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from hpn.traffic.client.lines import Line, Said, parse


class Starts(StrEnum):
    """Start of a client's program: before the run or at its begin, and how it gets the times."""

    READY = "ready"  # before the run; prints 'hpn ready', and reads 'begin NS until NS' from standard input
    BEGIN = "begin"  # at the run's begin; HPN_UNTIL_NS in its environment is the end of the run


@dataclass(frozen=True, slots=True)
class ClientProcess:
    """One process on a host, and its ranks; ``env`` in addition to the common environment.

    ``memory_mb``: its memory with all its children, which a guest must have.
    """

    ranks: tuple[int, ...]
    host: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    memory_mb: int = 24


class Adapter(Protocol):
    """Converter of one process's standard output into steps; each process has its own, as it may have state."""

    def heard(self, line: Line) -> Iterable[Said]:
        """Return the meaning of a line. Steps without times get those of the line's arrival."""


class Plain:
    """Adapter for the line format of ``traffic.client.lines`` itself."""

    def heard(self, line: Line) -> Iterable[Said]:
        """Return one item per line."""
        return (parse(line),)


def plain(_process: ClientProcess) -> Adapter:
    """Return the adapter for programs that print the line format themselves."""
    return Plain()


@dataclass(frozen=True, slots=True)
class ClientPlan:
    """A client on a fabric. ``reporting``: the ranks that report steps; a step is done when all have reported it.

    ``repeatable``: True if two runs in virtual time are identical to the byte.
    """

    processes: tuple[ClientProcess, ...]
    starts: Starts
    reporting: tuple[int, ...]
    adapter: Callable[[ClientProcess], Adapter] = plain
    repeatable: bool = True
