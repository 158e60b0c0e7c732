"""The reference made from code names every command, option, fault, metric and key there is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import click
import pytest
from pydantic import BaseModel

from docs.site.reference import REFERENCE
from hpn.cli import command_line
from hpn.commands import COMMANDS
from hpn.failover.faults import FAULTS, parameters
from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.schema import DrillFile, WorkloadSection
from hpn.scenarios.expect.metrics import METRICS
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.variables import VARIABLES
from hpn.traffic.client.registry import CLIENTS
from tests.docs.pages import ROOT


@cache
def page(name: str) -> str:
    """A page of the reference."""
    return REFERENCE[name]()


def headings(name: str, level: int = 2) -> list[str]:
    """Its headings of a level, marks of code taken off."""
    return [text.strip("`") for text in re.findall(rf"^{'#' * level} (.*)$", page(name), re.M)]


def test_every_command_and_option_is_there() -> None:
    known = dict(_below("hpn", command_line))
    assert headings("commands") == list(known)
    assert {f"hpn {name}" for name in COMMANDS} <= set(known)
    for path, command in known.items():
        part = f"{page('commands')}\n## ".split(f"\n## {path}\n", 1)[1].split("\n## ", 1)[0]
        for option in (param for param in command.params if isinstance(param, click.Option) and param.help):
            assert option.opts[0] in part, f"{path} {option.opts[0]}"


def _below(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None and not found.hidden:
                yield from _below(f"{path} {name}", found)


def test_every_fault_and_its_parameters_are_there() -> None:
    assert headings("faults") == list(FAULTS)
    for kind, fault in FAULTS.items():
        part = page("faults").split(f"\n## {kind}\n", 1)[1].split("\n## ", 1)[0]
        assert all(f"| `{parameter.key}` |" in part for parameter in parameters(fault).values()), kind


def test_every_metric_is_there() -> None:
    assert headings("metrics") == list(METRICS)
    assert all(f"[{key}](#{key})" in page("metrics") for key in METRICS)


def test_every_key_of_a_drill_and_of_a_topology_is_there() -> None:
    models: tuple[type[BaseModel], ...] = (DrillFile, WorkloadSection, *CLIENTS.values())
    for model in models:
        for name, field in model.model_fields.items():
            assert f"| `{field.alias or name}` |" in page("drill-file"), name
    assert set(CLIENTS) <= set(headings("drill-file", 3))
    assert all(f"| `{name}` |" in page("topology-file") for name in (*FabricSpec.model_fields, *PRESETS))


def test_values_are_as_a_file_writes_them() -> None:
    assert "| `healthy` | a duration from 500 ms to 10 min | `1 s` |" in page("drill-file")
    assert "| `load` | a percentage from 0.1 % to 100 % | `40 %` |" in page("drill-file")
    assert "| `snap` | a size from 64 B to 256 KiB | `256 B` |" in page("drill-file")
    assert "| `across_segments` | yes or no | yes |" in page("drill-file")
    assert "| `nic_port_rate` | a rate, such as 200G | `200G` |" in page("topology-file")


def test_every_drill_and_every_variable_is_there() -> None:
    assert headings("library") == catalogue.names()
    assert all(f"| `{name}` |" in page("environment") for name in VARIABLES)


@pytest.mark.parametrize("name", REFERENCE)
def test_a_page_has_one_heading_at_its_top_and_only_whole_tables(name: str) -> None:
    lines = page(name).splitlines()
    assert [line for line in lines if line.startswith("# ")] == [lines[0]]
    columns = 0
    for line in lines:
        found = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("| ") else 0
        assert not found or not columns or found == columns, line
        columns = found or (columns if line.startswith("|--") else 0)


def test_the_reference_is_made_of_code_and_not_kept() -> None:
    assert not (ROOT / "reference").exists()
    assert not (ROOT / "docs" / "reference").exists()
