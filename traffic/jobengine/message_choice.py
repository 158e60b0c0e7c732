"""Algorithms for choosing the queue pair of a connection that carries a message. PURE, without numpy.

HPN's library sends each message by the queue pair with the fewest bytes outstanding (paper section 6.2); NCCL uses its
queue pairs in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hpn.testbed.entries import Registry


@dataclass(frozen=True, slots=True)
class MessageChoice:
    """Algorithm that picks a queue pair for a message, from the bytes outstanding on each and the messages so far."""

    name: str
    summary: str
    choose: Callable[[Sequence[int], int], int]


def _fewest(outstanding: Sequence[int], _so_far: int) -> int:
    return min(range(len(outstanding)), key=outstanding.__getitem__)


def _in_turn(outstanding: Sequence[int], so_far: int) -> int:
    return so_far % len(outstanding)


MESSAGE_CHOICES: Registry[MessageChoice] = Registry(
    "choice of queue pair",
    lambda choice: choice.name,
    (
        MessageChoice("fewest-bytes", "the queue pair with the fewest bytes outstanding, as HPN's library", _fewest),
        MessageChoice("in-turn", "one after the other, as NCCL does", _in_turn),
    ),
    of=MessageChoice,
)
