"""What a carrier asks of whoever puts its packets on the wire. PURE."""

from __future__ import annotations

from typing import Protocol

from hpn.traffic.rc.requester import Run
from hpn.traffic.rc.responder import Reply
from hpn.traffic.rdma.receiver import Receiver
from hpn.traffic.rdma.recoveries import Notes
from hpn.traffic.rdma.sender import Sender


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
