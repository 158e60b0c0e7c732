"""Lines that tables of runs share: what must be the same for one to come out again, runs in doubt. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from hpn.results.judge.verdict import Outcome, Verdict
from hpn.results.run.manifest import Manifest
from tests.product.table_runs import Cell


class MadeRun(Protocol):
    """A run of a table."""

    @property
    def trial(self) -> Cell:
        """Its drill."""

    @property
    def manifest(self) -> Manifest:
        """Its manifest."""

    @property
    def verdict(self) -> Verdict:
        """Its verdict."""


def facts(runs: Sequence[MadeRun]) -> Iterator[str]:
    """Yield what must be the same for the table to come out again."""
    kernels, datapaths = ({getattr(each.manifest, key) for each in runs} for key in ("kernel", "datapath"))
    told = f"Virtual time, Linux {', '.join(sorted(kernels))}, LAG datapath {', '.join(sorted(datapaths))}"
    yield f"{told}, {len(runs)} runs."


def doubted(runs: Sequence[MadeRun]) -> Iterator[str]:
    """Yield runs that broke a promise, or cannot be trusted: they are in the table, and named."""
    for made in runs:
        if made.verdict.outcome is not Outcome.PASS:
            broken = [check.text for check in made.verdict.checks if check.outcome is Outcome.FAIL]
            why = ", ".join(broken) or next(iter(made.verdict.doubts), "a limit was too near")
            yield f"\n{made.trial.name}, phase {made.manifest.phase}: {made.verdict.outcome.value}, {why}"
