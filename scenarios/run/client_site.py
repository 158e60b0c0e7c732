"""Requirements of a drill's client on this machine, checked before the start, and the library's runnable drills.

``hpn drill run --all`` and suites of all drills run those whose clients are installed. Labs that need this machine to
themselves, or a kernel of ours, are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.model import Drill
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.vm.engines import has_virtual_time
from hpn.traffic.client.client import Client, Site
from hpn.traffic.client.log import MOST_BYTES
from hpn.traffic.client.plan import ClientPlan
from hpn.traffic.client.ranks import ranks_of

_EVERYDAY_NICS = 170
"""Largest lab that fits the kernel's default neighbour table. A larger one takes minutes, and root on this machine."""


def site_of(drill: Drill) -> Site:
    """Return where the drill's client is started."""
    return Site(Path(drill.source).absolute().parent, sys.executable)


def plan_of(drill: Drill) -> ClientPlan | None:
    """Return the plan of the drill's client on its fabric, or None if it has no client."""
    client = drill.client
    if client is None:
        return None
    return client.plan(ranks_of(build(drill.topology), client.ranks, client.per, client.rail), site_of(drill))


def missing(drill: Drill) -> str | None:
    """Return in one line what the client lacks on this machine and how to get it, or None if nothing is missing."""
    return None if drill.client is None else drill.client.missing(site_of(drill))


def alone(drill: Drill) -> str | None:
    """Return in one line why the drill is run by name only and how to do so, or None if it runs with all others."""
    nics = len(build(drill.topology).nics)
    if nics <= _EVERYDAY_NICS:
        return None
    return f"a lab of {nics:,} NICs is run alone: hpn drill run {drill.name} (docs/growth.md says what it takes)"


def elsewhere(drill: Drill, engines: Iterable[str]) -> str | None:
    """Return in one line that one of these engines lacks a drill's kernel, and how to run it, or None if none does."""
    if drill.topology.switch is None or all(map(has_virtual_time, engines)):
        return None
    return f"switch: (PFC, classes) needs a kernel of ours: hpn drill run {drill.name} --engine uml-virtual-time"


class Library(NamedTuple):
    """Drills of hpn's library that run here together, and those left out."""

    drills: tuple[Drill, ...]
    left_out: tuple[str, ...]  # the name of each other drill, the reason, and how to run it


def library(topology: FabricSpec | None = None, engines: Iterable[str] = (), profile: str | None = None) -> Library:
    """Return every drill that comes with hpn, on its own fabric or on ``topology``, and name those left out.

    ``engines``: where they are to run. ``profile``: of the hosts, as in ``catalogue.load``.

    Left out are drills whose clients are not installed, labs beyond the kernel's usual neighbour table, labs with
    ``switch:`` if one of the engines cannot carry them, and drills that do not apply to the topology.
    """
    drills, left_out, wanted = list[Drill](), list[str](), frozenset(engines)
    for name in catalogue.names():
        try:
            drill = catalogue.load(name, topology, profile)
        except InputError as error:
            left_out.append(error.problems[0])
            continue
        what = missing(drill) or alone(drill) or elsewhere(drill, wanted)
        if what is None:
            drills.append(drill)
        else:
            left_out.append(f"{drill.name}: {what}")
    return Library(tuple(drills), tuple(left_out))


def check(drill: Drill) -> None:
    """Raise MachineError when this machine lacks what the drill's client runs."""
    lacks = missing(drill)
    if lacks is not None:
        raise MachineError(lacks)


def memory_mb(drill: Drill) -> int:
    """Return the memory in MB that the processes of the drill's client need."""
    plan = plan_of(drill)
    return 0 if plan is None else sum(process.memory_mb for process in plan.processes)


def disk_bytes(drill: Drill) -> int:
    """Return the maximum size in bytes of the logs of the drill's client."""
    plan = plan_of(drill)
    return 0 if plan is None else len(plan.processes) * MOST_BYTES


def told_of(client: Client) -> dict[str, str | int | float | bool]:
    """Return the client's keys that are plain values, for the manifest."""
    values = client.model_dump(exclude_none=True)
    return {key: value for key, value in values.items() if isinstance(value, str | int | float | bool)}
