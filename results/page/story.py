"""Summary of a run in sentences, for readers with ten seconds. Pure.

Changes when a run can end in another way.
"""

from __future__ import annotations

from collections.abc import Sequence

from hpn.failover.analysis.edge import EdgeKind
from hpn.failover.analysis.model import DrillMetrics
from hpn.results.judge.verdict import Outcome, Verdict
from hpn.results.page.names import Names
from hpn.results.run.drill import AskedDrill, AskedFault
from hpn.results.text.checks import describe
from hpn.results.text.harm import EXPECTED
from hpn.results.text.harm import harm as harm_of

_ANSWERS = {
    Outcome.PASS: "Yes: every expectation of the drill was kept.",
    Outcome.FAIL: "No: {broken} of {all} expectations were broken.",
    Outcome.INCONCLUSIVE: "Nothing can be said: {why}.",
}


NO_VERDICT = "no verdict"
_MOST_FAULTS = 3


def faults(drill: AskedDrill | None, names: Names) -> Sequence[str]:
    """Return a line for each fault: its target and times; nothing if the folder lacks the drill."""
    if drill is None:
        return ()
    if not drill.faults:
        return ("nothing: the drill has no fault",)
    more = len(drill.faults) - _MOST_FAULTS
    shown = [_fault(fault, names) for fault in drill.faults[:_MOST_FAULTS]]
    return [*shown, *([f"and {more} more fault{'s' * (more != 1)}"] if more > 0 else [])]


def _fault(fault: AskedFault, names: Names) -> str:
    """Return 'link-down of p0.s0.h0.r0.0, the link from ...; 1.5 s after the traffic began, repaired at 3.5 s'."""
    words = names.words(fault.target)
    at = {kind: [moment.at_ns / 1e9 for moment in fault.moments if moment.kind == kind] for kind in EdgeKind}
    broke, mended = at[EdgeKind.FAILURE], at[EdgeKind.REPAIR]
    times = "" if len(broke) == 1 else f"{len(broke)} times, first "
    when = [f"{times}{broke[0]:.1f} s after the traffic began"] if broke else []
    when += [f"repaired {'at' if len(mended) == 1 else 'last at'} {mended[-1]:.1f} s" if mended else "not repaired"]
    return f"{fault.kind} of {fault.target}{f', {words}' if words else ''}; {', '.join(when)}"


def outcome(verdict: Verdict | None) -> str:
    """Return the word for the outcome: 'pass', 'fail', 'inconclusive' or 'no verdict'."""
    return NO_VERDICT if verdict is None else verdict.outcome.value


def answer(verdict: Verdict | None) -> str:
    """Return a sentence that says if the run met the drill's expectations."""
    if verdict is None:
        return "Nothing can be said: the run came to no verdict, or its folder does not tell it."
    broken = [check for check in verdict.checks if check.outcome is Outcome.FAIL]
    open_ = [check for check in verdict.checks if check.outcome is Outcome.INCONCLUSIVE]
    why = verdict.reasons[0] if verdict.reasons else "a figure is too near to its limit"
    if not verdict.reasons and open_:
        why = f"{open_[0].text} ({describe(open_[0])})"
    return _ANSWERS[verdict.outcome].format(broken=len(broken), all=len(verdict.checks), why=why)


def broken(verdict: Verdict) -> Sequence[str]:
    """Return the broken expectations with their figures; nothing if the complete run cannot be trusted."""
    if verdict.outcome is not Outcome.FAIL:
        return ()
    return [f"{check.text}: {describe(check)}" for check in verdict.checks if check.outcome is Outcome.FAIL]


def harm(metrics: DrillMetrics, outcome: Outcome) -> Sequence[str]:
    """Return the cost of the faults, one line each; for a pass marked as expected."""
    mark = f", {EXPECTED}" if outcome is Outcome.PASS else ""
    return [f"{line}{mark}" for line in harm_of(metrics)]
