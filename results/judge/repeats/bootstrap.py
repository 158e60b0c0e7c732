"""Bootstrap interval of a median over repeats. Pure and repeatable. Imports numpy.

Changes when another statistic is estimated. Percentile bootstrap (Efron 1979): the repeats are resampled with
replacement, and the interval contains the middle of the resulting medians.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

SEED = 20240804
RESAMPLES = 10_000
CONFIDENCE = 0.95
_AT_ONCE = 1_000_000  # values drawn at once: a thousand repeats need no more memory than ten


def median_interval(values: Sequence[float], *, resamples: int = RESAMPLES) -> tuple[float, float]:
    """Return both ends of the median's interval; ends are resampled medians.

    ``inf`` is allowed. ValueError without values.
    """
    if not values:
        raise ValueError("no values to estimate a median from")
    given = np.asarray(values, dtype=np.float64)
    random = np.random.default_rng(SEED)
    size, each = len(given), max(1, _AT_ONCE // len(given))
    medians = np.concatenate(
        [
            _medians(given[random.integers(0, size, (min(each, resamples - done), size))])
            for done in range(0, resamples, each)
        ]
    )
    low, high = np.quantile(medians, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], method="inverted_cdf")
    return float(low), float(high)


def _medians(drawn: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the median of every row; the mean of the middle two if their number is even."""
    ordered = np.sort(drawn, axis=1)
    size = drawn.shape[1]
    middle: npt.NDArray[np.float64] = (ordered[:, (size - 1) // 2] + ordered[:, size // 2]) / 2
    return middle
