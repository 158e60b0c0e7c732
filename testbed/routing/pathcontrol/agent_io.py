"""Path control on the wire: packet sockets and one timer around a pure agent, on the running event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from hpn.testbed.events import Event, EventKind, EventSink, now_ns
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.packets.packet import PacketSocket
from hpn.testbed.routing.pathcontrol.actions import (
    REBOUND,
    RELEASED,
    STEERED,
    STUCK,
    Action,
    Hold,
    Move,
    Reachability,
    Rebind,
    Send,
    Steer,
    Stuck,
)
from hpn.testbed.routing.pathcontrol.message import ETHERTYPE, GROUP_MAC

MoveSink = Callable[[Move], None]
SteerSink = Callable[[Sequence[Steer]], None]
RebindSink = Callable[[Sequence[Rebind]], None]


class Agent(Protocol):
    """Interface of both agents to the wire."""

    @property
    def deadline_ns(self) -> int | None:
        """Next time for ``on_timer``; None for never."""

    def on_frame(self, port: str, payload: bytes, now_ns: int) -> Sequence[Action]:
        """Handle a frame received at ``port``."""

    def on_timer(self, now_ns: int) -> Sequence[Action]:
        """Handle an expired deadline."""


class AgentIo:
    """Executor of one agent's actions. Call the agent's own methods and pass their results to ``perform``."""

    def __init__(
        self,
        node: str,
        ns: NetNs,
        agent: Agent,
        ports: Sequence[str],
        emit: EventSink,
        on_move: MoveSink | None = None,
        peers: Mapping[str, str] | None = None,
        before: Callable[[], None] = lambda: None,
        on_steer: SteerSink | None = None,
        on_rebind: RebindSink | None = None,
    ) -> None:
        """Connect an agent to interfaces ``ports``.

        ``on_move`` reports a new source port to the traffic engine, ``on_steer`` all steering changes of a moment to
        the LAG, ``on_rebind`` all queue pairs' new ports to the adapter. ``peers`` gives the one accepted source MAC
        address at each port; without it every source is. ``before`` is called ahead of every decision for a frame
        or the timer, to bring the agent's knowledge up to date.
        """
        self._node = node
        self._ns = ns
        self._agent = agent
        self._ports = tuple(ports)
        self._emit = emit
        self._on_move = on_move
        self._on_steer = on_steer
        self._on_rebind = on_rebind
        self._peers = peers
        self._before = before
        self._sockets: dict[str, PacketSocket] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._due_ns = 0
        self.held_until_ns = 0
        """End of the last hold that the agent reported; 0 before the first."""

    def start(self) -> None:
        """Open a socket per port. OSError when an interface is missing."""
        for port in self._ports:
            listener = partial(self._received, port)
            self._sockets[port] = PacketSocket(self._ns, port, ETHERTYPE, group=GROUP_MAC, on_frame=listener)

    def stop(self) -> None:
        """Stop sending and receiving. Idempotent."""
        for opened in self._sockets.values():
            opened.close()
        self._sockets.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def perform(self, actions: Sequence[Action]) -> None:
        """Steer, rebind, move, send and report; what moves traffic first, because packets are lost until then."""
        steers = [action for action in actions if isinstance(action, Steer)]
        if steers and self._on_steer is not None:
            self._on_steer(steers)
        rebinds = [action for action in actions if isinstance(action, Rebind)]
        if rebinds and self._on_rebind is not None:
            self._on_rebind(rebinds)
        for action in actions:
            if isinstance(action, Move) and self._on_move is not None:
                self._on_move(action)
        at_ns = now_ns()
        for action in actions:
            if isinstance(action, Send):
                if action.port in self._sockets:  # a frame that cannot be sent now is covered by the next refresh
                    self._sockets[action.port].send(action.payload, GROUP_MAC)
            else:
                if isinstance(action, Hold):
                    self.held_until_ns = max(self.held_until_ns, at_ns + action.hold_ns)
                self._emit(_event(at_ns, self._node, action))
        self._arm()

    def _received(self, port: str, payload: bytes, source: str) -> None:
        if self._peers is None or self._peers.get(port) == source:
            self._before()
            self.perform(self._agent.on_frame(port, payload, now_ns()))

    def _tick(self, due_ns: int) -> None:
        self._timer = None
        self._before()
        # The loop may fire a clock tick early; treating that as due keeps it from spinning where time stands still.
        self.perform(self._agent.on_timer(max(now_ns(), due_ns)))

    def _arm(self) -> None:
        """Make the timer fire no later than the agent's deadline; firing early is harmless."""
        due_ns = self._agent.deadline_ns
        if due_ns is None or not self._sockets or (self._timer is not None and self._due_ns <= due_ns):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due_ns = due_ns
        self._timer = asyncio.get_running_loop().call_at(due_ns / 1e9, self._tick, due_ns)


def _event(at_ns: int, node: str, action: Move | Rebind | Steer | Reachability | Hold | Stuck) -> Event:
    if isinstance(action, Steer):
        what = RELEASED if action.to_port is None else STEERED
        detail = {"from_port": action.from_port, "to_port": action.to_port or action.from_port}
        return Event(at_ns, EventKind.PATH, node, action.dst_ip, what, detail)
    if isinstance(action, Rebind):
        ports = {"dst": action.dst_ip, "from_port": action.from_port, "to_port": action.to_port}
        return Event(at_ns, EventKind.PATH, node, str(action.connection), REBOUND, {**ports})
    if isinstance(action, Hold):
        return Event(
            at_ns, EventKind.PATH, node, action.dst_ip, "held", {"port": action.port, "ms": action.hold_ns / 1e6}
        )
    if isinstance(action, Reachability):
        what = "reachable" if action.reachable else "unreachable"
        return Event(at_ns, EventKind.PATH, node, action.dst_ip, what, {"port": action.port})
    if isinstance(action, Stuck):
        kept: dict[str, str | int | float] = {"dst": action.dst_ip, "sport": action.sport, "port": action.port}
        kept["tries"] = action.tries
        return Event(at_ns, EventKind.PATH, node, str(action.connection), STUCK, kept)
    moved: dict[str, str | int | float] = {
        "dst": action.dst_ip,
        "old_sport": action.old_sport,
        "sport": action.sport,
        "from_port": action.from_port,
        "to_port": action.to_port,
    }
    return Event(at_ns, EventKind.PATH, node, str(action.connection), "moved", moved)
