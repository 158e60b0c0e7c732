"""Reader of large batches of packets that take many paths: each is a WRITE of its own, and they overtake each other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from hpn.traffic.flows.framing import BTH_BYTES, RETH_BYTES
from hpn.traffic.io.recvmmsg import Batch
from hpn.traffic.streams import wire
from hpn.traffic.transport.arrivals import ArrivedRun
from hpn.traffic.transport.icrc import EXTENSIONS
from hpn.traffic.transport.inbox import Packets
from hpn.traffic.transport.incoming import Found, FrameReader, Rows, columns
from hpn.traffic.transport.packets import CE, ECN_MASK

_BITS = 24  # of a PSN, and of a queue pair number
_HALF = 1 << 23
_WITH_RETH = EXTENSIONS.index(RETH_BYTES)


class ManyPathsReader(FrameReader):
    """Reader whose runs are in the order of their PSNs, whatever order the packets of a batch came in."""

    MANY_PATHS = True

    def _read_extended(self, rows: Rows, layout: wire.U8, seen: wire.U8, found: Found) -> None:
        """Read all packets at once, as if all had a RETH alone, and then those that have more."""
        reth_at = self._bth_at + BTH_BYTES
        found.address = columns(seen, reth_at, ">u8", 1)[:, 0].tolist()
        plain = layout == _WITH_RETH
        found.word[plain] = columns(seen, reth_at + RETH_BYTES, "<u8", 1)[plain, 0]
        super()._read_extended(rows[layout[rows] != _WITH_RETH], layout, seen, found)

    def _runs(self, batch: Batch, intact: npt.NDArray[np.bool_], found: Found) -> list[ArrivedRun]:
        """Return the intact writes by queue pair and PSN, split where PSNs are not consecutive."""
        rows = intact.nonzero()[0]
        if not len(rows):
            return []
        numbers = found.numbers[rows].astype(np.int64)
        pair = batch.owners[rows] << _BITS | numbers[:, 0] & wire.QPN_MASK
        psn = numbers[:, 1] & wire.PSN_MASK
        # A batch spans far less than half of all PSNs, so places relative to any of its packets keep their order.
        place = (psn - psn[0] + _HALF) & wire.PSN_MASK
        order = np.lexsort((place, pair))
        rows, pair, psn = rows[order], pair[order], psn[order]
        cut = (pair[1:] != pair[:-1]) | ((psn[1:] - psn[:-1]) & wire.PSN_MASK != 1)
        stops = [*(cut.nonzero()[0] + 1).tolist(), len(rows)]
        asked = numbers[order, 1] & wire.ACK_REQUEST != 0
        return list(_cut(rows, pair.tolist(), psn.tolist(), asked, stops, batch, found))


def _cut(
    rows: Rows,
    pairs: list[int],
    psns: list[int],
    asked: npt.NDArray[np.bool_],
    stops: list[int],
    batch: Batch,
    found: Found,
) -> Iterator[ArrivedRun]:
    """Yield runs that end before each of ``stops``."""
    opcodes, words, places = found.opcode[rows].tobytes(), found.word[rows], rows.tolist()
    values = columns(batch.sources[rows], 0, ">u2", 1)[:, 0].tolist()
    marks = (batch.tos[rows] & ECN_MASK == CE).tolist()
    start = 0
    for stop in stops:
        these = places[start:stop]
        packets = Packets(
            opcodes[start:stop],
            [found.sizes[row] for row in these],
            words[start:stop],
            [found.address[row] for row in these],
            [found.immediate[row] for row in these],
        )
        marked = [value for value, mark in zip(values[start:stop], marks[start:stop], strict=True) if mark]
        yield ArrivedRun(
            pairs[start] >> _BITS,
            pairs[start] & wire.QPN_MASK,
            psns[start],
            bool(asked[start:stop].any()),
            len(marked),
            these,
            packets,
            values[start:stop],
            marked,
        )
        start = stop
