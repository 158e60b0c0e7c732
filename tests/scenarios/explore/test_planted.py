"""When campaigns against a planted defect may end: once their median is known."""

from __future__ import annotations

from itertools import product
from statistics import median_low

import pytest

from tests.scenarios.explore.planted import Needed, is_median_above

LIMIT = 5
FOUND, NOT = Needed(3, LIMIT), Needed(None, LIMIT)


@pytest.mark.parametrize("campaigns", [3, 4])
def test_the_median_is_known_once_the_rest_cannot_change_it(campaigns: int) -> None:
    for ended in range(campaigns + 1):
        for found in product((FOUND, NOT), repeat=ended):
            whole = [
                median_low(each.runs or LIMIT + 1 for each in (*found, *rest)) > LIMIT
                for rest in product((Needed(LIMIT, LIMIT), NOT), repeat=campaigns - ended)
            ]
            known = whole[0] if len(set(whole)) == 1 else None
            assert is_median_above(found, campaigns) is known
