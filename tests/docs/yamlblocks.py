"""A block of YAML on a page, read by what reads such files of users; fragments are completed by a few rules.

* ``drill:`` at its top: a drill. ``suite:``: a suite. ``preset:`` or ``architecture:``: a topology.
* Other keys are those of a drill, laid over ``_DRILL``: a job takes the workload's place.
* A list of entries with ``fault:`` is a timeline's, any other list a drill's expectations.
* A line ``...`` stands for what is left out; what is on either side of it is a fragment, all of them of one file.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import yaml

from hpn.scenarios.batch.suite.suite import suite_from
from hpn.scenarios.drill.load import drill_from
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.files.document import parse
from hpn.testbed.vm.engines import ENGINES

_DRILL = """
drill: fragment
summary: what a fragment is completed with
topology: tiny
workload: {load: 40 %}
sample: {queues: 10 ms}
timeline:
  healthy: 1500 ms
  faults:
    - {id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 1500 ms, for: 2 s}
  settle: 8 s
expect:
  - packets_lost: {at_least: 0}
"""
_TOPOLOGY = {"preset", "architecture"}


def load(text: str, place: str, folder: Path) -> None:
    """Read a block; ``folder`` has the files that it names. InputError as its reader."""
    if "\n..." in text:
        top = _completed([yaml.safe_load(textwrap.dedent(part)) for part in _parts(text)])
    else:
        top = yaml.safe_load(text)
        if isinstance(top, dict) and "suite" in top:
            suite_from(parse(text, place), folder, tuple(ENGINES))
            return
        if isinstance(top, dict) and top.keys() & _TOPOLOGY:
            file = folder / "topology.yaml"
            file.write_text(text)
            load_fabric(str(file))
            return
        if not isinstance(top, dict) or "drill" not in top:
            top = _completed([top])
        else:
            drill_from(parse(text, place), folder)
            return
    drill_from(parse(yaml.safe_dump(top, sort_keys=False), place), folder)


def _parts(text: str) -> list[str]:
    found: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.strip() == "...":
            found.append([])
        else:
            found[-1].append(line)
    return ["\n".join(lines) for lines in found if lines]


def _completed(fragments: list[object]) -> dict[str, object]:
    drill: dict[str, object] = yaml.safe_load(_DRILL)
    for fragment in fragments:
        if isinstance(fragment, dict):
            drill |= fragment
        elif isinstance(fragment, list) and "fault" in fragment[0]:
            timeline = drill["timeline"]
            assert isinstance(timeline, dict)
            timeline["faults"] = fragment
        else:
            drill["expect"] = fragment
    if "job" in drill:
        del drill["workload"]
        drill["expect"] = [{"job_survives": True}]
    return drill
