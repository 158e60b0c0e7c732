"""docs/drills.md names every key that a drill file takes, so that it cannot fall behind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from pydantic import BaseModel

from hpn.failover.analysis.port_sampling import Ports, Sampling
from hpn.failover.analysis.protocol_events import ProtocolEvent
from hpn.failover.faults import FAULTS, parameters
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.model import Workload
from hpn.scenarios.drill.schema import (
    DrillFile,
    OrderExpectation,
    RestoredFaultEntry,
    SampleSection,
    UntouchedExpectation,
    WorkloadSection,
    expectation_model,
)
from hpn.scenarios.drill.sections import SECTIONS
from hpn.scenarios.expect.metrics import METRICS
from hpn.scenarios.expect.selection import At, Bound, Flows
from hpn.testbed.files.document import parse
from hpn.traffic.collectives.registry import COLLECTIVES
from hpn.traffic.congestion.parameter_sets import PARAMETERS
from hpn.traffic.flows.paths import CHOICES
from hpn.traffic.flows.patterns import PATTERNS
from hpn.traffic.job.messages import MESSAGE_PATTERNS
from hpn.traffic.job.placement import ORDERS

TEXT = (Path(__file__).parents[2] / "docs" / "drills.md").read_text()
PROSE = " ".join(TEXT.split())
MODELS: tuple[type[BaseModel], ...] = (
    *SECTIONS.values(),
    RestoredFaultEntry,
    expectation_model(METRICS["goodput_during"]),
    UntouchedExpectation,
    OrderExpectation,
)


def _keys() -> Iterator[str]:
    yield from METRICS
    for words in (Bound, ProtocolEvent):
        yield from (word.value for word in words)
    for model in MODELS:
        yield from (field.alias or name for name, field in model.model_fields.items() if name != "of")
    for kind, fault in FAULTS.items():
        yield kind
        yield from (parameter.key for parameter in parameters(fault).values())


@pytest.mark.parametrize("key", sorted(set(_keys())))
def test_a_key_is_explained(key: str) -> None:
    assert f"`{key}`" in TEXT or f"`{key}:" in TEXT, f"docs/drills.md does not explain {key}"


def test_the_words_of_edges_and_flows_are_there() -> None:
    for word in (*At, *Flows):
        assert f"`{word}`" in TEXT or f": {word}`" in TEXT


def test_the_example_is_a_drill() -> None:
    example = TEXT.split("    drill: ", 1)[1].split("\n\nDurations", 1)[0]
    lines = [line.removeprefix("    ") for line in f"    drill: {example}".splitlines()]
    keys = set(DrillFile.model_fields) - {"job"}  # which stands in the place of a workload
    assert keys == {line.split(":")[0] for line in lines if line and line[0].isalpha()}
    assert drill_from(parse("\n".join(lines), "docs/drills.md"), Path()).name == "my-link-down"


def test_patterns_and_source_ports_are_there_and_a_workload_left_out_is_the_workload_by_default() -> None:
    for pattern in PATTERNS.values():
        assert f"`{pattern.name}`: {pattern.summary}" in PROSE, f"docs/drills.md does not explain {pattern.name}"
    for word in CHOICES:
        assert f"`{word}`: " in TEXT, f"docs/drills.md does not explain {word}"
    for key, words in (("pattern", PATTERNS), ("source_ports", CHOICES)):
        values = next(line for line in TEXT.splitlines() if line.startswith(f"| `{key}` |")).split("|")[2]
        assert values.strip() == ", ".join(f"`{word}`" for word in words), f"the row of {key} in docs/drills.md"
    section = WorkloadSection()
    assert {name: getattr(section, name) for name in WorkloadSection.model_fields if name != "client"} == {
        field.name: field.default for field in fields(Workload) if field.name != "seed"
    }
    assert Ports(SampleSection(queues="1 ms").ports) is Sampling(1).ports


def test_a_job_is_explained_and_its_example_is_one() -> None:
    example = TEXT.split("## job\n\n", 1)[1].split("\n\nIn the place", 1)[0]
    drill = "drill: a\nsummary: a\ntopology: tiny\n" + "\n".join(
        line.removeprefix("    ") for line in example.splitlines()
    )
    assert drill_from(parse(f"{drill}\nexpect: [job_survives: yes]", "docs/drills.md"), Path()).job is not None
    for registry in (COLLECTIVES.values(), MESSAGE_PATTERNS.values(), ORDERS.values(), PARAMETERS.values()):
        for entry in registry:
            assert entry.summary in PROSE, f"docs/drills.md does not explain {entry.name} of a job"
