"""Costs of failures in a picture: classes of lines and boxes, their style, and the legend. Pure.

Changes when a picture tells costs apart in another way. Width and dashes tell them before colours do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum


class Cost(IntEnum):
    """Cost of a part's worst failure."""

    UNKNOWN = 0
    NOTHING = 1
    LOSS = 2
    BROKEN = 3
    SINGLE_POINT = 4

    @property
    def words(self) -> str:
        """Text for legends and tooltips."""
        return _WORDS[self]

    @property
    def css(self) -> str:
        """Class in the style sheet."""
        return f"cost{self.value}"


_WORDS: Mapping[Cost, str] = {
    Cost.UNKNOWN: "its failure is inconclusive or was not tried",
    Cost.NOTHING: "its failure costs nothing",
    Cost.LOSS: "its failure loses packets, and no promise is broken",
    Cost.BROKEN: "its failure breaks a promise",
    Cost.SINGLE_POINT: "single point: its failure cuts off a NIC or host",
}

STYLE = """
.hpn-fabric .cost0,.hpn-fabric rect.cost0{stroke:#8c959f;stroke-width:1.2;stroke-dasharray:1 3}
.hpn-fabric .cost1,.hpn-fabric rect.cost1{stroke:#0a7d3c;stroke-width:1.2}
.hpn-fabric .cost2,.hpn-fabric rect.cost2{stroke:#b08800;stroke-width:2.4}
.hpn-fabric .cost3,.hpn-fabric rect.cost3{stroke:#c2410c;stroke-width:3.6}
.hpn-fabric .cost4,.hpn-fabric rect.cost4{stroke:#b3001b;stroke-width:5;stroke-dasharray:8 2}
@media screen and (prefers-color-scheme:dark){
.hpn-fabric .cost1,.hpn-fabric rect.cost1{stroke:#4fd18b}
.hpn-fabric .cost2,.hpn-fabric rect.cost2{stroke:#e3c04f}
.hpn-fabric .cost3,.hpn-fabric rect.cost3{stroke:#ff9a5c}
.hpn-fabric .cost4,.hpn-fabric rect.cost4{stroke:#ff7b86}
}
"""


def worst(names: Iterable[str], costs: Mapping[str, Cost]) -> Cost | None:
    """Return the largest cost of these parts; None where none is known."""
    return max((costs[name] for name in names if name in costs), default=None)


def kinds(names: Iterable[str], costs: Mapping[str, Cost]) -> list[str]:
    """Return the classes of a line or box that stands for these parts."""
    found = worst(names, costs)
    return [] if found is None else [found.css]


def legend(costs: Mapping[str, Cost]) -> Iterator[tuple[str, str]]:
    """Yield symbol and meaning of each cost in the picture, the largest first."""
    for cost in sorted(set(costs.values()), reverse=True):
        count = sum(each is cost for each in costs.values())
        yield f'<line class="link {cost.css}" x1="-14" y1="0" x2="14" y2="0"/>', f"{cost.words} ({count:,})"
