"""Generator of a drill whose load fits its fabric after the fault, with limits that the fabric can meet.

Each choice comes with its reason. Changes when ``hpn drill new`` needs to know more about a fabric. The model computes
what is left after the fault. For an unsupported fault the links count as down.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from hpn.failover.analysis.offered import Offered, overloads
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.templates import TEMPLATES
from hpn.scenarios.drill.writing import DrillRequest, completed, written
from hpn.scenarios.model.offered import planned_load
from hpn.testbed.fabric.buffers import lossless_priorities, priority_of
from hpn.testbed.files.document import parse

_LOADS = (40, 35, 30, 25, 20, 15, 10, 8, 6, 5, 4, 3, 2, 1)
"""Shares of a NIC's rate to try, in per cent."""
_ROOM = 0.95
"""Maximum share of a link's rate that leaves room for packets that arrive together."""


@dataclass(frozen=True, slots=True)
class _Fit:
    load: int
    worst: float  # maximum share of any link's rate at any time
    stranded: int  # queue pairs without a path for data or acknowledgements
    queue_pairs: int


def fitted(wish: DrillRequest) -> str:
    """Return a drill file that loads, as ``writing.written``. InputError with the loader's message."""
    wish = completed(wish)
    if not TEMPLATES[wish.template].streams:
        return written(wish)
    first = _fit(wish, _LOADS[0])
    found = first
    for load in _LOADS[1:]:
        if found.worst <= _ROOM:
            break
        found = _fit(wish, load)
    return written(_reasoned(wish, first, found))


def load_lines(drill: Drill) -> list[str]:
    """Return the offered load of a drill as text, before and after each edge; empty without streams."""
    load = planned_load(drill)
    return [] if load is None else [_line(load, span, _excess(drill)) for span in load.settled]


def congestion_lines(drill: Drill) -> list[str]:
    """Return when and where a drill's load exceeds a link's rate, as text: loss there is congestion, or PFC."""
    load = planned_load(drill)
    if load is None:
        return []
    return [_line(load, span, _excess(drill)) for span in load.settled if load.overloaded(span)]


def _excess(drill: Drill) -> str:
    """Return what becomes of more than a link carries."""
    switch = drill.topology.switch
    lossless = switch is not None and priority_of(switch)[switch.rdma_dscp] in lossless_priorities(switch)
    return "PFC stops senders there" if lossless else "loss there is congestion"


def _line(load: Offered, span: int, excess: str) -> str:
    after = load.spans[span].after
    when = f"after {after}" if after else "before"
    if load.spans[span].unknown:
        return f"{when}: not known, the model does not speak to such a fault"
    over = list(overloads(load, span))
    if over:
        more = f" and {len(over) - 3} more" if len(over) > 3 else ""
        return f"{when}: {'; '.join(over[:3])}{more}: {excess}"
    busiest = max(load.links, key=lambda link: link.shares[span] or 0.0, default=None)
    if busiest is None:
        return f"{when}: nothing is offered"
    share = 100 * (busiest.shares[span] or 0.0)
    return f"{when}: {share:.0f} % of the rate of the busiest link, {busiest.sender} to {busiest.towards}"


def _fit(wish: DrillRequest, percent: int) -> _Fit:
    text = written(replace(wish, load=f"{percent} %", folder=""))
    drill = drill_from(parse(text, wish.name), Path())
    load = planned_load(drill, as_dead=True)
    if load is None:
        return _Fit(percent, 0.0, 0, 0)
    shares = [share for link in load.links for share in link.shares if share is not None]
    stranded = max(len({each.flow for each in (*span.pathless, *span.unanswered)}) for span in load.spans)
    return _Fit(percent, max(shares, default=0.0), stranded, load.flows)


def _reasoned(wish: DrillRequest, first: _Fit, found: _Fit) -> DrillRequest:
    """Return the request with the load that fits, its reason, and the flows without a path."""
    if not TEMPLATES[wish.template].breaks:
        why = f"the busiest link carries {found.worst:.0%}"
    elif found.load == first.load:
        why = f"after the fault the busiest link carries {found.worst:.0%}: loss is outage"
    else:
        why = f"after the fault the busiest link carries {found.worst:.0%}; at {first.load} % {first.worst:.0%}"
    return replace(wish, load=f"{found.load} %", why=why, stranded=found.stranded, queue_pairs=found.queue_pairs)
