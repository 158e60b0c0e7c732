"""What a client is to run, as data: processes, the ranks in each, and how their lines are read. PURE.

Changes when whoever runs clients (``scenarios.run.clients_on_lab``) must know something more of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from hpn.traffic.client.lines import Line, Said, parse


class Starts(StrEnum):
    """When a client's program is started, and what it is told."""

    READY = "ready"  # before the run; it says 'hpn ready', and reads 'begin NS until NS' from standard input
    BEGIN = "begin"  # at the run's begin; HPN_UNTIL_NS in its environment says when the run ends


@dataclass(frozen=True, slots=True)
class ClientProcess:
    """One process on a host, and the ranks that it speaks for; ``env`` beside what every process gets.

    ``memory_mb``: what it takes with all that it starts, which a guest must have.
    """

    ranks: tuple[int, ...]
    host: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    memory_mb: int = 24


class Adapter(Protocol):
    """Makes steps of what one process prints on standard output; one for each process, as it may remember."""

    def heard(self, line: Line) -> Iterable[Said]:
        """What a line says. Times that are not told are those of the line's arrival."""


class Plain:
    """The line format of ``traffic.client.lines`` itself."""

    def heard(self, line: Line) -> Iterable[Said]:
        """One thing a line."""
        return (parse(line),)


def plain(_process: ClientProcess) -> Adapter:
    """For programs that print the line format themselves."""
    return Plain()


@dataclass(frozen=True, slots=True)
class ClientPlan:
    """A client on a fabric. ``reporting``: the ranks that tell steps, all of which a step needs to be done.

    ``repeatable``: whether two runs in virtual time are the same to the byte.
    """

    processes: tuple[ClientProcess, ...]
    starts: Starts
    reporting: tuple[int, ...]
    adapter: Callable[[ClientProcess], Adapter] = plain
    repeatable: bool = True
