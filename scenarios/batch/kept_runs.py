"""Folder of many drills and their runs: drill files below ``drills``, runs below ``runs``, and what all of them share.

Changes when runs are kept or resumed in another way. A run counts as made if it is complete and of the same drill file.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError

from hpn.results.run.folder import RunFolder
from hpn.scenarios.batch.pool.drills import RequestedRun
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.run.run_order import Order
from hpn.testbed.errors import InputError
from hpn.testbed.files.bounded import read_bounded
from hpn.testbed.files.replacing import replace, replace_text
from hpn.testbed.vm.engines import EngineSpec

DRILLS, RUNS = "drills", "runs"
_MOST_OF_IDENTITY = 4_000_000
Identity = TypeVar("Identity", bound="Any")  # a dataclass


class DrillText(Protocol):
    """A drill of the folder: its name there, the text of its file, and the drill in it."""

    @property
    def name(self) -> str:
        """Name of the file and of the run, unique in the folder."""

    @property
    def text(self) -> str:
        """Text of the drill file."""

    @property
    def drill(self) -> Drill:
        """The drill; its source is the file in the folder."""


@dataclass(frozen=True, slots=True)
class KeptRuns:
    """Drills and runs in the folder ``out``."""

    out: Path

    def folder(self, name: str) -> Path:
        """Return the place of a run."""
        return self.out / RUNS / name

    def drill_file(self, name: str) -> Path:
        """Return the place of a drill file."""
        return self.out / DRILLS / f"{name}.yaml"

    def is_made(self, wanted: DrillText) -> bool:
        """Return True if the folder has a complete run of this drill."""
        run = RunFolder(self.folder(wanted.name))
        if not run.has_verdict or not os.path.isfile(run.path / "manifest.json"):
            return False
        try:
            return self.drill_file(wanted.name).read_text(encoding="utf-8") == wanted.text
        except (OSError, UnicodeDecodeError):
            return False

    def write(self, left: Iterable[DrillText]) -> None:
        """Write the files of the drills that are to be run; a run of another drill loses its verdict first. OSError."""
        (self.out / DRILLS).mkdir(parents=True, exist_ok=True)
        for wanted in left:
            (self.folder(wanted.name) / "verdict.json").unlink(missing_ok=True)
            replace_text(self.drill_file(wanted.name), wanted.text)

    def requests(self, left: Iterable[DrillText], spec: EngineSpec) -> dict[str, RequestedRun]:
        """Return the runs to be made by name, as requests to a pool."""
        return {each.name: RequestedRun(self._order(each, spec), spec) for each in left}

    def _order(self, wanted: DrillText, spec: EngineSpec) -> Order:
        repeats = ("drill", "run", f"{DRILLS}/{wanted.name}.yaml", "--engine", spec.name)
        return Order(wanted.drill, self.folder(wanted.name), repeats)


@dataclass(frozen=True, slots=True)
class Claim:
    """File that says what a folder holds. ``what``: such as 'an audit'; ``own``: other names that may lie there."""

    name: str
    what: str
    own: Collection[str] = ()

    def check_place(self, out: Path) -> None:
        """Raise InputError if the folder has other content."""
        if os.path.isdir(out) and not os.path.isfile(out / self.name) and {*os.listdir(out)} - {*self.own, self.name}:
            raise InputError(f"{out} is not empty and holds no {self._kind}; choose another --out")

    def take(self, out: Path, adapter: TypeAdapter[Identity], wanted: Identity) -> None:
        """Write what the folder holds, or compare it. InputError when it holds another one; OSError."""
        path = out / self.name
        if not os.path.isfile(path):
            replace(path, adapter.dump_json(wanted, indent=1))
            return
        try:
            kept = adapter.validate_json(read_bounded(path, _MOST_OF_IDENTITY, f"{self._kind}'s plan"))
        except (ValidationError, OSError) as error:
            raise InputError(f"{path} is damaged or of another version; choose another --out") from error
        differs = [each.name for each in fields(wanted) if getattr(kept, each.name) != getattr(wanted, each.name)]
        if differs:
            raise InputError(f"{out} holds {self.what} of another {' and '.join(differs)}; choose another --out")

    @property
    def _kind(self) -> str:
        return self.what.partition(" ")[2]
