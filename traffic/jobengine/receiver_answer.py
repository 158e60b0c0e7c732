"""Answer of a receiving end to what has arrived or is due. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hpn.traffic.multipath.sack import Sack
from hpn.traffic.transport.inbox import Written
from hpn.traffic.transport.responder import Reply


class Answer(NamedTuple):
    """Result of receiving packets: replies due at once, memory writes, and the PSN of an invalid packet."""

    replies: Sequence[Reply]
    written: Sequence[Written] = ()
    invalid: int | None = None
    sacks: Sequence[Sack] = ()
