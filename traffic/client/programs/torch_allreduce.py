"""Client ``torch``, ``work: all-reduce``: gloo sums a buffer over all ranks, again and again; each sum is checked."""

from __future__ import annotations

import zlib

import torch
import torch.distributed as dist

from hpn.traffic.client.programs import rank, torch_group
from hpn.traffic.client.programs.rank import Rank

_FLOAT_BYTES = 4
_PATTERN = 251  # values of the pattern: a prime, so that no chunk of the ring looks like its neighbour
_SHIFTS = 97


class Buffer:
    """Input of this rank in a step, and the expected sum: whole numbers, exact in float32."""

    def __init__(self, size_bytes: int, me: Rank) -> None:
        self._me = me
        pattern = torch.arange(max(size_bytes // _FLOAT_BYTES, 1)) % _PATTERN
        self._given = (pattern * (me.rank + 1)).float()
        self._summed = (pattern * (me.world * (me.world + 1) // 2)).float()
        self._values = torch.empty_like(self._given)

    def fill(self, number: int) -> None:
        """Set this rank's input of a step; it differs in each, so that an old sum is wrong."""
        torch.add(self._given, number % _SHIFTS, out=self._values)

    def sum_up(self, _number: int) -> None:
        """Sum over all ranks."""
        dist.all_reduce(self._values)

    def told(self, number: int) -> str:
        """Return the sum's checksum and its number of wrong values: a wrong part may be the same on all ranks."""
        right = self._summed + self._me.world * (number % _SHIFTS)
        wrong = int(torch.count_nonzero(self._values != right))
        checksum = zlib.crc32(memoryview(self._values.numpy()))
        return f"kind=all-reduce bytes={self._values.numel() * _FLOAT_BYTES} sum={checksum:08x} wrong={wrong}"


def main() -> None:
    """Join, get ready, sum until the end."""
    asked = torch_group.options("gloo's all_reduce").parse_args()
    try:
        me = torch_group.join(asked.timeout_ns)
        buffer = Buffer(asked.bytes, me)
        dist.barrier()
        for number in rank.steps(rank.begun(), asked.pause_ns):
            buffer.fill(number)
            rank.timed(number, buffer.sum_up, buffer.told)
    except (RuntimeError, OSError, ValueError, KeyError) as error:
        rank.give_up(error)
    rank.wait_to_be_ended()


if __name__ == "__main__":
    main()
