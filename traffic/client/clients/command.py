"""``command``: any program, one process for each rank. PURE."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from hpn.testbed.kernel.process.programs import find
from hpn.traffic.client import programs
from hpn.traffic.client.client import Client, Site
from hpn.traffic.client.plan import ClientPlan, ClientProcess, Starts
from hpn.traffic.client.ranks import ClientRank

_PROGRAMS = str(Path(programs.__file__).parent)


def _can_be_passed_on(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds a null character, which no program can be given; remove it")
    return text


Word = Annotated[str, AfterValidator(_can_be_passed_on)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", examples=["OMP_NUM_THREADS"])]


class Command(Client):
    """Any program. In its words {here} is the drill file's folder, {python} the Python of hpn, {programs} our own."""

    KEY = "command"
    SUMMARY = "any program, one process a rank"

    command: list[Word] = Field(min_length=1, max_length=256, examples=["['{python}', '{here}/mine.py']"])
    starts: Literal["ready", "begin"] = Starts.READY.value
    reports: Literal["all", "first", "none"] = "all"
    env: dict[Name, Word] = Field(default_factory=dict)
    repeatable: bool = True

    def missing(self, site: Site) -> str | None:
        """Return the problem if the program is not there, else None."""
        words = self._words(site)
        program = words[0]
        if find(program) is None:
            where = "in PATH" if os.sep not in program else "there, or may not be run"
            hint = "install it, or write its whole path or {here}/NAME for one beside the drill file"
            return f"client command: {program!r} is not {where}; {hint}"
        return None

    def plan(self, ranks: Sequence[ClientRank], site: Site) -> ClientPlan:
        """Return the same command for every rank; its environment has the rank."""
        words = self._words(site)
        argv = (find(words[0]) or words[0], *words[1:])
        all_ranks = tuple(rank.rank for rank in ranks)
        reporting = {"all": all_ranks, "first": all_ranks[:1], "none": ()}[self.reports]
        return ClientPlan(
            processes=tuple(ClientProcess((rank.rank,), rank.host, argv, self.env) for rank in ranks),
            starts=Starts(self.starts),
            reporting=reporting,
            repeatable=self.repeatable,
        )

    def _words(self, site: Site) -> tuple[str, ...]:
        places = {"{here}": str(site.here), "{python}": site.python, "{programs}": _PROGRAMS}
        found = []
        for word in self.command:
            for name, value in places.items():
                word = word.replace(name, value)
            found.append(word)
        return tuple(found)
