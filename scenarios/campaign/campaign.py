"""Campaign: run the remaining sequences, then reproduce violations, shrink them and write them as drill files.

Every step is written to the journal before the next, so that a campaign can be interrupted and resumed anywhere.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from hpn.failover.faults import FAULTS, Need
from hpn.failover.inject import needs
from hpn.scenarios.campaign import drillfile
from hpn.scenarios.campaign.journal import DRILLS, PLAN, Entry, Journal, Shrunk, load, opened
from hpn.scenarios.campaign.labs import Labs
from hpn.scenarios.campaign.plan import Choice, FaultSequence, Plan, choices, draw, example, fitting, joined
from hpn.scenarios.campaign.result import Invariant, Outcome, Report, Result, SequenceJob, Violation
from hpn.scenarios.campaign.shrink import MOST_TRIES, shrink
from hpn.scenarios.campaign.survivors import excuse
from hpn.scenarios.drill.workload import flows_of
from hpn.testbed.errors import InputError, MachineError, error_for
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.files.replacing import replace_text
from hpn.testbed.vm.engines import HOST, has_virtual_time, named

_A_LAB = 10
"""Sequences per lab before a new one is started; the maximum that an interruption can cost."""
_OF, _ENOUGH = 3, 2  # number of runs, and how many of them must reproduce a violation
_BETWEEN_NS = 2_000_000_000  # time between two sequences in a drill that holds both
_LONG_IN_VIRTUAL_TIME = 0.25
_SETTLE_NS = 4_000_000_000  # settle time of a written drill: the lab converges while packets still flow


def plan_for(
    folder: Path, seed: int, topology: FabricSpec, engine: str = HOST.name, long_faults: float | None = None
) -> Plan:
    """Return the plan of a new campaign, or of the one in ``folder``, which keeps its kinds of faults.

    ``long_faults``: see ``Plan``. None means the value of the folder, or a quarter in virtual time for a new campaign.
    InputError when the fabric cannot carry the workload, or the campaign has faults that this version does not know.
    """
    fabric = build(topology)
    kinds = _possible(engine, fitting(fabric, FAULTS))
    if os.path.isfile(folder / PLAN):  # unlike Path.is_file, False if not accessible
        before = load(folder)[0]
        kinds = before.kinds
        long_faults = before.long_faults if long_faults is None else long_faults
        unknown = [kind for kind in kinds if kind not in FAULTS]
        if unknown:
            raise InputError(
                f"{folder} draws {unknown[0]}, which this hpn does not know; use the version it began with"
            )
    flows_of(drillfile.WORKLOAD, fabric)
    if long_faults is None:
        long_faults = _LONG_IN_VIRTUAL_TIME if has_virtual_time(engine) else 0.0
    return Plan(seed, topology, kinds, engine, long_faults)


def _possible(engine: str, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the kinds of faults that this kernel supports; guests support all."""
    if named(engine).own_kernel:
        return kinds
    able: dict[frozenset[Need], bool] = {}
    for kind in kinds:
        if FAULTS[kind].NEEDS not in able:
            able[FAULTS[kind].NEEDS] = _can_do(kind)
    return tuple(kind for kind in kinds if able[FAULTS[kind].NEEDS])


def _can_do(kind: str) -> bool:
    try:
        needs.check([example(kind)])
    except MachineError:
        return False
    return True


def in_a_lab(sequences: int, width: int) -> int:
    """Return how many of the sequences one lab runs when ``width`` labs run concurrently."""
    return max(1, min(_A_LAB, -(-sequences // width)))


def drawn(plan: Plan, indexes: Iterable[int], among: tuple[Choice, ...] | None = None) -> Iterator[FaultSequence]:
    """Return the sequences of these indexes; ``among``: the possible choices, if already known."""
    some = choices(build(plan.topology), plan.kinds) if among is None else among
    return (draw(plan, some, index, partial(drillfile.is_valid, plan)) for index in indexes)


def carry_out(folder: Path, plan: Plan, sequences: int, labs: Labs, tries: int = MOST_TRIES) -> Iterator[Entry]:
    """Run the remaining sequences of ``sequences``, then shrink violations; yield every entry once stored.

    A violation is shrunk with at most ``tries`` candidates, each run until it is clear if it fails in the same way.
    InputError for a folder with another campaign, MachineError when labs cannot be started.
    """
    with opened(folder, plan) as journal:
        run = _Campaign(plan, journal, labs, tries)
        yield from run.sequences(sequences)
        yield from run.doubtful()
        yield from run.violations()


@dataclass
class _Campaign:
    plan: Plan
    journal: Journal
    labs: Labs
    tries: int
    fabric: Fabric = field(init=False)
    among: tuple[Choice, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.fabric = build(self.plan.topology)
        self.among = choices(self.fabric, self.plan.kinds)

    def sequences(self, wanted: int) -> Iterator[Entry]:
        """Run every sequence that is not in the journal."""
        done = self.journal.done().indexes
        left = [index for index in range(wanted) if index not in done]
        for result in self._results(self._drawn(left)):
            self.journal.add(result)
            yield result

    def doubtful(self) -> Iterator[Entry]:
        """Run inconclusive sequences once more, each on its own lab."""
        first = (result for result in self.journal.done().results if result.tries == 1)
        again = [result.sequence for result in first if result.outcome is Outcome.INCONCLUSIVE]
        for result in self._results(SequenceJob(self.plan, (sequence,)) for sequence in again):
            second = replace(result, tries=2)
            self.journal.add(second)
            yield second

    def violations(self) -> Iterator[Entry]:
        """Shrink violations, unless one shrunk before explains them."""
        for result in self.journal.done().waiting:
            entry = self._like(result, self.journal.done().shrunk) or self._shrunk(result)
            self.journal.add(entry)
            yield entry

    def _drawn(self, indexes: Sequence[int]) -> Iterator[SequenceJob]:
        """Yield jobs that keep all labs busy, none with more sequences than a lab should run."""
        size = in_a_lab(len(indexes), self.labs.width)
        for at in range(0, len(indexes), size):
            yield SequenceJob(self.plan, tuple(drawn(self.plan, indexes[at : at + size], self.among)))

    def _results(self, fresh: Iterator[SequenceJob]) -> Iterator[Result]:
        """Yield every result; sequences that a lab could not run after a violation go to a new lab."""
        again: deque[SequenceJob] = deque()

        def queue() -> Iterator[SequenceJob]:
            while (job := again.popleft() if again else next(fresh, None)) is not None:
                yield job

        more = True
        while more:
            more = False
            for job, report in self.labs.run(queue()):
                results = _results_of(job, report)
                yield from results
                if len(results) < len(job.sequences):
                    more = True
                    again.append(SequenceJob(job.plan, job.sequences[len(results) :]))

    def _like(self, result: Result, shrunk: Sequence[Shrunk]) -> Shrunk | None:
        """Return the entry for a violation explained by a shrunk one: same invariants, and all its kinds of faults."""
        kinds = {step.kind for step in result.sequence.steps}
        for found in shrunk:
            same = found.file and result.broken <= set(found.invariants)
            if same and {step.kind for step in found.smallest.steps} <= kinds:
                return Shrunk(result.sequence.index, tuple(result.broken), result.sequence, 0, 0, like=found.index)
        return None

    def _shrunk(self, result: Result) -> Shrunk:
        """Reproduce a violation and shrink it as far as possible."""
        index, broken = result.sequence.index, tuple(sorted(result.broken))
        shown: dict[FaultSequence, tuple[int, int]] = {}

        def fails(candidate: FaultSequence) -> bool:
            shown[candidate] = self._again(candidate, result.broken)
            return shown[candidate][0] >= _ENOUGH

        start = next(filter(fails, self._suspects(result)), None)
        if start is None:
            return Shrunk(index, broken, result.sequence, *shown[result.sequence])
        targets = {choice.kind: choice.targets for choice in self.among}
        smallest = shrink(start, fails, partial(drillfile.is_valid, self.plan), targets, self.tries)
        return Shrunk(index, broken, smallest, *shown[smallest], self._write(smallest, result))

    def _suspects(self, result: Result) -> Iterator[FaultSequence]:
        """Yield the possible causes: the sequence alone, after the one before in its lab, after all before."""
        yield result.sequence
        known = {each.sequence.index: each.sequence for each in self.journal.done().results}
        before = [known[index] for index in result.before if index in known]
        for first in sorted({len(before) - 1, 0}, reverse=True) if before else ():
            found = before[first]
            for sequence in (*before[first + 1 :], result.sequence):
                found = joined(found, sequence, drillfile.drill_of(self.plan, found).timeline.end_ns + _BETWEEN_NS)
            yield found

    def _again(self, sequence: FaultSequence, broken: frozenset[Invariant]) -> tuple[int, int]:
        """Return how many runs break one of the same invariants, and the number of runs; each run has its own lab."""
        failed = runs = 0
        while failed < _ENOUGH and runs - failed <= _OF - _ENOUGH and runs < _OF:
            jobs = [SequenceJob(self.plan, (sequence,)) for _ in range(_ENOUGH - failed)]
            for job, report in self.labs.run(jobs):
                runs += 1
                failed += any(result.broken & broken for result in _results_of(job, report))
        return failed, runs

    def _write(self, smallest: FaultSequence, result: Result) -> str:
        """Write the drill file; return its path within the folder."""
        longer = replace(smallest, settle_ns=max(smallest.settle_ns, _SETTLE_NS))
        faults = drillfile.drill_of(self.plan, longer).timeline.faults
        flows = flows_of(drillfile.WORKLOAD, self.fabric)
        excused = sum(bool(excuse(self.fabric, faults, flow)) for flow in flows)
        name = f"{drillfile.name_of(self.plan, smallest)}.yaml"
        why = "\n".join(f"{each.invariant}: {each.text}" for each in result.violations)
        folder = self.journal.folder / DRILLS
        folder.mkdir(exist_ok=True)
        replace_text(folder / name, drillfile.text_of(self.plan, longer, drillfile.Note(excused, why)))
        return f"{DRILLS}/{name}"


def _results_of(job: SequenceJob, report: Report) -> list[Result]:
    """Return a result for every sequence that was run. hpn's own errors are raised when no lab could be started."""
    results = list(report.results)
    if report.leaks:
        left = Violation(Invariant.LEAK, f"after its lab had ended: {', '.join(report.leaks)}")
        results[-1:] = [replace(last, violations=(*last.violations, left)) for last in results[-1:]]
    if report.error and not report.stood:
        raise error_for(report.exit_code, report.error)
    if (report.error or report.crash) and len(results) < len(job.sequences):
        at = job.sequences[len(results)]
        crash = () if report.error else (Violation(Invariant.CRASH, report.crash),)
        before = tuple(result.sequence.index for result in results)
        results.append(Result(at, crash, (report.error,) if report.error else (), before))
    return results
