"""The drills of the table fault by profile of hosts: one fault each, the same under every profile. PURE.

Everything that decides a figure of the table is in this module: change it, and the runs are made again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hpn.testbed.fabric.profiles import LAB, PRODUCTION, PROFILES

HEALTHY_S, SETTLE_S = 2, 8
QUEUE_PAIRS, IB_TIMEOUT = 2, 20
_TOPOLOGY = "preset: tiny, rails: 1, scale: 10000"
_LINK, _TOR = "p0.s0.h0.r0.0", "p0.s0.t0.0"
LIGHT_OFF_S = 5
LIGHT_ON_S: Mapping[str, int] = {LAB: 15, PRODUCTION: 105}
"""How long faults last that carrier does not tell of: the LACP of all is through with them by then.

It expires after 3 or 90 s, and is defaulted 3 s later (IEEE 802.1AX 6.4.12, Short Timeout). BGP's hold time is 9 s.
"""
_MANY, _FEW = "10 %", "3 %"
"""Loads: at 20 Mbit/s a port a queue pair sends a packet every 16 ms, and in the minutes of slow LACP every 55 ms."""


@dataclass(frozen=True, slots=True)
class Fault:
    """``keys`` of the timeline's entry without its ``id``, ``at`` and ``for``. ``dark``: carrier tells of it."""

    key: str
    title: str
    keys: str
    dark: bool = False
    lasts: bool = True  # False: it repairs itself

    @property
    def load(self) -> str:
        """Of a NIC: fewer packets where it lasts."""
        return _MANY if self.dark else _FEW


_LOSS = f"fault: one-way-loss, target: {_LINK}"
FAULTS = (
    Fault("cut", "NIC-ToR link cut", f"fault: link-down, target: {_LINK}", dark=True),
    Fault(
        "blink",
        "link dark for 60 ms",
        f"fault: link-flap, target: {_LINK}, period: 1 s, duty: 6 %, count: 1",
        True,
        False,
    ),
    Fault("crash", "ToR crash", f"fault: tor-crash, target: {_TOR}", dark=True),
    Fault("mute", "LACPDUs lost", f"fault: lacp-loss, target: {_LINK}, direction: both"),
    Fault("hole", "all lost, light on", f"fault: silent-drop, target: {_LINK}"),
    Fault("deaf-tor", "all lost to the ToR, light on", f"{_LOSS}, direction: up"),
    Fault("deaf-host", "all lost to the host, light on", f"{_LOSS}, direction: down"),
    Fault("hang", "ToR's control plane hangs", f"fault: tor-control-hang, target: {_TOR}"),
)


@dataclass(frozen=True, slots=True)
class Trial:
    """One fault under one profile."""

    fault: Fault
    profile: str

    @property
    def name(self) -> str:
        """The drill's."""
        return f"{self.fault.key}-{self.profile}"

    @property
    def drill(self) -> str:
        """Its file: that the lab is restored is all that it expects."""
        for_s = LIGHT_OFF_S if self.fault.dark else LIGHT_ON_S[self.profile]
        lasts = f", for: {for_s} s" if self.fault.lasts else ""
        return f"""\
drill: {self.name}
summary: {self.fault.title}, {self.profile} hosts
topology: {{{_TOPOLOGY}, profile: {self.profile}}}
workload: {{pattern: permutation, queue_pairs: {QUEUE_PAIRS}, load: {self.fault.load}, ib_timeout: {IB_TIMEOUT}}}
timeline:
  healthy: {HEALTHY_S} s
  faults:
    - {{id: {self.fault.key}, at: {HEALTHY_S} s, {self.fault.keys}{lasts}}}
  settle: {SETTLE_S} s
expect:
  - state_restored: yes
"""


def trials() -> Iterator[Trial]:
    """All of the table, the short ones first."""
    for fault in FAULTS:
        for profile in PROFILES:
            yield Trial(fault, profile)
