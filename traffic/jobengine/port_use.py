"""Queue pairs of a connection that carry its messages: those of all ports of a NIC, or of one with the other waiting.

NCCL shares messages between all usable queue pairs. Active-standby (NVIDIA/nccl PR 2309, NCCL_IB_RESILIENCY_HCA_PAIRS)
keeps those of the second device connected and idle. When a queue pair of the first fails, the one of the same lane on
the second takes over, and after port recovery the first carries again. That change picks the device nearest to the GPU;
here the first is the port of the connection's first queue pair. Its probes of idle queue pairs are not modelled. PURE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hpn.testbed.entries import Registry


@dataclass(frozen=True, slots=True)
class PortUse:
    """A use of a NIC's ports by a connection.

    ``standby``: one port carries and the others wait. ``reverts``: a queue pair that is back carries again; else it
    waits for the failure of the one that took over.
    """

    name: str
    summary: str
    standby: bool
    reverts: bool


PORT_USES: Registry[PortUse] = Registry(
    "use of ports",
    lambda use: use.name,
    (
        PortUse("active-active", "all ports carry messages, as NCCL does", False, True),
        PortUse("active-standby", "one port carries, and again when it is back, as nccl PR 2309 does", True, True),
        PortUse("active-standby-stay", "one port carries; the one that took over goes on when it is back", True, False),
    ),
    of=PortUse,
)


class Lanes:
    """The queue pair in use of each lane: queue pairs ``ports`` x lane, ... are its own, one at each port."""

    def __init__(self, ports: int, use: PortUse) -> None:
        self._ports = ports
        self._use = use
        self._last: dict[int, int] = {}

    def carrying(self, ready: Sequence[bool]) -> list[int]:
        """Return the indexes of the queue pairs that carry messages now; ``ready``: each of the connection's."""
        if not self._use.standby:
            return [index for index, usable in enumerate(ready) if usable]
        found = (self._of_lane(first, ready) for first in range(0, len(ready), self._ports))
        return [index for index in found if index is not None]

    def _of_lane(self, first: int, ready: Sequence[bool]) -> int | None:
        lane = range(first, first + self._ports)
        last = self._last.get(first)
        if last is not None and ready[last] and not self._use.reverts:
            return last
        index = next((each for each in lane if ready[each]), None)
        if index is not None:
            self._last[first] = index
        return index
