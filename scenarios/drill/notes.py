"""Notes on a drill that is allowed and perhaps not meant: times within timers, buffers that work against themselves."""

from __future__ import annotations

from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.return_times import return_notes
from hpn.testbed.fabric.buffer_rules import buffer_notes
from hpn.testbed.fabric.build import build


def drill_notes(drill: Drill) -> list[str]:
    """Return the notes, one line each."""
    return [*return_notes(drill), *buffer_notes(build(drill.topology))]
