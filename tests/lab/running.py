"""A lab for one kernel test: brought up, handed to the test's coroutine, closed."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from hpn.testbed.events import Event, EventKind
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric, Link
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.state import State, differences, state


class Recorder(list[Event]):
    """The timeline of a lab."""

    def after(self, at_ns: int, kind: EventKind, node: str = "") -> list[Event]:
        """Events of one kind (and node) from a moment on."""
        return [e for e in self if e.at_ns >= at_ns and e.kind is kind and node in ("", e.node)]


def tiny(**changes: object) -> FabricSpec:
    """The preset 'tiny' with other values."""
    return FabricSpec.model_validate(PRESETS["tiny"].spec.model_dump() | changes)


def ping(lab: Lab, host: str, ip: str, wait_s: int = 5) -> str:
    """What one ping of that host says; 'ttl=' is in it when an answer came."""
    assert host in lab.fabric.node_by_name
    command = ["ip", "netns", "exec", host, "ping", "-c", "1", "-W", str(wait_s), ip]
    return subprocess.run(command, capture_output=True, text=True, timeout=wait_s + 5, check=False).stdout


def cut(lab: Lab, link: Link) -> None:
    """Take a link's carrier away at both ends: its lower end is put down."""
    lab.breakage.ports_down([(link, link.lower.node)])


def mend(lab: Lab, link: Link) -> None:
    """Give it back, with what the kernel forgot of that end."""
    lab.breakage.ports_up([(link, link.lower.node)])


def has_carrier(lab: Lab, link: str) -> bool:
    """Asked of the kernel: no event tells that nothing happened."""
    end = lab.fabric.link(link).lower
    return any(found.name == end.name and found.up and found.carrier for found in lab.requests(end.node).links())


async def whole_again(lab: Lab, before: State) -> None:
    """Wait until the lab is converged and in the state of before; fails with what is missing otherwise.

    Not ``converged`` alone: a lab that has not heard yet of what was done to it looks converged. Nor is it asked again
    once it was whole: a switch's BGP daemon that is late withdraws a route and announces it again.
    """
    try:
        await lab.wait_for(lambda: not lab.missing() and not differences(before, state(lab)), 30)
    except TimeoutError:
        gaps, left = [gap.text for gap in lab.missing()], differences(before, state(lab))
        raise AssertionError(f"the lab is not whole again: {gaps}, {left}") from None


def crossed(fabric: Fabric, first: str, second: str) -> Fabric:
    """The fabric with the ToR ends of two access links exchanged, as cables put into the wrong ToRs would be."""
    one, other = fabric.link(first), fabric.link(second)
    swapped = {one: replace(one, upper=other.upper), other: replace(other, upper=one.upper)}
    nics = tuple(replace(nic, links=tuple(swapped.get(link, link) for link in nic.links)) for nic in fabric.nics)
    return replace(fabric, links=tuple(swapped.get(link, link) for link in fabric.links), nics=nics)


@asynccontextmanager
async def running(
    what: FabricSpec | Fabric, events: Recorder | None = None, *, converge: bool = True, in_order: bool = False
) -> AsyncIterator[Lab]:
    """A converged lab of ``what`` that tells ``events``, and is closed in the end; enter it in a sandbox."""
    fabric = what if isinstance(what, Fabric) else build(what)
    lab = Lab.start(fabric, (Recorder() if events is None else events).append, in_order=in_order)
    try:
        if converge:
            await lab.converged(30)
        yield lab
    finally:
        lab.close()
