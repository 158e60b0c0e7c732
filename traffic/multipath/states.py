"""States that a path may have for the sender of a queue pair. PURE.

The first three are MRC's, by the summaries of its papers; ``assumed-bad`` is for paths that share a dark port.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpn.testbed.entries import Registry


@dataclass(frozen=True, slots=True)
class PathState:
    """State of a path. ``carries``: it takes data whenever its turn comes. ``probed``: only a probe brings it back."""

    name: str
    summary: str
    carries: bool
    probed: bool


GOOD = PathState("good", "takes data in its turn", carries=True, probed=False)
SKIPPED = PathState("skipped", "congested: a mark was reported; takes none for a while", carries=False, probed=False)
DENIED = PathState("denied", "lost a packet; takes none until a probe is answered", carries=False, probed=True)
ASSUMED_BAD = PathState("assumed-bad", "shares a port that looks dark; as denied", carries=False, probed=True)

PATH_STATES: Registry[PathState] = Registry(
    "path state", lambda state: state.name, (GOOD, SKIPPED, DENIED, ASSUMED_BAD), of=PathState
)
