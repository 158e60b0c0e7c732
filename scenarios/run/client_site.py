"""What a drill's client needs of this machine, asked before anything is started; the library's drills that it has.

``hpn drill run --all`` and suites of all drills run those that it has, but none of a lab that takes this machine for
itself.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.model import Drill
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.spec import FabricSpec
from hpn.traffic.client.client import Client, Site
from hpn.traffic.client.log import MOST_BYTES
from hpn.traffic.client.plan import ClientPlan
from hpn.traffic.client.ranks import ranks_of

_EVERYDAY_NICS = 170
"""What the kernel's neighbour table holds by default: a lab beyond takes minutes, and root on this machine."""


def site_of(drill: Drill) -> Site:
    """Where its client is started."""
    return Site(Path(drill.source).absolute().parent, sys.executable)


def plan_of(drill: Drill) -> ClientPlan | None:
    """Its client on its fabric; None: it has none."""
    client = drill.client
    if client is None:
        return None
    return client.plan(ranks_of(build(drill.topology), client.ranks, client.per, client.rail), site_of(drill))


def missing(drill: Drill) -> str | None:
    """What this machine lacks of what its client runs, in one line with the way out; None: nothing."""
    return None if drill.client is None else drill.client.missing(site_of(drill))


def alone(drill: Drill) -> str | None:
    """Why it is run by name only, in one line with the way to do that; None: it goes with all others."""
    nics = len(build(drill.topology).nics)
    if nics <= _EVERYDAY_NICS:
        return None
    return f"a lab of {nics:,} NICs is run alone: hpn drill run {drill.name} (docs/growth.md says what it takes)"


class Library(NamedTuple):
    """The drills that come with hpn, as far as this machine has their clients and they go with others."""

    drills: tuple[Drill, ...]
    left_out: tuple[str, ...]  # of each other its name, and why, with the way out


def library(topology: FabricSpec | None = None) -> Library:
    """Every drill that comes with hpn, on its own fabric or on that topology, but three sorts, which are named.

    Those with clients that are not installed here, those of labs beyond the kernel's usual neighbour table, and those
    that mean nothing on the topology.
    """
    drills, left_out = list[Drill](), list[str]()
    for name in catalogue.names():
        try:
            drill = catalogue.load(name, topology)
        except InputError as error:
            left_out.append(error.problems[0])
            continue
        what = missing(drill) or alone(drill)
        if what is None:
            drills.append(drill)
        else:
            left_out.append(f"{drill.name}: {what}")
    return Library(tuple(drills), tuple(left_out))


def check(drill: Drill) -> None:
    """MachineError when this machine lacks what its client runs."""
    lacks = missing(drill)
    if lacks is not None:
        raise MachineError(lacks)


def memory_mb(drill: Drill) -> int:
    """What its client's processes take."""
    plan = plan_of(drill)
    return 0 if plan is None else sum(process.memory_mb for process in plan.processes)


def disk_bytes(drill: Drill) -> int:
    """What the logs of its client take at most."""
    plan = plan_of(drill)
    return 0 if plan is None else len(plan.processes) * MOST_BYTES


def told_of(client: Client) -> dict[str, str | int | float | bool]:
    """Its keys that are plain values, for the manifest."""
    values = client.model_dump(exclude_none=True)
    return {key: value for key, value in values.items() if isinstance(value, str | int | float | bool)}
