"""The ICRC of full-size RDMA WRITE packets as table look-ups.

CRC-32 is affine over XOR: a packet's ICRC is a constant of its layout, XOR one table entry for each byte that differs
from zero. The effect of a byte depends only on its distance from the end. After the head (addresses, headers, the 16
payload bytes that vary) every full-size packet has the same fill. So one table, indexed by distance, serves all
layouts.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hpn.traffic.flows.framing import BTH_BYTES, IMMEDIATE_BYTES, RETH_BYTES
from hpn.traffic.flows.ip_layer import IPV4, UDP_BYTES, IpLayer
from hpn.traffic.streams import wire
from hpn.traffic.transport.packets import PAYLOAD_HEAD_BYTES

EXTENSIONS = (0, IMMEDIATE_BYTES, RETH_BYTES, RETH_BYTES + IMMEDIATE_BYTES)
"""Possible sizes, in bytes, of the headers between the BTH and the payload of a write."""

_LRH_BYTES = 8  # ones, which replace InfiniBand's own header
_RESERVED = 4  # offset in the BTH of the byte that switches may change: masked, so its value does not matter


Places = npt.NDArray[np.intp]


class WriteIcrc:
    """The ICRC of packets with ``path_mtu`` bytes of payload."""

    def __init__(self, path_mtu: int, ip: IpLayer = IPV4) -> None:
        self.ip = ip
        self._source_ip = _LRH_BYTES + ip.SOURCE_AT
        self._destination_ip = self._source_ip + ip.ADDRESS_BYTES
        self._sport = _LRH_BYTES + ip.HEADER_BYTES
        self._pseudo = self._sport + UDP_BYTES
        widest = self._widest = self._pseudo + BTH_BYTES + EXTENSIONS[-1] + PAYLOAD_HEAD_BYTES
        self._fill = bytes([wire.FILL]) * (path_mtu - PAYLOAD_HEAD_BYTES)
        self._table = np.concatenate([wire.byte_table(bytearray(widest), at, self._fill) for at in range(widest)])
        self._table.setflags(write=False)
        self._constants = {extension: self._constant(extension, path_mtu) for extension in EXTENSIONS}

    def _constant(self, extension: int, path_mtu: int) -> int:
        """Return the ICRC of a packet whose addresses and head are all zero."""
        head = bytearray(BTH_BYTES + extension + PAYLOAD_HEAD_BYTES)
        head[_RESERVED] = 0xFF
        pseudo = wire.pseudo_header(self.ip.NOWHERE, self.ip.NOWHERE, 0, 0, BTH_BYTES + extension + path_mtu)
        return zlib.crc32(pseudo + head + self._fill)

    def of_columns(self, extension: int, first: int, rows: wire.U8) -> wire.U32:
        """Return the contribution of each of ``rows``, bytes from offset ``first`` after UDP on; byte 4 must be 0."""
        return self._look_up(extension, self._pseudo + first, rows)

    def offsets(self, extension: int, first: int, count: int) -> Places:
        """Return the table offsets of ``count`` bytes from offset ``first`` after UDP on, for ``of_offsets``."""
        begin = self._column(extension, self._pseudo + first)
        return np.arange(begin, begin + count) * 256

    def of_offsets(self, offsets: Places, rows: wire.U8) -> wire.U32:
        """Return the contribution of bytes of mixed layouts: ``offsets`` and ``rows`` have the same shape."""
        found: wire.U32 = np.bitwise_xor.reduce(self._table[offsets + rows], axis=1)
        return found

    def received(self, extension: int) -> wire.U32:
        """Return the table for rows of source port, source address, and BTH to payload head."""
        first = self._column(extension, self._pseudo)
        columns = (
            *self._columns(extension, self._sport, 2),
            *self._columns(extension, self._source_ip, self.ip.ADDRESS_BYTES),
            *range(first, self._widest),
        )
        return self._table.reshape(-1, 256)[list(columns)].reshape(-1)

    def filled(self, places: Sequence[int]) -> list[wire.U32]:
        """Return a table for each of ``places`` after the payload's head: the effect of differing from the fill."""
        payload = bytearray([wire.FILL]) * (PAYLOAD_HEAD_BYTES + len(self._fill))
        tables = [wire.byte_table(payload, at) for at in places]
        return [table ^ table[wire.FILL] for table in tables]

    def of_sources(self, extension: int, sources: wire.U8) -> wire.U32:
        """Return the contribution of source ports and addresses; each row: port 2 bytes, then the address."""
        ports = self._look_up(extension, self._sport, sources[:, :2])
        return ports ^ self._look_up(extension, self._source_ip, sources[:, 2:])

    def of_destination(self, extension: int, dst_ip: str) -> int:
        """Return the contribution of the destination address, including the constant part."""
        row = np.frombuffer(self.ip.packed(dst_ip), np.uint8).reshape(1, -1)
        return int(self._look_up(extension, self._destination_ip, row)[0]) ^ self._constants[extension]

    def _look_up(self, extension: int, at: int, rows: wire.U8) -> wire.U32:
        return wire.look_up(self._table[self._column(extension, at) * 256 :], rows)

    def _columns(self, extension: int, at: int, count: int) -> range:
        return range(self._column(extension, at), self._column(extension, at) + count)

    def _column(self, extension: int, at: int) -> int:
        """Return the column of the widest layout that has the same distance from the end as byte ``at`` of this one."""
        return at + EXTENSIONS[-1] - extension
