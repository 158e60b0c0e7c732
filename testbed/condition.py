"""Deviations of a running lab from its fabric at one moment, as its supervisor reports them.

Changes when another kind of deviation can be detected in a lab.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Condition:
    """Everything that is not as the fabric defines it. Names are the fabric's; a port is 'node:interface'.

    ``at_ns`` is CLOCK_MONOTONIC when the last part was examined. ``events`` counts the timeline since the lab began:
    kind, then event, then its plane ('' for hosts), to the number of times. ``busy_ns`` is how long the supervisor was
    blocked by collecting this.
    """

    at_ns: int
    broken: tuple[str, ...] = ()  # parts that were broken by hand, and the links that went down with them
    dead: tuple[str, ...] = ()  # switches whose BGP daemon is not running
    held: Mapping[str, str] = field(
        default_factory=dict
    )  # ToRs: 'hung', 'leaving', ... or, by their stack, 'shut its ports'
    dark: tuple[str, ...] = ()  # ports that are down or without carrier
    idle: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # LACP ports to Mux state and why it idles
    active: Mapping[str, int] = field(default_factory=dict)  # NICs that miss ports to how many their LAG uses
    sessions_down: tuple[str, ...] = ()  # ports whose BGP session is not established
    bfd_down: tuple[str, ...] = ()  # ports whose BFD session is not up, where the fabric has BFD
    routes: Mapping[str, str] = field(default_factory=dict)  # switches that lack routes to NICs, and which
    events: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    busy_ns: int = 0
    suspects: Mapping[str, str] | None = None  # parts that hpn locate accuses, and of what; None: nobody locates
