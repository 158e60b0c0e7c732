"""Send gaps of each flow, from the sender's records: no outage shorter than these can be claimed. PURE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class SendGaps:
    """Times between a flow's bursts, in nanoseconds."""

    bursts: int
    largest_ns: int
    p99_ns: int


def send_gaps(sent: npt.NDArray[np.void]) -> Mapping[int, SendGaps]:
    """Return the gaps of each flow by flow id; ``sent`` holds SENT records, in time order within each flow."""
    if not len(sent):
        return {}
    order = np.argsort(sent["flow"], kind="stable")
    flow, at = sent["flow"][order], sent["sent_ns"][order]
    starts = np.flatnonzero(np.diff(flow, prepend=flow[:1] + 1))
    found: dict[int, SendGaps] = {}
    for begin, times in zip(starts.tolist(), np.split(at, starts[1:]), strict=True):
        gaps = np.diff(times) if len(times) > 1 else np.zeros(1, np.int64)
        found[int(flow[begin])] = SendGaps(len(times), int(gaps.max()), int(np.percentile(gaps, 99)))
    return found
