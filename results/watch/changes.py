"""Changes of a lab since the previous reading, for logs and programs. Pure except for the stored state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from hpn.results.watch.plane_totals import planes, rails
from hpn.results.watch.problems import Problem, problems
from hpn.results.watch.snapshot import Snapshot


@dataclass(slots=True)
class ChangesSince:
    """Time at which each problem of a lab was first seen."""

    at_ns: dict[tuple[str, str], int] = field(default_factory=dict)
    _before: dict[tuple[str, str], Problem] = field(default_factory=dict)

    def look(self, moment: Snapshot) -> tuple[list[Problem], list[Problem]]:
        """Return new problems, and those that are over."""
        now = {trouble.key: trouble for trouble in problems(moment)}
        new = [trouble for key, trouble in now.items() if key not in self._before]
        over = [trouble for key, trouble in self._before.items() if key not in now]
        for trouble in over:
            del self.at_ns[trouble.key]
        self.at_ns |= {trouble.key: moment.condition.at_ns for trouble in new}
        self._before = now
        return new, over


def document(moment: Snapshot, since: ChangesSince) -> dict[str, object]:
    """Return a moment as JSON: problems, planes, rails, every link. Rates in bit/s, ages in seconds."""
    return {
        "lab": moment.lab,
        "at_ns": moment.condition.at_ns,
        "wrong": [_trouble(moment, trouble, since) for trouble in problems(moment)],
        "planes": [asdict(one) for one in planes(moment)],
        "rails": [asdict(one) for one in rails(moment)],
        "links": _links(moment),
    }


def _trouble(moment: Snapshot, trouble: Problem, since: ChangesSince) -> dict[str, object]:
    age_ns = moment.condition.at_ns - since.at_ns.get(trouble.key, moment.condition.at_ns)
    return {**asdict(trouble), "for_s": round(age_ns / 1e9, 3)}


def _links(moment: Snapshot) -> Sequence[dict[str, object]]:
    return [
        {
            "link": link.name,
            "plane": link.plane,
            "state": moment.state(link),
            "up_bps": moment.rate(link.lower).sent_bps,
            "down_bps": moment.rate(link.upper).sent_bps,
            "load": moment.load(link),
            "drops_per_s": moment.rate(link.lower).drops_per_s + moment.rate(link.upper).drops_per_s,
        }
        for link in moment.fabric.links
    ]
