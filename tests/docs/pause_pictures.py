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
    """The links by which a class was stopped, longest first: the pause spreads from the first to the last."""
    return fabric_svg(run.fabric(), Overlay(faults=tuple(_stops(_buffers(run))), called="pause"), Level.NONE)


def _stops(found: Sequence[ClassUse]) -> Iterator[Mark]:
    stops = [each for each in found if each.pausing_ns >= _LEAST_NS]
    for each in sorted(stops, key=lambda each: (-each.pausing_ns, each.port)):
        node = each.port.partition(":")[0]
        far = next(other.node for other in found if other.link == each.link and other.node != node)
        yield Mark(each.link, f"{node} stopped {far} for {each.pausing_ns / 1e6:,.0f} ms")


def _buffers(run: RunFolder) -> Sequence[ClassUse]:
    found = run.metrics().buffers
    if found is None:
        raise ValueError(f"{run.path} has no counters of buffers")
    return tuple(found)
