"""What can be done to a lab, as faults see it; done, it is undone by what comes with it. Pure.

Changes when a fault needs to take hold of something that none did before; ``failover.inject.levers`` does it to a lab.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from hpn.failover.faults.streams import Direction
from hpn.testbed.fabric.model import Fabric, Link

LinkEnd = tuple[Link, str]
"""A link and the node at the end that is meant."""


class Lost(StrEnum):
    """Which frames a loss takes."""

    EVERYTHING = "everything"
    LACP = "lacp"
    ARP = "arp"
    DATA = "data"
    NOT_CONTROL = "all-but-control"


@dataclass(frozen=True, slots=True)
class Action:
    """How a fault is done and undone; both return when the kernel has carried them out. Made, nothing is done yet."""

    do: Callable[[], None]
    undo: Callable[[], Awaitable[None]]


async def _nothing() -> None:
    """Undo what was never done."""


NO_ACTION = Action(lambda: None, _nothing)
"""Of a fault whose parts, or the traffic, do all there is to do."""


class Levers(Protocol):
    """What a fault can take hold of. Each call gets everything ready that takes time, and does nothing."""

    @property
    def fabric(self) -> Fabric:
        """What the lab was made from."""

    def cut(self, ends: Sequence[LinkEnd]) -> Action:
        """Take the ports at these ends down, all in one moment: both ends of each link lose carrier."""

    def crash(self, switches: Sequence[str]) -> Action:
        """Kill these switches: every port in one batch, then their daemons; undone by a boot with empty state."""

    def hang(self, tor: str) -> Action:
        """Stop a ToR's control plane."""

    def withdraw(self, tor: str) -> Action:
        """Have a ToR withdraw its host routes."""

    def leave(self, tor: str) -> Action:
        """Have a ToR tell its LACP partners that it is out of Synchronization."""

    def stop_forwarding(self, tor: str) -> Action:
        """Have a ToR forward nothing."""

    def reload(self, tor: str, version: str, for_ns: int) -> Action:
        """Boot a ToR with another software version, which takes ``for_ns``."""

    def reset_session(self, link: Link) -> Action:
        """Reset the BGP session over a link; it comes back by itself."""

    def lose(self, key: Hashable, link: Link, going: Iterable[Direction], what: Lost, share: float = 1.0) -> Action:
        """Lose a share of what goes in these directions. ``key``: whose it is; others' add up."""

    def corrupt(self, key: Hashable, link: Link, share: float) -> Action:
        """Flip a bit of the payload in a share of the RoCE data packets, both ways."""

    def delay(self, key: Hashable, link: Link, delay_ns: int, jitter_ns: int) -> Action:
        """Let every frame arrive later, both ways."""

    def slow(self, key: Hashable, link: Link, share: float) -> Action:
        """Leave a link a share of its rate, both ways."""
