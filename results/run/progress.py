"""Progress reports of a running drill: small frozen records, sent as JSON lines out of the sandbox."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True, slots=True)
class Progress:
    """One progress report. ``kind``: 'phase' (text: its name), 'traffic' (goodput now), 'fault', 'stuck', 'note'."""

    kind: str
    text: str
    elapsed_s: float = 0.0  # since the start of traffic; 0 before
    total_s: float = 0.0  # planned length of the traffic
    goodput_bps: Mapping[str, float] = field(default_factory=dict)  # per plane, 'plane 0'


def encode(news: Progress) -> bytes:
    """Return a progress report as one line of JSON."""
    return json.dumps(asdict(news)).encode() + b"\n"


def decode(line: bytes) -> Progress:
    """Return the progress report of a line: the inverse of ``encode``."""
    return Progress(**json.loads(line))
