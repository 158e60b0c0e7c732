"""What a carrier asks of whoever puts its packets on the wire. PURE."""

from __future__ import annotations

from typing import Protocol

from hpn.traffic.jobengine.receiver import Receiver
from hpn.traffic.jobengine.recoveries import Notes
from hpn.traffic.jobengine.sender import Sender
from hpn.traffic.transport.requester import Run
from hpn.traffic.transport.responder import Reply


class Wire(Notes, Protocol):
    """Puts packets on the wire; each call says what they take of it, Ethernet headers included."""

    def data(self, sender: Sender, run: Run, now_ns: int) -> None:
        """A run of data packets."""

    def reply(self, receiver: Receiver, reply: Reply) -> int:
        """An acknowledgement, or a NAK."""

    def invalid(self, receiver: Receiver, psn: int) -> int:
        """A NAK that says that a request makes no sense."""

    def notify(self, receiver: Receiver) -> int:
        """A congestion notification."""
