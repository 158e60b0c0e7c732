"""Convert a sequence to a drill: the data of a drill file, its text, and the drill read from it. PURE.

A campaign runs the same drill that ``hpn drill run`` would read from the file, so that the file reproduces it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

from hpn.failover.faults import FAULTS, Parameter, Unit, parameters
from hpn.scenarios.campaign.plan import HEALTHY_NS, FaultSequence, FaultStep, Plan, Value
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.model import Drill, Workload
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.writing import as_data
from hpn.testbed.files.document import Document, Plain
from hpn.testbed.files.units import format_duration, format_percent

LOAD = 0.02
TICK_MS = 10
QUEUE_PAIRS = 2
_SUMMARY = 160


WORKLOAD = Workload(queue_pairs=QUEUE_PAIRS, load=LOAD, tick_ns=TICK_MS * 10**6)
"""Traffic of every sequence: so light that several labs fit on two cores."""


@dataclass(frozen=True, slots=True)
class Note:
    """Extra content of a drill file: how many queue pairs the faults may kill, and why it was written."""

    deaths: int = 0
    why: str = ""


def name_of(plan: Plan, sequence: FaultSequence) -> str:
    """Return the drill's name, unique within the campaign."""
    return f"campaign-{plan.seed}-{sequence.index}"


def drill_of(plan: Plan, sequence: FaultSequence, note: Note = Note()) -> Drill:
    """Return the sequence as a drill. InputError with every reason why it is invalid."""
    data = data_of(plan, sequence, note)
    return drill_from(Document(name_of(plan, sequence), data, {(): 1}), Path())


def is_valid(plan: Plan, sequence: FaultSequence) -> bool:
    """Return True if the sequence is a valid drill."""
    try:
        drill_of(plan, sequence)
    except InputError:
        return False
    return True


def text_of(plan: Plan, sequence: FaultSequence, note: Note = Note()) -> str:
    """Return the text of the drill file."""
    return yaml.safe_dump(data_of(plan, sequence, note), sort_keys=False, width=118, allow_unicode=True)


def data_of(plan: Plan, sequence: FaultSequence, note: Note) -> dict[str, Plain]:
    """Return the content of the drill file.

    It needs no expectation for unaffected flows: every verdict checks that they lose nothing.
    """
    return {
        "drill": name_of(plan, sequence),
        "summary": _shorten(sequence.words),
        **({"description": note.why} if note.why else {}),
        "topology": as_data(plan.topology),
        "workload": {
            "pattern": "permutation",
            "queue_pairs": QUEUE_PAIRS,
            "load": format_percent(LOAD),
            "tick": f"{TICK_MS} ms",
        },
        "profile": "quick",
        "timeline": {
            "healthy": format_duration(HEALTHY_NS),
            "faults": [entry(number, step) for number, step in enumerate(sequence.steps, 1)],
            "settle": format_duration(sequence.settle_ns),
        },
        "expect": [
            {"state_restored": True},
            {"queue_pair_deaths": {"at_most": note.deaths}},
        ],
    }


def _shorten(text: str) -> str:
    return text if len(text) <= _SUMMARY else f"{text[: _SUMMARY - 3]}..."


def entry(number: int, step: FaultStep) -> dict[str, Plain]:
    """Return the entry of one fault. KeyError for an unknown kind or parameter, ValueError for an invalid value."""
    found: dict[str, Plain] = {
        "id": f"fault{number}",
        "fault": step.kind,
        "target": step.target,
        "at": format_duration(step.at_ns),
    }
    if step.for_ns is not None:
        found["for"] = format_duration(step.for_ns)
    known = {parameter.key: parameter for parameter in parameters(FAULTS[step.kind]).values()}
    return found | {key: _written(known[key], value) for key, value in step.arguments}


def _written(parameter: Parameter, value: Value) -> Plain:
    if parameter.unit is Unit.DURATION:
        return format_duration(int(value))
    return format_percent(float(value)) if parameter.unit is Unit.PERCENT else value
