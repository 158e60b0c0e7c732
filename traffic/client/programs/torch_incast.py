"""Client ``torch``, ``work: incast``: gloo gathers a buffer of every rank at the first; each is checked there."""

from __future__ import annotations

import torch
import torch.distributed as dist

from hpn.traffic.client.programs import rank, torch_group
from hpn.traffic.client.programs.rank import Rank

_FLOAT_BYTES = 4
_VALUES = 1 << 16  # of a step's number and rank together: exact in float32


class Gathered:
    """Buffer of this rank, and at the first rank those of all."""

    def __init__(self, size_bytes: int, me: Rank) -> None:
        self._me = me
        self._given = torch.empty(max(size_bytes // _FLOAT_BYTES, 1))
        self._taken = [torch.empty_like(self._given) for _ in range(me.world)] if me.rank == 0 else None

    def fill(self, number: int) -> None:
        """Set this rank's values of a step."""
        self._given.fill_(self._value(self._me.rank, number))

    def gather(self, _number: int) -> None:
        """Send to the first rank, or receive from all."""
        dist.gather(self._given, self._taken, dst=0)

    def told(self, number: int) -> str:
        """Return the number of ranks whose values came wrong; 0 at all but the first."""
        taken = enumerate(self._taken or ())
        wrong = sum(not bool((values == self._value(of, number)).all()) for of, values in taken)
        return f"kind=incast bytes={self._given.numel() * _FLOAT_BYTES} wrong={wrong}"

    def _value(self, of: int, number: int) -> float:
        return float((number * self._me.world + of) % _VALUES)


def main() -> None:
    """Join, get ready, gather until the end."""
    asked = torch_group.options("gloo's gather").parse_args()
    try:
        me = torch_group.join(asked.timeout_ns)
        buffer = Gathered(asked.bytes, me)
        dist.barrier()
        for number in rank.steps(rank.begun(), asked.pause_ns):
            buffer.fill(number)
            rank.timed(number, buffer.gather, buffer.told)
    except (RuntimeError, OSError, ValueError, KeyError) as error:
        rank.give_up(error)
    rank.wait_to_be_ended()


if __name__ == "__main__":
    main()
