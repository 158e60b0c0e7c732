"""What ``hpn plan`` prints of an inventory."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from hpn.results.text.tables import inventory_tables, table
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.inventory import inventory
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import FabricSpec


@pytest.mark.parametrize(
    ("preset", "said"), [("tiny-pods", "preset port"), ("pods", "preset port"), ("dcn-plus", "hash"), ("tiny", None)]
)
def test_the_plan_says_how_cores_pick_a_next_hop(preset: str, said: str | None) -> None:
    rows = [line.split() for line in _text(PRESETS[preset].spec).splitlines() if line.startswith("next hop at a Core")]
    assert rows == ([f"next hop at a Core {said}".split()] if said else [])


def _text(spec: FabricSpec) -> str:
    out = io.StringIO()
    console = Console(file=out, width=160)
    for found in inventory_tables(inventory(build(spec)), spec.name):
        console.print(found)
    return out.getvalue()


def test_a_table_shows_brackets_as_they_are() -> None:
    out = io.StringIO()
    Console(file=out, width=160).print(table("[/title]", (">[a, b]",), [("write [one, two] [/x]",)]))
    assert [line.strip() for line in out.getvalue().splitlines()] == ["[/title]", "[a, b]", "write [one, two] [/x]"]
