"""Opened paths of a writer as tables: what all packets of a path have in common, and its part of their ICRC."""

from __future__ import annotations

import numpy as np

from hpn.traffic.flows.framing import BTH_BYTES, ICRC_BYTES
from hpn.traffic.flows.ip_layer import UDP_BYTES
from hpn.traffic.streams import wire
from hpn.traffic.transport.icrc import EXTENSIONS, WriteIcrc
from hpn.traffic.transport.packets import Envelope, Opcode, pack_ip


class PathTables:
    """Paths by number: ``heads`` and ICRCs as of a packet that is neither first nor last of its message.

    ``common``: length of the common beginning of every head.
    """

    def __init__(self, path_mtu: int, icrc: WriteIcrc) -> None:
        self.envelopes: list[Envelope] = []
        self.ack_every: list[int] = []
        self.common = icrc.ip.HEADER_BYTES + UDP_BYTES + BTH_BYTES
        self.heads = np.zeros((16, self.common), np.uint8)
        self.names = np.zeros((16, icrc.ip.SOCKADDR_BYTES), np.uint8)
        self.icrcs = np.zeros((16, len(EXTENSIONS)), np.uint32)
        self.middle_icrcs = np.zeros(16, np.uint32)  # the constant part of middle packets
        self._path_mtu = path_mtu
        self._icrc = icrc
        middle = np.array([[Opcode.WRITE_MIDDLE]], np.uint8)
        self._middle_icrc = icrc.of_columns(0, 0, middle)[0]

    def open(self, envelope: Envelope, ack_every: int) -> int:
        """Add a path; return its number. Every ``ack_every``-th packet of a message and its last request an ACK."""
        path = len(self.envelopes)
        if path == len(self.heads):
            self.heads, self.names, self.icrcs, self.middle_icrcs = (
                np.concatenate([table, np.zeros_like(table)])
                for table in (self.heads, self.names, self.icrcs, self.middle_icrcs)
            )
        self.envelopes.append(envelope)
        self.ack_every.append(ack_every)
        self.move(path, envelope)
        return path

    def move(self, path: int, envelope: Envelope) -> None:
        """Use another envelope for packets of ``path`` from now on."""
        self.envelopes[path] = envelope
        qpn, pkey = envelope.qpn.to_bytes(3, "big"), wire.P_KEY.to_bytes(2, "big")
        bth = bytes([Opcode.WRITE_MIDDLE, wire.BTH_FLAGS, *pkey, 0, *qpn, *bytes(4)])
        whole = pack_ip(envelope, bth + bytes(self._path_mtu + ICRC_BYTES))
        self.heads[path] = np.frombuffer(whole[: self.common], np.uint8)
        ip = self._icrc.ip
        self.names[path] = np.frombuffer(ip.sockaddr(envelope.via or envelope.dst_ip), np.uint8)
        headers = np.frombuffer(b"\0" + bth[1:], np.uint8).reshape(1, BTH_BYTES)
        source = np.frombuffer(envelope.sport.to_bytes(2, "big") + ip.packed(envelope.src_ip), np.uint8).reshape(1, -1)
        for layout, extension in enumerate(EXTENSIONS):
            varying = self._icrc.of_columns(extension, 0, headers) ^ self._icrc.of_sources(extension, source)
            self.icrcs[path, layout] = varying[0] ^ self._icrc.of_destination(extension, envelope.dst_ip)
        self.middle_icrcs[path] = self.icrcs[path, 0] ^ self._middle_icrc
