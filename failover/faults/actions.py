"""Fault actions on a lab, as faults see them; each comes with its inverse. Pure.

Changes when a fault needs a new fault action; ``failover.inject.lab_actions`` implements them on a lab.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from hpn.failover.faults.streams import Direction
from hpn.testbed.fabric.model import Fabric, Link

LinkEnd = tuple[Link, str]
"""A link, and the node at one of its ends."""


class LostFrames(StrEnum):
    """Frames that a loss takes."""

    EVERYTHING = "everything"
    LACP = "lacp"
    ARP = "arp"
    DATA = "data"
    NOT_CONTROL = "all-but-control"


@dataclass(frozen=True, slots=True)
class Action:
    """A fault's injection and its inverse; both return when the kernel is done. Creating one does nothing."""

    do: Callable[[], None]
    undo: Callable[[], Awaitable[None]]


async def _nothing() -> None:
    """Undo an action that did nothing."""


NO_ACTION = Action(lambda: None, _nothing)
"""No-op action of a fault whose effect is in its parts, or in the traffic."""


@dataclass(frozen=True, slots=True)
class Rise:
    """The share of frames with errors from ``after_ns`` on, since the injection."""

    after_ns: int
    share: float


class FaultActions(Protocol):
    """Actions that faults are made of. A call prepares everything that takes time, and does nothing yet."""

    @property
    def fabric(self) -> Fabric:
        """The lab's fabric."""

    def cut(self, ends: Sequence[LinkEnd]) -> Action:
        """Take the ports at these ends down, all in one moment: both ends of each link lose carrier."""

    def crash(self, switches: Sequence[str]) -> Action:
        """Kill these switches: every port in one batch, then their daemons; the inverse is a boot with empty state."""

    def hang(self, tor: str) -> Action:
        """Stop a ToR's control plane."""

    def withdraw(self, tor: str) -> Action:
        """Have a ToR withdraw its host routes."""

    def leave(self, tor: str) -> Action:
        """Have a ToR signal its LACP partners that it is out of Synchronization."""

    def stop_forwarding(self, switch: str) -> Action:
        """Have a switch forward nothing."""

    def reload(self, tor: str, version: str, for_ns: int) -> Action:
        """Boot a ToR with another software version, which takes ``for_ns``."""

    def reset_session(self, link: Link) -> Action:
        """Reset the BGP session over a link; it comes back by itself."""

    def lose(
        self, key: Hashable, link: Link, going: Iterable[Direction], what: LostFrames, share: float = 1.0
    ) -> Action:
        """Drop a share of the frames in these directions. ``key``: its owner; the losses of several owners add up."""

    def lose_bucket(self, key: Hashable, link: Link, going: Iterable[Direction], buckets: int, bucket: int) -> Action:
        """Drop the RoCE packets in these directions whose 5-tuple hash falls in one of ``buckets``."""

    def corrupt(self, key: Hashable, link: Link, share: float) -> Action:
        """Flip a bit of the payload in a share of the RoCE data packets, both ways."""

    def decay(self, key: Hashable, link: Link, rises: Sequence[Rise], *, corrupts: bool) -> Action:
        """Drop or corrupt a share of the frames, both ways, that changes with each of ``rises``, in order of time."""

    def delay(self, key: Hashable, link: Link, delay_ns: int, jitter_ns: int) -> Action:
        """Delay every frame, both ways."""

    def stick(self, key: Hashable, links: Sequence[Link], priority: int, share: float) -> Action:
        """Have the host's end of each access link stop a priority by XOFF for that share of the time."""

    def swap(self, one: Link, other: Link, unplugged_ns: int) -> Action:
        """Exchange the upper ends of two links; each time their ports are without carrier for ``unplugged_ns``."""

    def slow(self, key: Hashable, link: Link, share: float) -> Action:
        """Reduce a link to a share of its rate, both ways."""
