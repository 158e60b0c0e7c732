"""Paths and faults of a run, as far as locating needs them. Pure.

Stored with a run's records, so that the same answer can be had again without the lab.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hpn.failover.analysis.edge import Edge, EdgeKind
from hpn.failover.analysis.paths import PathAt
from hpn.failover.locating.parts import Ends, Part, PartKind, ends_of
from hpn.failover.locating.rerouted import Changes, while_known
from hpn.testbed.fabric.model import Fabric


@dataclass(frozen=True, slots=True)
class Standing:
    """A fault as the drill injected it, from ``at_ns`` to ``until_ns`` (CLOCK_MONOTONIC), and the parts it is in."""

    fault: str
    what: str
    at_ns: int
    until_ns: int
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class KnownPaths:
    """Paths of flows over time, by link; ``hosts``: where each flow begins, by flow id."""

    ends: Ends
    hosts: Mapping[int, str]
    paths: tuple[PathAt, ...]
    faults: tuple[Standing, ...]


@dataclass(frozen=True, slots=True)
class Injected:
    """A fault in words, and its direction across links, 'up' or 'down', if it has one."""

    what: str
    direction: str | None = None


def known_paths(
    fabric: Fabric,
    nics: Mapping[int, str],
    paths: Sequence[PathAt],
    edges: Sequence[Edge],
    injected: Mapping[str, Injected],
    end_ns: int,
    changes: Changes | None = None,
) -> KnownPaths:
    """Return what is known of a run; ``nics``: the sender of each flow, by flow id; ``injected`` by fault id.

    Switches are asked shortly before each edge. In between ``changes`` end what is known of a path.
    """
    hosts, ends = {flow: fabric.nic(nic).host for flow, nic in nics.items()}, ends_of(fabric)
    if changes is not None:
        paths = tuple(while_known(ends, paths, changes, sorted(edge.inject_before_ns for edge in edges)))
    return KnownPaths(ends, hosts, tuple(paths), tuple(standing(edges, injected, end_ns)))


def standing(edges: Sequence[Edge], injected: Mapping[str, Injected], end_ns: int) -> Iterator[Standing]:
    """Yield the faults that the run injected, each once: from its first failure to its last repair."""
    for name, fault in injected.items():
        mine = [edge for edge in edges if name in edge.faults]
        failures = [edge for edge in mine if edge.kind is EdgeKind.FAILURE]
        if not failures:
            continue
        repairs = [edge.inject_before_ns for edge in mine if edge.kind is EdgeKind.REPAIR]
        nodes = tuple(Part(PartKind.NODE, node) for node in failures[0].nodes)
        links = tuple(_of_link(link.name, fault.direction) for link in failures[0].links)
        yield Standing(name, fault.what, failures[0].inject_before_ns, max(repairs, default=end_ns), nodes or links)


def _of_link(link: str, direction: str | None) -> Part:
    if direction in ("up", "down"):
        return Part(PartKind.DIRECTION, link, direction == "up")
    return Part(PartKind.LINK, link)
