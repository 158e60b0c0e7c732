"""Policies for a lost plane or path to a destination: the values of ``path_control.policy``. Pure.

A new policy is an agent and one entry. Agents decide; ``agent_io`` and ``testbed.lab.host_nic`` execute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from hpn.testbed.entries import Registry
from hpn.testbed.routing.pathcontrol.actions import Action
from hpn.testbed.routing.pathcontrol.destinations import Destinations, HostSettings
from hpn.testbed.routing.pathcontrol.host_agent import Connection, HostAgent, PortFor
from hpn.testbed.routing.pathcontrol.move_and_steer import MoveAndSteer
from hpn.testbed.routing.pathcontrol.rebind import RebindAgent
from hpn.testbed.routing.pathcontrol.steering import ALSO, SteeringAgent


class HostPolicy(Protocol):
    """Agent of one NIC: it receives events, and returns actions."""

    @property
    def deadline_ns(self) -> int | None:
        """Next time for ``on_timer``; None for never."""

    def add(self, connections: Iterable[Connection], now_ns: int) -> Sequence[Action]:
        """Add queue pairs."""

    def remove(self, connections: Iterable[int]) -> None:
        """Remove finished queue pairs."""

    def set_active(self, ports: Iterable[str], now_ns: int) -> Sequence[Action]:
        """Handle a change of the LAG's collecting and distributing ports."""

    def on_frame(self, port: str, payload: bytes, now_ns: int) -> Sequence[Action]:
        """Handle a path control frame from the ToR behind ``port``."""

    def on_timer(self, now_ns: int) -> Sequence[Action]:
        """Handle an expired deadline."""


@dataclass(frozen=True, slots=True)
class HostPlace:
    """An agent's view of its NIC."""

    nic: str
    ports: tuple[str, ...]  # member ports of its LAG
    settings: HostSettings
    port_for: PortFor
    seed: int
    ip: str = ""  # its own address


@dataclass(frozen=True, slots=True)
class PathPolicy:
    """One policy. ``agent`` creates a NIC's agent; without one, hosts do nothing and ToRs report nothing.

    ``steers``: its agents request ``Steer``, which LAGs must support. ``binds``: they request ``Rebind``, which needs
    adapters that bind queue pairs to ports.
    """

    name: str  # in a topology file
    summary: str  # for docs/path-control.md
    agent: Callable[[HostPlace], HostPolicy] | None
    steers: bool = False
    binds: bool = False


def _source_ports(place: HostPlace) -> HostPolicy:
    return HostAgent(place.nic, place.ports, place.settings, place.port_for, place.seed)


def _destination(place: HostPlace) -> HostPolicy:
    return SteeringAgent(place.ip, place.ports, _every_destination(place))


def _both(place: HostPlace) -> HostPolicy:
    shared = _every_destination(place)
    mover = HostAgent(place.nic, place.ports, place.settings, place.port_for, place.seed, shared)
    return MoveAndSteer(shared, mover, SteeringAgent(place.ip, place.ports, shared))


def _rebind(place: HostPlace) -> HostPolicy:
    return RebindAgent(place.ports, Destinations(place.nic, place.ports, place.settings, place.seed))


def _every_destination(place: HostPlace) -> Destinations:
    return Destinations(place.nic, place.ports, place.settings, place.seed, ALSO)


DEFAULT = "move-source-ports"
OFF = "off"
PATH_POLICIES: Registry[PathPolicy] = Registry(
    "path policy",
    lambda policy: policy.name,
    (
        PathPolicy(
            DEFAULT, "queue pairs move to source ports that the LAG sends where the destination is", _source_ports
        ),
        PathPolicy(
            "steer-destinations",
            "the LAG sends what is for a lost destination by another port, for every sender",
            _destination,
            steers=True,
        ),
        PathPolicy("both", "queue pairs move, the LAG steers all other traffic", _both, steers=True),
        PathPolicy(
            "rebind",
            "the adapter binds queue pairs to the port that leads to the destination; needs queue affinity",
            _rebind,
            binds=True,
        ),
        PathPolicy(OFF, "a plane that cannot reach a NIC goes on being sent to", None),
    ),
    of=PathPolicy,
)
