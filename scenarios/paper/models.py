"""Models that the paper trains: their compute and sums of gradients by arithmetic. Pure.

Megatron's parallelism with tensor groups of a host: GPUs of the same index sum their part of the gradients, all of it
between hosts. Nothing overlaps. The paper tells neither batch nor parallelism.
"""

from __future__ import annotations

from dataclasses import dataclass

_FLOPS = 0.4 * 989e12  # of a GPU in a second: H800 at 40 %
_NIC_BYTES_PER_S = 50e9
_HOST = 8  # GPUs, and the tensor degree


@dataclass(frozen=True, slots=True)
class Model:
    """Model with its published batch; ``stages`` of its pipeline."""

    name: str
    parameters: float
    batch_tokens: float
    stages: int = 1

    def compute_s(self, gpus: int) -> float:
        """Return the compute time of an iteration in s: 6 operations a parameter and token."""
        return 6 * self.parameters * self.batch_tokens / (gpus * _FLOPS)

    def sum_s(self, gpus: int, gradient_bytes: int) -> float:
        """Return the time in s of a ring over the hosts of a stage at the full rate of a NIC."""
        hosts = gpus // _HOST // self.stages
        part = self.parameters / (_HOST * self.stages) * gradient_bytes
        return 2 * (hosts - 1) / hosts * part / _NIC_BYTES_PER_S

    def share(self, gpus: int, gradient_bytes: int) -> float:
        """Return the share of sums in an iteration."""
        return 1 / (1 + self.compute_over_sum(gpus, gradient_bytes))

    def compute_over_sum(self, gpus: int, gradient_bytes: int) -> float:
        """Return the compute time as a multiple of the sum's."""
        return self.compute_s(gpus) / self.sum_s(gpus, gradient_bytes)


LLAMA_7B = Model("LLaMa-7B", 6.7e9, 4e6)
LLAMA_13B = Model("LLaMa-13B", 13.0e9, 4e6)
"""Parameters and batches of both: Touvron et al. 2023, table 2."""
GPT_3 = Model("GPT-3 175B", 175e9, 3.2e6, stages=8)
"""Brown et al. 2020, table 2.1; the pipeline of the HPN paper's example (section 7)."""

GRADIENT_BYTES = 2, 4
"""16 or 32 bits of a gradient; both are in use."""
