"""The queries of the Grafana dashboard."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

BOARD = Path(__file__).parents[2] / "examples" / "grafana" / "hpn.json"


@dataclass(frozen=True, slots=True)
class Query:
    """One expression, where it stands, and the labels that its legend names."""

    where: str
    expression: str
    legend_labels: tuple[str, ...]

    def filled_in(self, lab: str, window: str) -> str:
        """As Grafana would ask it."""
        return self.expression.replace("$lab", lab).replace("$__rate_interval", window)


def queries(*, annotations: bool = True) -> list[Query]:
    """Every query of the board; those of annotations find something only where something has happened."""
    board = json.loads(BOARD.read_text())
    found = [
        Query(panel["title"], target["expr"], _labels(target["legendFormat"]))
        for panel in board["panels"]
        for target in panel["targets"]
    ]
    of_faults = [
        Query(each["name"], each["expr"], _labels(each["titleFormat"])) for each in board["annotations"]["list"]
    ]
    return [*found, *(of_faults if annotations else [])]


def _labels(legend: str) -> tuple[str, ...]:
    return tuple(re.findall(r"{{(\w+)}}", legend))
