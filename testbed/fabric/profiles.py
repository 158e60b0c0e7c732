"""Profiles of hosts: the values of ``lacp`` that a kind of host has, unless the topology sets them. Pure.

A new profile is one entry. Each value has its source, as a profile is a claim about other people's hosts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hpn.testbed.entries import Registry

LAB, PRODUCTION = "lab", "production"


@dataclass(frozen=True, slots=True)
class HostProfile:
    """One profile; ``lacp``: keys of that section and their values. Keys that it does not name keep their defaults."""

    name: str  # in a topology file
    summary: str
    lacp: Mapping[str, str | int] = field(default_factory=dict)


PROFILES: Registry[HostProfile] = Registry(
    "host profile",
    lambda profile: profile.name,
    (
        HostProfile(LAB, "LACP fast; Linux bonding looks at carrier every 10 ms"),
        # /proc/net/bonding of a host behind HPN's ToRs (NVIDIA/nccl PR 2150): LACP rate slow, MII polling 100 ms. Both
        # ends' port state is 61 (0x3d): LACP_Timeout (0x02) is clear, so the ToR asks for slow LACPDUs too (802.1AX
        # 6.4.2.3). The driver's aggregate wait is the standard's, 2 s (6.4.4).
        HostProfile(
            PRODUCTION,
            "LACP slow, carrier looked at every 100 ms, 2 s for ports to join",
            {"rate": "slow", "host_rate": "slow", "miimon_ms": 100, "aggregate_wait_ms": 2000},
        ),
    ),
    of=HostProfile,
)
