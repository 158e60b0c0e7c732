"""What of a running lab is not as its fabric wants it, at one moment: what its supervisor tells whoever looks at it.

Changes when something more can be seen to be wrong with a lab.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Condition:
    """Whatever is not named here is well. Names are the fabric's; a port is 'node:interface'.

    ``at_ns`` is CLOCK_MONOTONIC when the last of it was looked at. ``events`` counts the timeline since the lab began:
    kind, then what happened, then the plane that it happened in ('' of hosts), to how often. ``busy_ns`` is for how
    long telling this kept the supervisor from everything else.
    """

    at_ns: int
    broken: tuple[str, ...] = ()  # parts that were broken by hand, and the links that went down with them
    dead: tuple[str, ...] = ()  # switches whose BGP daemon does not run
    held: Mapping[str, str] = field(
        default_factory=dict
    )  # ToRs: 'hung', 'leaving', ... or, by their stack, 'shut its ports'
    dark: tuple[str, ...] = ()  # ports that are down or without carrier
    idle: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # LACP ports to Mux state and why it idles
    active: Mapping[str, int] = field(default_factory=dict)  # NICs that miss ports to how many their LAG uses
    sessions_down: tuple[str, ...] = ()  # ports whose BGP session is not established
    bfd_down: tuple[str, ...] = ()  # ports whose BFD session is not up, where the fabric has BFD
    routes: Mapping[str, str] = field(default_factory=dict)  # switches that lack routes to NICs, and what of them
    events: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    busy_ns: int = 0
