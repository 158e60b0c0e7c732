"""Announcement of a host to its ToRs: ARP requests for its gateway, repeated until every ToR has answered.

A ToR that answers has learned the host from the request. The host cannot distinguish ToRs, since both answer with the
one gateway address and MAC. Not every LAG reports the ingress port of a frame either. So the host counts answers.
Answers to the kernel's own requests for the gateway count too; those also went to every port. A ToR that misses both
within ``_ANSWER_S`` is therefore taken for one that has answered; it learns of the host by the kernel's next request.
"""

from __future__ import annotations

import socket
import struct

from hpn.testbed.events import now_ns
from hpn.testbed.fabric.model import Nic
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.packets.packet import PacketSocket
from hpn.testbed.routing.retry import FIRST_S, Retry

_ETHERTYPE_ARP = 0x0806
_BROADCAST = "ff:ff:ff:ff:ff:ff"
_REQUEST, _REPLY = 1, 2
_ANSWER_NS = int(FIRST_S * 1e9)
_ARP = struct.Struct("!HHBBH6s4s6s4s")


class Announcer:
    """Announcer of one NIC to the ToRs behind its active ports."""

    def __init__(self, nic: Nic, space: NetNs) -> None:
        self._ours, self._gateway = socket.inet_aton(nic.ip), socket.inet_aton(nic.gateway)
        sender = bytes.fromhex(nic.mac.replace(":", ""))
        self._request = _ARP.pack(1, 0x0800, 6, 4, _REQUEST, sender, self._ours, bytes(6), self._gateway)
        # A bond delivers frames with the member port's name, the nft datapath with the LAG's.
        names = (nic.lag, *(link.lower.name for link in nic.links))
        self._sockets = [PacketSocket(space, name, _ETHERTYPE_ARP, on_frame=self._heard) for name in names]
        self._retry = Retry(self._announce)
        self._ports = 0
        self._answers = 0
        self._asked_ns = 0

    def carry(self, ports: int, *, grown: bool) -> None:
        """Set the number of active ports; when one was added, announce until that many answers arrive."""
        self._ports = ports
        if not ports:
            self._retry.stop()
        elif grown:
            self._retry.stop()
            self._retry.start()
            self._announce()

    def close(self) -> None:
        """Stop announcing and close the sockets."""
        self._retry.stop()
        for each in self._sockets:
            each.close()

    def _announce(self) -> None:
        self._answers, self._asked_ns = 0, now_ns()
        self._sockets[0].send(self._request, _BROADCAST)

    def _heard(self, frame: bytes, _source: str) -> None:
        if len(frame) < _ARP.size:
            return
        *_, operation, _mac, sender, _to, target = _ARP.unpack_from(frame)
        if (operation, sender, target) != (_REPLY, self._gateway, self._ours):
            return
        self._answers += now_ns() - self._asked_ns < _ANSWER_NS
        if self._answers >= self._ports:
            self._retry.stop()
