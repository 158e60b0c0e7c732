"""Client ``torch``, ``work: training``: a small network trained with DistributedDataParallel; weights are compared."""

from __future__ import annotations

import math
import zlib

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from hpn.traffic.client.programs import rank, torch_group

_FLOAT_BYTES = 4
_LAYERS = 4
_BATCH = 4
_RATE = 0.01
_WARM_UP = 2
"""Steps before the run: after its first backward pass DDP divides the gradients into buckets again."""


class Training:
    """The network of this rank, with equal initial weights on all ranks and its own samples."""

    def __init__(self, size_bytes: int, number: int) -> None:
        torch.manual_seed(0)
        self._width = max(math.isqrt(size_bytes // _FLOAT_BYTES // _LAYERS), 1)
        layers = [nn.Linear(self._width, self._width, bias=False) for _ in range(_LAYERS)]
        self._network = nn.Sequential(*(part for layer in layers for part in (layer, nn.Tanh())))
        a_layer_mb = self._width**2 * _FLOAT_BYTES / 2**20
        self._parallel = DistributedDataParallel(self._network, bucket_cap_mb=a_layer_mb)
        self._optimizer = torch.optim.SGD(self._network.parameters(), lr=_RATE)
        self._samples = torch.Generator().manual_seed(number + 1)

    def step(self, _number: int) -> None:
        """Do forward and backward pass (which averages the ranks' gradients, bucket by bucket) and update weights."""
        given = torch.randn(_BATCH, self._width, generator=self._samples)
        self._optimizer.zero_grad()
        loss = (self._parallel(given) - given).square().mean()
        loss.backward()
        self._optimizer.step()

    def told(self, _number: int) -> str:
        """Return the bytes of all gradients, and a sum of all weights, equal on all ranks if gradients were averaged
        right."""
        found = 0
        for weights in self._network.parameters():
            found = zlib.crc32(memoryview(weights.detach().numpy()).cast("B"), found)
        return f"kind=training bytes={self._width**2 * _LAYERS * _FLOAT_BYTES} sum={found:08x}"


def main() -> None:
    """Join, train twice to get ready, train until the end."""
    asked = torch_group.options("a training step with DistributedDataParallel").parse_args()
    try:
        me = torch_group.join(asked.timeout_ns)
        training = Training(asked.bytes, me.rank)
        for number in range(_WARM_UP):
            training.step(number)
        for number in rank.steps(rank.begun(), asked.pause_ns):
            rank.timed(number, training.step, training.told)
    except (RuntimeError, OSError, ValueError, KeyError) as error:
        rank.give_up(error)
    rank.wait_to_be_ended()


if __name__ == "__main__":
    main()
