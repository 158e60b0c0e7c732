"""Pictures of docs/lossless.md: who stopped whom in a run, on its fabric. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpn.failover.analysis.buffers import ClassUse
from hpn.failover.analysis.pause_cycles import deadlock
from hpn.results.graph.grouping import Level
from hpn.results.graph.overlay import Mark, Overlay
from hpn.results.graph.svg import fabric_svg
from hpn.results.run.folder import RunFolder

_LEAST_NS = 20_000_000
"""Shorter stops are too small to be shown."""


def deadlock_svg(run: RunFolder) -> str:
    """The ring of queues that wait for each other at the end of a run, numbered in the order of waiting."""
    found = _buffers(run)
    ring = deadlock(found)
    links = {each.port: each.link for each in found}
    waits = zip(ring, (*ring[1:], *ring[:1]), strict=True)
    marks = (Mark(links[port], f"{port} waits for {behind}") for port, behind in waits)
    return fabric_svg(run.fabric(), Overlay(faults=tuple(marks), called="queue"), Level.NONE)


def pauses_svg(run: RunFolder) -> str:
    """The links by which a class was stopped in a run, numbered as the pause spread: from hosts, then on and on."""
    found = [each for each in _buffers(run) if each.pausing_ns >= _LEAST_NS]
    marks = (Mark(each.link, f"by {each.node} for {each.pausing_ns / 1e9:.2f} s") for each in _spread(run, found))
    return fabric_svg(run.fabric(), Overlay(faults=tuple(marks), called="pause"), Level.NONE)


def _spread(run: RunFolder, found: Sequence[ClassUse]) -> Iterator[ClassUse]:
    """Yield the stops of hosts, then those of the nodes that were stopped, and so on."""
    fabric, left = run.fabric(), sorted(found, key=lambda each: each.port)
    nodes = {each.node for each in left if not each.is_switch}
    while now := [each for each in left if each.node in nodes]:
        yield from now
        left = [each for each in left if each not in now]
        nodes = {fabric.link(each.link).far_end(each.node).node for each in now}
    yield from left


def _buffers(run: RunFolder) -> Sequence[ClassUse]:
    found = run.metrics().buffers
    if found is None:
        raise ValueError(f"{run.path} has no counters of buffers")
    return tuple(found)
