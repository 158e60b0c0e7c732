"""Claims of the HPN paper about training LLaMa-7B, LLaMa-13B and GPT-3 175B on 448 GPUs (section 9.1). Pure.

One job is run for all of them: its sums wait for its compute, so that another model is the same sums beside another
compute time. The same job is also compared at twice its size, on twice as many hosts and segments of DCN+.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from hpn.scenarios.paper.claim import Claim, Without
from hpn.scenarios.paper.gains import UNTOLD, Pair, compute_ms, estimate_of, gain, period
from hpn.scenarios.paper.interval import Estimate, estimate, says_the_same
from hpn.scenarios.paper.measures import ClaimEvidence, Finding
from hpn.scenarios.paper.models import GPT_3, GRADIENT_BYTES, LLAMA_7B, LLAMA_13B, Model

_ONCE = Pair("job-llama-7b-hpn", "job-llama-7b-dcn-plus")
_TWICE = Pair("job-llama-7b-double-hpn", "job-llama-7b-double-dcn-plus")
_RUN, _RUN_BYTES = LLAMA_7B, GRADIENT_BYTES[0]
"""Model and gradients of the drills."""
_GPUS = 448


@dataclass(frozen=True, slots=True)
class ModelTraining:
    """Judge: a model trains faster by the paper's gain, with gradients of 16 to 32 bits."""

    pair: Pair
    model: Model
    paper: float

    def __call__(self, found: ClaimEvidence) -> Finding:
        """Return our gains, from the measured sums and the model's compute, and the batch of the paper's gain."""
        sums = self._sums(found)
        if sums is None:
            return UNTOLD
        pairs, run_ms = sums
        few, many = (self._gain(pairs, self._compute_ms(run_ms, size), found) for size in GRADIENT_BYTES)
        text = f"{few.text()} with gradients of 16 bits, {many.text()} of 32"
        better, other = (fmean(pair[at] for pair in pairs) for at in (0, 1))
        needed_ms = (other - better) / self.paper - better  # (needed + other) / (needed + better) = 1 + paper
        if needed_ms > 0:
            tokens = self.model.batch_tokens * needed_ms / self._compute_ms(run_ms, GRADIENT_BYTES[0])
            text += f"; {self.paper:+.1%} with 16 bits takes a batch of {tokens / 1e6:.1f} M tokens"
        span = Estimate((few.mean + many.mean) / 2, few.low, many.high, few.draws)
        return Finding(text, says_the_same(span, self.paper))

    def _sums(self, found: ClaimEvidence) -> tuple[list[tuple[float, float]], float] | None:
        """Return an iteration without its compute on both networks, draw by draw, and the compute, in ms."""
        periods, computes = self.pair.of(found, period), self.pair.of(found, compute_ms)
        if periods is None or computes is None:
            return None
        both = zip(periods, computes, strict=True)
        return [(one - mine, two - its) for (one, two), (mine, its) in both], computes[0][0]

    def _compute_ms(self, run_ms: float, gradient_bytes: int) -> float:
        """Return the model's compute beside the sums of the drill, from the drill's own."""
        ours = self.model.compute_over_sum(_GPUS, gradient_bytes)
        return run_ms * ours / _RUN.compute_over_sum(_GPUS, _RUN_BYTES)

    def _gain(self, sums: list[tuple[float, float]], compute: float, found: ClaimEvidence) -> Estimate:
        return estimate_of(sums, found, lambda better, other: gain(compute + better, compute + other))


@dataclass(frozen=True, slots=True)
class StableGain:
    """Judge: a job of twice the size gains as much: the interval of the difference holds 0, and not the loss of all."""

    once: Pair
    twice: Pair

    def __call__(self, found: ClaimEvidence) -> Finding:
        """Return both gains and their difference."""
        periods, doubled = self.once.of(found, period), self.twice.of(found, period)
        if periods is None or doubled is None:
            return UNTOLD
        one, two = (estimate_of(pairs, found, gain) for pairs in (periods, doubled))
        many = doubled * len(periods) if len(doubled) == 1 else doubled  # run once: it meets every draw of the other
        change = estimate([gain(*after) - gain(*before) for before, after in zip(periods, many, strict=True)])
        text = f"{one.text()}, at twice the size {two.text()}; difference {change.text()}"
        same = change.holds(0.0)
        return Finding(text, None if same and change.holds(-one.mean) else same)


_WHY = (
    "16 GPUs on 8 hosts, hashes drawn and orders of hosts; 40 % of an H800, nothing overlaps, tensor groups of 8; the"
    " paper tells neither batch nor parallelism"
)


def _training(key: str, model: Model, paper: float, why: str, shortfall: str = "") -> Claim:
    return Claim(
        key,
        f"{model.name} trains faster than on DCN+",
        f"{paper:+.1%}",
        f"{why}; {_WHY}",
        _ONCE.drills,
        ModelTraining(_ONCE, model, paper),
        drawn=(_ONCE.other,),
        without=(Without("a job larger than a segment of DCN+", {_ONCE.other: "job-llama-7b-local"}),),
        shortfall=shortfall,
    )


CLAIMS = (
    _training("training-llama-7b", LLAMA_7B, 0.079, "a batch of 4 million tokens (Touvron et al. 2023)"),
    _training(
        "training-llama-13b",
        LLAMA_13B,
        0.144,
        "a batch of 4 million tokens (Touvron et al. 2023); its sums are those of the 7B job, computed",
        "compute and gradients both grow with a model: at one batch 13B has the share of sums that 7B has",
    ),
    _training(
        "training-gpt-3",
        GPT_3,
        0.063,
        "a batch of 3.2 million tokens (Brown et al. 2020), 8 stages; its sums are those of the 7B job, computed",
        "that batch computes for 19 s on 448 GPUs, beside sums of 0.19 s",
    ),
    Claim(
        "training-doubled",
        "the gain over DCN+ stays when the job doubles",
        "14.4 % on 448 GPUs, 14.9 % on 2,300",
        "two jobs of the paper, other models; here 16 and 32 GPUs, LLaMa-7B's share of sums, a batch that doubles too;"
        " the larger one needs a second pod of DCN+",
        (*_ONCE.drills, *_TWICE.drills),
        StableGain(_ONCE, _TWICE),
        drawn=(_ONCE.other, _TWICE.other),
        without=(Without("DCN+ at twice the size (HPN itself)", {_TWICE.other: _TWICE.better}),),
        shortfall="it grows: one pod of DCN+ holds the smaller job, and the larger one meets a third tier of hashes",
    ),
)
