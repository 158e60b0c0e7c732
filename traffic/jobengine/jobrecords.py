"""The record files that a job's worker writes while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from hpn.traffic.collectives.rank import Timed
from hpn.traffic.jobengine.records import MESSAGE, RETRY, SPAN, STAMP
from hpn.traffic.jobengine.sending_end import SendingEnd
from hpn.traffic.streams.recordfile import RecordFile
from hpn.traffic.transport.telemetry import Telemetry
from hpn.traffic.transport.work import Completion

_MOST_NS = 2**32 - 1


class JobRecords:
    """Spans, messages, retransmissions and telemetry of worker ``index``, in folder ``out``. OSError on failure."""

    def __init__(self, out: Path, index: int) -> None:
        self._spans = RecordFile(out / f"spans-{index}.bin", SPAN)
        self._messages = RecordFile(out / f"messages-{index}.bin", MESSAGE)
        self._retries = RecordFile(out / f"retries-{index}.bin", RETRY)
        self._stamps = RecordFile(out / f"stamps-{index}.bin", STAMP)

    def completed(self, sender: SendingEnd, completion: Completion) -> None:
        """Record a message of ``sender``: one row of ``MESSAGE``."""
        row = np.zeros(1, MESSAGE)
        row["flow"], row["tag"] = sender.pair.flow.id, completion.request.immediate or 0
        row["bytes"] = completion.request.size_bytes
        row["posted_ns"], row["completed_ns"] = completion.posted_ns, completion.completed_ns
        self._messages.append(row)

    def timed(self, rank: int, ended: Sequence[Timed]) -> None:
        """Record the spans that ``rank`` has ended: one row of ``SPAN`` each."""
        rows = np.zeros(len(ended), SPAN)
        for row, span in zip(rows, ended, strict=True):
            row["rank"], row["iteration"], row["span"], row["wrong"] = rank, span.iteration, span.span, span.wrong
            row["begin_ns"], row["end_ns"] = span.begin_ns, span.end_ns
        self._spans.append(rows)

    def stamped(self, sender: SendingEnd, telemetry: Telemetry, at_ns: int) -> None:
        """Record the echo of a probe of ``sender``: one row of ``STAMP`` for each switch."""
        self._stamps.append(np.array([*_stamps(sender, telemetry, at_ns)], STAMP))

    def close(self, senders: Sequence[SendingEnd]) -> None:
        """Write the rest, and all that ``senders`` retransmitted: a row of ``RETRY`` each. Close."""
        found = [(each.pair.flow.id, retry.expiries, retry.at_ns) for each in senders for retry in each.retries()]
        self._retries.append(np.array(found, RETRY))
        for file in (self._spans, self._messages, self._retries, self._stamps):
            file.close()


def _stamps(sender: SendingEnd, telemetry: Telemetry, at_ns: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield a row of ``STAMP`` for each switch in an echo. One clock serves all; what it cannot say is not told."""
    before_ns = telemetry.sent_ns
    for number, hop in enumerate(telemetry.hops):
        took_ns = hop.time_ns - before_ns
        wait_ns = (hop.queue_bytes + sender.packet_bytes) * 8 * 10**9 // max(hop.rate_bps, 1)
        if 0 <= took_ns <= _MOST_NS:
            yield sender.pair.flow.id, number, took_ns, min(wait_ns, _MOST_NS), at_ns
        before_ns = hop.time_ns
