"""What a run shows and whether it did, in sentences for somebody who has ten seconds. Pure.

Changes when a run can end in another way. A pass of a drill that expects harm is told with the harm: that eight queue
pairs died as expected is no good news of the network.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from failover.analysis.model import DrillMetrics
from results.text.terminal import describe
from results.verdict import Outcome, Verdict

_ANSWERS = {
    Outcome.PASS: "Yes: every expectation of the drill was kept.",
    Outcome.FAIL: "No: {broken} of {all} expectations were broken.",
    Outcome.INCONCLUSIVE: "Nothing can be said: {why}.",
}


NO_VERDICT = "no verdict"


def outcome(verdict: Verdict | None) -> str:
    """The word for it: 'pass', 'fail', 'inconclusive', or that there is none."""
    return NO_VERDICT if verdict is None else verdict.outcome.value


def answer(verdict: Verdict | None) -> str:
    """Whether the run showed what its drill expects."""
    if verdict is None:
        return "Nothing can be said: the run came to no verdict, or its folder does not tell it."
    broken = [check for check in verdict.checks if check.outcome is Outcome.FAIL]
    open_ = [check for check in verdict.checks if check.outcome is Outcome.INCONCLUSIVE]
    why = verdict.reasons[0] if verdict.reasons else "a figure is too near to its limit"
    if not verdict.reasons and open_:
        why = f"{open_[0].text} ({describe(open_[0])})"
    return _ANSWERS[verdict.outcome].format(broken=len(broken), all=len(verdict.checks), why=why)


def broken(verdict: Verdict) -> Sequence[str]:
    """What was not kept: each with its figures; nothing where the run as a whole cannot be trusted."""
    if verdict.outcome is not Outcome.FAIL:
        return ()
    return [f"{check.text}: {describe(check)}" for check in verdict.checks if check.outcome is Outcome.FAIL]


def harm(metrics: DrillMetrics, outcome: Outcome) -> Sequence[str]:
    """What the faults cost, in one line each; of a pass as what the drill expects."""
    found = list(_harm(metrics))
    if found and outcome is Outcome.PASS:
        return [f"{line}, as the drill expects or allows" for line in found]
    return found


def _harm(metrics: DrillMetrics) -> Iterator[str]:
    died = sum(edge.flows_died for edge in metrics.edges)
    if died:
        yield f"{died} queue pair{'s' * (died != 1)} died"
    never = max((edge.flows_unrecovered for edge in metrics.edges), default=0)
    if never:
        yield f"{never} flow{'s' * (never != 1)} had not recovered when the run ended"
    job = metrics.job
    if job is not None and job.deaths:
        again = sum(death.restarted_at_ns is not None for death in job.deaths)
        yield f"the job died {len(job.deaths)} time{'s' * (len(job.deaths) != 1)} and was started again {again}"
    if job is not None and job.wrong:
        yield f"{job.wrong} results of collectives were wrong"
    lost = sum(edge.lost for edge in metrics.edges)
    if lost:
        yield f"{lost:,} packets were lost"
