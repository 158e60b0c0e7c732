"""Ports of a worker's NICs: which sending ends wait at which, and how busy each wire is. PURE."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from hpn.traffic.jobengine.egress import Outlet
from hpn.traffic.jobengine.receiver import ReceivingEnd
from hpn.traffic.jobengine.sending_end import SendingEnd, Turn
from hpn.traffic.transport.requester import Run


class NicPorts:
    """Outlets of all ports. ``of``: ports of single-path connections, 2 x flow for data, 2 x flow + 1 for ACKs."""

    def __init__(self, port_rate_bps: Mapping[str, tuple[int, ...]], path_mtu: int) -> None:
        self._outlets = {
            nic: tuple(Outlet[Turn](rate, path_mtu) for rate in rates) for nic, rates in port_rate_bps.items()
        }
        self._turns = deque(outlet for outlets in self._outlets.values() for outlet in outlets)
        self.of: dict[int, int] = {}

    @property
    def busy(self) -> bool:
        """True while a sending end waits for its turn."""
        return any(outlet.busy for outlet in self._turns)

    def move(self, ports: Mapping[int, int], ends: Iterable[SendingEnd], now_ns: int) -> None:
        """Send connections by other ports of their NICs; ``ends``: all that may be concerned."""
        moving = {at // 2 for at, port in ports.items() if at % 2 == 0 and self.of.get(at, 0) != port}
        senders = [sender for sender in ends if sender.pair.flow.id in moving] if moving else []
        waiting = [sender for sender in senders if self.rest(sender)]
        self.of.update(ports)
        for sender in waiting:
            self.wake(sender, now_ns)

    def serve(self, now_ns: int, until_ns: int) -> Iterator[tuple[Outlet[Turn], SendingEnd, list[Run]]]:
        """Yield what is to be sent to keep all wires busy until ``until_ns``."""
        # Rotate, so that no outlet is always first: the first finds the shortest queue and is marked least.
        self._turns.rotate(-1)
        for outlet in self._turns:
            if outlet.idle:
                continue
            for turn, runs in outlet.serve(now_ns, until_ns):
                yield outlet, turn.owner, runs

    def wake(self, sender: SendingEnd, now_ns: int) -> None:
        """Let a sender wait at each port that it may send by, if it has something to send."""
        if sender.sendable:
            for port, turn in sender.outlets():
                self._outlet(sender, port).add(turn, now_ns)

    def rest(self, sender: SendingEnd) -> bool:
        """Let a sender wait nowhere; return True if it did."""
        return sum([self._outlet(sender, port).remove(turn) for port, turn in sender.outlets()]) > 0

    def charge(self, nic: str, port: int, wire_bytes: int, now_ns: int) -> None:
        """Account for packets that leave a port at once."""
        self._outlets[nic][port].charge(wire_bytes, now_ns)

    def charge_reply(self, receiver: ReceivingEnd, wire_bytes: int, now_ns: int) -> None:
        """Account for a reply of a receiving end."""
        self.charge(receiver.pair.flow.dst_nic, receiver.port(self.of), wire_bytes, now_ns)

    def _outlet(self, sender: SendingEnd, port: int | None) -> Outlet[Turn]:
        flow = sender.pair.flow
        return self._outlets[flow.src_nic][self.of.get(2 * flow.id, 0) if port is None else port]
