"""Interface between a carrier and the code that puts its packets on the wire. PURE."""

from __future__ import annotations

from typing import Protocol

from hpn.traffic.jobengine.receiver import ReceivingEnd
from hpn.traffic.jobengine.recoveries import Notes
from hpn.traffic.jobengine.sending_end import SendingEnd
from hpn.traffic.multipath.sack import Sack
from hpn.traffic.transport.requester import Run
from hpn.traffic.transport.responder import Reply
from hpn.traffic.transport.telemetry import Telemetry


class Wire(Notes, Protocol):
    """Packet output of a carrier; each call returns the wire bytes it takes, Ethernet headers included."""

    def data(self, sender: SendingEnd, run: Run, now_ns: int) -> None:
        """Send a run of data packets."""

    def reply(self, receiver: ReceivingEnd, reply: Reply) -> int:
        """Send an acknowledgement, or a NAK."""

    def invalid(self, receiver: ReceivingEnd, psn: int) -> int:
        """Send a NAK for an invalid request."""

    def notify(self, receiver: ReceivingEnd) -> int:
        """Send a congestion notification."""

    def probe(self, sender: SendingEnd, now_ns: int) -> int:
        """Send a probe of the switches on the way, by the path of the data."""

    def echo(self, receiver: ReceivingEnd, telemetry: Telemetry) -> int:
        """Send what a probe has brought back to its sender."""

    def sack(self, receiver: ReceivingEnd, sack: Sack) -> int:
        """Send a selective acknowledgement."""

    def path_probe(self, sender: SendingEnd, path: int, now_ns: int) -> tuple[int, int]:
        """Send a probe by one path of many; return the port of the NIC that it leaves by, too."""
