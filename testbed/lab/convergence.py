"""Convergence of a lab: LACP on every port, every BGP session, every host route everywhere, and no steering.

Steering ends later than the routes arrive: a ToR batches its notices to hosts, and path control holds flapping
destinations for a while. In a lab whose planes all reach every NIC, nothing remains steered.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from hpn.testbed.errors import MachineError
from hpn.testbed.events import now_ns
from hpn.testbed.fabric.model import Port
from hpn.testbed.lab.adapter import Adapter
from hpn.testbed.lab.expected_routes import NextHops, expected_presets, least
from hpn.testbed.lab.host_nic import HostNic
from hpn.testbed.lab.lacp_why import why_idle
from hpn.testbed.lab.parts import LabParts
from hpn.testbed.lab.watch import Watcher
from hpn.testbed.lag.steering import Steering
from hpn.testbed.routing.neighbours import bfd_ends

CONVERGE_S = 60.0
PROGRESS_S = 20.0
"""A slow lab may exceed CONVERGE_S as long as it makes progress within every such window."""
RELEASED_S = 1.0
"""Time after a hold until the held destinations have reverted: path control's own refresh."""


@dataclass(frozen=True, slots=True)
class Gap:
    """One missing condition of convergence. ``kind`` is 'lacp', 'bgp', 'route' or 'path'.

    ``held_until_ns``: end of a hold that delays it on purpose; 0 without one.
    """

    kind: str
    where: str
    text: str
    held_until_ns: int = 0


class Converging(Protocol):
    """Something that can be waited for until it has converged."""

    @property
    def stands(self) -> bool:
        """True if nothing is missing."""

    def missing(self) -> list[Gap]:
        """Return the missing conditions."""

    async def wait_for(self, condition: Callable[[], bool], timeout_s: float) -> None:
        """Evaluate ``condition`` after every event until it holds. TimeoutError when it does not in time."""


async def until_converged(lab: Converging, timeout_s: float | None = None) -> None:
    """Wait until convergence. MachineError, listing what is missing and why, otherwise.

    Without ``timeout_s`` a lab has CONVERGE_S, and longer while the number of missing conditions reaches a new minimum
    in every PROGRESS_S. In both cases the time is extended, once, until the holds in force have ended.
    """
    waited_s, fewest, holds_waited = 0.0, math.inf, False
    window_s = CONVERGE_S - PROGRESS_S if timeout_s is None else timeout_s
    while True:
        try:
            await lab.wait_for(lambda: lab.stands, window_s)
        except TimeoutError:
            waited_s += window_s
        else:
            return
        missing = lab.missing()
        held_s = max((gap.held_until_ns - now_ns() for gap in missing), default=0) / 1e9
        if held_s > 0 and not holds_waited:
            holds_waited, window_s = True, held_s + RELEASED_S
            continue
        stuck = len(missing) >= fewest and waited_s >= CONVERGE_S
        if stuck or timeout_s is not None:
            raise MachineError(_not_converged(missing, waited_s))
        fewest, window_s = min(fewest, len(missing)), PROGRESS_S


def _not_converged(missing: list[Gap], timeout_s: float) -> str:
    shown = "; ".join(gap.text for gap in missing[:5])
    more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
    return f"the lab did not converge within {timeout_s:g} s: {shown}{more}"


_Check = Callable[[], Gap | None]
"""Check of one condition; returns what is missing, or None."""


class Checks:
    """Conditions that must all hold.

    A lab that starts evaluates them after every event. Each evaluation first repeats the check that failed last, until
    it passes, and examines only those routes of a switch that changed.
    """

    def __init__(self, checks: Iterable[_Check]) -> None:
        self._checks = tuple(checks)
        self._at = 0  # index of the check that failed last

    def gaps(self) -> Iterator[Gap]:
        """Yield everything that is missing, hosts first; each check runs on demand."""
        return (gap for check in self._checks if (gap := check()) is not None)

    @property
    def stand(self) -> bool:
        """True if nothing is missing; runs the checks in a circle, starting with the one that failed last."""
        for _ in self._checks:
            if self._checks[self._at]() is not None:
                return False
            self._at = (self._at + 1) % len(self._checks)
        return True


@dataclass(frozen=True, slots=True)
class Convergence:
    """Conditions of one lab: ``everything``; ``heard``, LACP and BGP sessions, so that BGP can announce all hosts.

    ``above`` also includes the routes above the ToRs.
    """

    everything: Checks
    heard: Checks
    above: Checks

    @classmethod
    def of(cls, grips: LabParts, expected: Mapping[str, Mapping[str, NextHops]]) -> Convergence:
        """Return the conditions of a lab whose switches must have the ``expected`` routes."""
        heard = [*_links(grips), *_sessions(grips)]
        routes = dict(zip(expected, _all_routes(grips, expected), strict=True))
        above = [check for name, check in routes.items() if name not in grips.tors]
        whole = [*heard, *routes.values(), *_presets(grips), *steering_checks(grips)]
        whole += _adapters(grips)
        return cls(Checks(whole), Checks(heard), Checks([*heard, *above]))


@dataclass(frozen=True, slots=True)
class ConvergencePart:
    """A subset of a lab's conditions that can be waited for (``Converging``)."""

    checks: Checks
    wait: Callable[[Callable[[], bool], float], Awaitable[None]]

    @property
    def stands(self) -> bool:
        """True if none of its conditions is missing."""
        return self.checks.stand

    def missing(self) -> list[Gap]:
        """Return the missing conditions."""
        return list(self.checks.gaps())

    async def wait_for(self, condition: Callable[[], bool], timeout_s: float) -> None:
        """Wait for ``condition`` as the lab does."""
        await self.wait(condition, timeout_s)


def behind(switches: Iterable[str]) -> Iterator[Gap]:
    """Yield a gap for each of these switches, whose data plane lags behind BGP."""
    for switch in switches:
        yield Gap("route", switch, f"{switch}: BGP runs, but the data plane has no routes yet (bgp.fib_lag_ms)")


def _links(lab: LabParts) -> Iterator[_Check]:
    for nic in lab.nics.values():
        for index in range(len(nic.nic.links)):
            yield partial(_lacp, lab, nic, index)
    for nic in lab.nics.values():
        for index in range(len(nic.nic.links)):
            yield partial(_host_route, lab, nic, index)


def _lacp(lab: LabParts, nic: HostNic, index: int) -> Gap | None:
    link = nic.nic.links[index]
    if index not in nic.active:
        ports = nic.status()
        status, why = ports[index], why_idle(lab.fabric, ports[index], ports)
        return Gap("lacp", link.name, f"{link.name}: host port is {status.mux.value}, {status.rx.value} ({why})")
    if not lab.tors[link.upper.node].collecting(link.upper.name):
        return Gap("lacp", link.name, f"{link.name}: ToR port does not collect")
    return None


def _host_route(lab: LabParts, nic: HostNic, index: int) -> Gap | None:
    """Check that the ToR has learned the NIC at a port that both ends use."""
    link, prefix = nic.nic.links[index], f"{nic.nic.ip}/32"
    tor = link.upper.node
    if index not in nic.active or not lab.tors[tor].collecting(link.upper.name):
        return None
    if lab.watcher.has_host_route(tor, prefix):
        return None
    return Gap("route", link.name, f"{link.name}: the port distributes but {tor} has not learned {prefix}")


def _sessions(lab: LabParts) -> Iterator[_Check]:
    beside = bfd_ends(lab.fabric)
    for link in lab.fabric.links:
        if link.is_routed:
            yield from (partial(_session, lab, end, bfd=end.label in beside) for end in (link.lower, link.upper))


def _session(lab: LabParts, end: Port, *, bfd: bool) -> Gap | None:
    if end.name not in lab.bgp[end.node].established:
        return Gap("bgp", end.label, f"{end.label}: BGP session is not established")
    if bfd and lab.bgp[end.node].bfd.get(end.name) != "Up":
        return Gap("bgp", end.label, f"{end.label}: BFD session is not up")
    return None


def _all_routes(lab: LabParts, expected: Mapping[str, Mapping[str, NextHops]]) -> Iterator[_Check]:
    for switch, wanted in expected.items():
        yield _Routes(lab.watcher, switch, wanted)


class _Routes:
    """Check of a switch's expected routes; it tracks those that are not as they should be."""

    def __init__(self, watcher: Watcher, switch: str, wanted: Mapping[str, NextHops]) -> None:
        self._watcher = watcher
        self._switch = switch
        self._wanted = wanted
        self._short = {prefix: words for prefix in wanted if (words := self._lacks(prefix))}

    def __call__(self) -> Gap | None:
        for prefix in self._watcher.changed_routes(self._switch) & self._wanted.keys():
            self._short.pop(prefix, None)
            if words := self._lacks(prefix):
                self._short[prefix] = words
        if not self._short:
            return None
        first = min(self._short)
        example = f"{first} {self._short[first]}"
        text = f"{self._switch}: {len(self._short)} of {len(self._wanted)} routes incomplete ({example})"
        return Gap("route", self._switch, text)

    def _lacks(self, prefix: str) -> str:
        """Return what is wrong with a route, empty if nothing; a longer path may have as many next hops."""
        wanted, has = self._wanted[prefix], self._watcher.next_hops(self._switch, prefix)
        if has < least(wanted):
            return f"has {has} of {least(wanted)} next hops"
        ports = self._watcher.ports(self._switch, prefix)
        return "takes longer paths" if wanted and ports is not None and ports != wanted else ""


def _presets(lab: LabParts) -> Iterator[_Check]:
    for core, by_table in expected_presets(lab.fabric).items():
        yield partial(_preset, lab.watcher, core, by_table)


def _preset(watcher: Watcher, core: str, by_table: Mapping[tuple[int, str], int]) -> Gap | None:
    wrong = sum(watcher.presets(core).get(key) != oif for key, oif in by_table.items())
    if not wrong:
        return None
    return Gap("route", core, f"{core}: {wrong} of {len(by_table)} routes by preset ports missing")


def steering_checks(lab: LabParts) -> Iterator[_Check]:
    """Yield checks that no NIC's LAG steers, for those that can."""
    for nic in lab.nics.values():
        if nic.steering is not None:
            yield partial(_steered, nic, nic.steering)


def _adapters(lab: LabParts) -> Iterator[_Check]:
    for nic in lab.nics.values():
        if nic.adapter is not None:
            yield partial(_remapped, nic, nic.adapter)


def _remapped(nic: HostNic, adapter: Adapter) -> Gap | None:
    """Check that each port carries its own queue pairs; an adapter moves them back some time after its LAG."""
    if adapter.affinity.is_native:
        return None
    port, used = next((port, used) for port, used in adapter.affinity.instead.items() if port != used)
    return Gap("path", nic.nic.name, f"{nic.nic.name}: its adapter sends by {used} what is bound to {port}")


def _steered(nic: HostNic, steering: Steering) -> Gap | None:
    """Check that a LAG does not steer. With complete routes, only a late ToR notice or a hold keeps it steering."""
    if not steering.steered:
        return None
    (start, ip), end = min(steering.steered.items())
    more = f" and {len(steering.steered) - 1} more" if len(steering.steered) > 1 else ""
    text = f"{nic.nic.name}: path control steers {ip} from {start} to {end}{more}"
    return Gap("path", nic.nic.name, text, nic.held_until_ns)
