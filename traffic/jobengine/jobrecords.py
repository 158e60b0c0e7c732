"""The record files that a job's worker writes while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from hpn.traffic.collectives.rank import Timed
from hpn.traffic.jobengine.records import MESSAGE, RETRY, SPAN
from hpn.traffic.jobengine.sending_end import SendingEnd
from hpn.traffic.streams.recordfile import RecordFile
from hpn.traffic.transport.work import Completion


class JobRecords:
    """Spans, messages and retransmissions of worker ``index``, in folder ``out``. OSError on failure."""

    def __init__(self, out: Path, index: int) -> None:
        self._spans = RecordFile(out / f"spans-{index}.bin", SPAN)
        self._messages = RecordFile(out / f"messages-{index}.bin", MESSAGE)
        self._retries = out / f"retries-{index}.bin"

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

    def close(self, senders: Iterable[SendingEnd]) -> None:
        """Write the rest, and all that ``senders`` retransmitted: a row of ``RETRY`` each. Close."""
        found = [(each.pair.flow.id, retry.expiries, retry.at_ns) for each in senders for retry in each.retries()]
        retries = RecordFile(self._retries, RETRY)
        retries.append(np.array(found, RETRY))
        retries.close()
        self._spans.close()
        self._messages.close()
