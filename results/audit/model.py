"""Answer of an audit as data: a row for each failure, and what became of its promises. Pure.

Changes when a row says more. Rows come from run folders, so that the same runs give the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from hpn.failover.analysis.dark import DarkNic
from hpn.results.judge.verdict import Check, Outcome
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.files.bounded import read_bounded

ANSWER = "audit.json"
ERROR = "error"
"""Outcome of a failure that could not be tried."""
_MOST_BYTES = 256_000_000
_RANK = {Outcome.FAIL.value: 0, ERROR: 1, Outcome.INCONCLUSIVE.value: 2, Outcome.PASS.value: 3}


@dataclass(frozen=True, slots=True)
class Figure:
    """A time in ms with its measurement error; ``open``: it had not ended, so ``ms`` is a lower bound."""

    ms: float
    low: float
    high: float
    open: bool = False


@dataclass(frozen=True, slots=True)
class Moment:
    """Effect at one edge: failure or return. Flows of hosts that fail themselves are left out.

    ``outage``: the longest of a flow. ``lossy`` of ``flows`` lost something. ``converged`` None: no protocol changed.
    """

    outage: Figure
    lost: int
    lossy: int
    flows: int
    dark: tuple[DarkNic, ...]
    converged: Figure | None


@dataclass(frozen=True, slots=True)
class Row:
    """One failure. ``crossed``: flows whose data or acknowledgements crossed what fails; None: not known.

    ``cut_off``: NICs and hosts that stay cut off while the element is down, its own left out. ``run``: run folder,
    relative. ``unfit``: promises that cannot be judged there, each with the reason.
    """

    key: str
    kind: str
    element: str
    words: str
    targets: tuple[str, ...]
    outcome: str
    run: str = ""
    reasons: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    failure: Moment | None = None
    back: Moment | None = None
    crossed: int | None = None
    cut_off: tuple[str, ...] = ()
    noise_floor_ms: float = 0.0
    resolution_ms: float = 0.0
    unfit: tuple[tuple[str, str], ...] = ()
    by_timers: bool = False  # only a protocol's timers notice it: one draw of their phase

    @property
    def single_point(self) -> bool:
        """True if the element alone cuts off a NIC."""
        return bool(self.cut_off) and len(self.targets) == 1

    @property
    def broken(self) -> tuple[Check, ...]:
        """Promises that are broken."""
        return tuple(check for check in self.checks if check.outcome is Outcome.FAIL)

    @property
    def darkest_ms(self) -> float:
        """Longest darkness of a NIC at the failure in ms."""
        return max((dark.ms for dark in self.failure.dark), default=0.0) if self.failure is not None else 0.0

    @property
    def cost(self) -> tuple[float, ...]:
        """Sort key: the more it costs, the larger."""
        found = self.failure
        outage = (0.0, 0.0) if found is None else (found.outage.ms, float(found.lost))
        lost_back = 0.0 if self.back is None else float(self.back.lost)
        return (-_RANK.get(self.outcome, 0), float(len(self.cut_off)), self.darkest_ms, *outage, lost_back)


@dataclass(frozen=True, slots=True)
class Answer:
    """The whole audit. ``left_out``: failures that make no drill here, each with the reason.

    ``short_routes``: host routes that lack next hops before anything fails, a line for each switch.
    """

    topology: FabricSpec
    engine: str
    promises: tuple[str, ...]
    rows: tuple[Row, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    waiting: int = 0  # failures that have not been tried yet
    short_routes: tuple[str, ...] = ()

    @property
    def worst_first(self) -> tuple[Row, ...]:
        """Rows, the most costly first; equal ones in the order of the audit."""
        return tuple(sorted(self.rows, key=lambda row: tuple(-each for each in row.cost)))

    def count(self, outcome: str) -> int:
        """Return the number of rows with an outcome."""
        return sum(row.outcome == outcome for row in self.rows)

    @property
    def exit_code(self) -> int:
        """Exit code as of a suite: 1 a promise is broken, 3 not everything could be run, 4 inconclusive, 0 pass."""
        return exit_code(self.rows) or (4 if self.waiting else 0)

    @property
    def single_points(self) -> tuple[Row, ...]:
        """Rows of single points."""
        return tuple(row for row in self.worst_first if row.single_point)


def exit_code(rows: Sequence[Row]) -> int:
    """Return the exit code of these rows."""
    found = {row.outcome for row in rows}
    codes = ((Outcome.FAIL.value, 1), (ERROR, 3), (Outcome.INCONCLUSIVE.value, 4))
    return next((code for outcome, code in codes if outcome in found), 0 if found else 4)


_ANSWER = TypeAdapter(Answer)


def answer_json(answer: Answer) -> bytes:
    """Return the answer as JSON, with only those keys of the topology that are no default."""
    plain = _ANSWER.dump_python(answer, mode="json", exclude={"topology"})
    spec = answer.topology.model_dump(mode="json", exclude_unset=True)
    return TypeAdapter(object).dump_json({**plain, "topology": spec}, indent=1) + b"\n"


def is_audit(folder: Path) -> bool:
    """Return True if the folder has the answer of an audit."""
    return os.path.isfile(folder / ANSWER)


def load_answer(path: Path) -> Answer:
    """Return the answer in a file. InputError when it holds none."""
    try:
        return _ANSWER.validate_json(read_bounded(path, _MOST_BYTES, "audit's answer"))
    except (ValidationError, OSError) as error:
        raise InputError(f"{path} is no answer of hpn audit, or of another version; run the audit again") from error
