"""The JSON Schema of drill files, held by ``jsonschema`` against the library, and against what the loader refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from pydantic import BaseModel

from hpn.failover.faults import FAULTS
from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.json_schema import drill_schema
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.expect.metrics import METRICS
from hpn.testbed.errors import InputError
from hpn.testbed.files.document import parse, read
from hpn.testbed.files.json_schema import DIALECT
from tests.product.hpn import ROOT

Data = dict[str, Any]


class _Editor(yaml.SafeLoader):
    """As a reader of YAML 1.2: yes, no, on and off are text."""


_Editor.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in of if tag != "tag:yaml.org,2002:bool"]
    for first, of in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Editor.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(?:true|false)$"), list("tf"))


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = json.loads(json.dumps(drill_schema()))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == DIALECT
    return jsonschema.Draft202012Validator(schema)


_FILES = [
    *(catalogue.find(name) for name in catalogue.names()),
    *sorted((ROOT / "scenarios" / "paper" / "drills").glob("*.yaml")),
    *sorted((ROOT / "scenarios" / "bench").glob("*.yaml")),
    *sorted((ROOT / "examples" / "jobs").glob("*.yaml")),
]


def test_every_drill_that_comes_with_hpn_is_right_by_it(validator: jsonschema.Draft202012Validator) -> None:
    drills = 0
    for path in _FILES:
        data = read(path).data
        if "drill" not in data:
            continue
        drills += 1
        for seen in (data, yaml.load(path.read_text(), Loader=_Editor)):
            wrong = [f"{path.name}: {error.json_path}: {error.message}" for error in validator.iter_errors(seen)]
            assert wrong == []
    assert drills > 60


GOOD = """\
drill: good
summary: one link is cut
topology: {preset: tiny, rails: 2}
workload: {load: 40 %}
timeline:
  healthy: 1500 ms
  faults:
    - {id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 1500 ms, for: 2 s}
  settle: 3 s
expect:
  - worst_outage: {below: 50 ms, edge: failure}
  - state_restored: yes
"""


def _set(*where: str | int, to: object) -> Callable[[Data], None]:
    def change(data: Data) -> None:
        place: Any = data
        for key in where[:-1]:
            place = place[key]
        if to is None:
            del place[where[-1]]
        else:
            place[where[-1]] = to

    return change


_CUT = ("timeline", "faults", 0)
_JOB = {"collective": {"kind": "all-reduce", "size": "4 MB"}}
WRONG: dict[str, Callable[[Data], None]] = {
    "an unknown key": _set("worklod", to={}),
    "an unknown key of a section": _set("workload", "lod", to="4 %"),
    "an unknown key of a topology": _set("topology", "rials", to=2),
    "an unknown preset": _set("topology", to="tny"),
    "an unknown architecture": _set("topology", "architecture", to="hpm"),
    "an unknown fault": _set(*_CUT, "fault", to="link-dwn"),
    "a fault's key that another kind has": _set(*_CUT, "every", to="1 s"),
    "a fault without its target": _set(*_CUT, "target", to=None),
    "a fault that repairs itself, told when": _set(*_CUT, "fault", to="bgp-reset"),
    "a duration without a unit": _set("timeline", "healthy", to=1500),
    "a share without %": _set("workload", "load", to=0.4),
    "a pattern that there is not": _set("workload", "pattern", to="ring"),
    "too many queue pairs": _set("workload", "queue_pairs", to=65),
    "an unknown metric": _set("expect", 0, to={"worst_outge": {"below": "50 ms"}}),
    "a metric without a limit": _set("expect", 0, to={"worst_outage": {"edge": "failure"}}),
    "a limit in another unit": _set("expect", 0, to={"worst_outage": {"below": "50 %"}}),
    "a word for yes or no": _set("expect", 1, to={"state_restored": "perhaps"}),
    "nothing expected": _set("expect", to=[]),
    "a name that is none": _set("drill", to="Good Drill"),
    "no summary": _set("summary", to=None),
    "a profile that there is not": _set("profile", to="long"),
    "an unknown client": _set("workload", to={"client": {"run": "torhc"}}),
    "a client's key that another has": _set("workload", to={"client": {"run": "iperf3", "work": "all-reduce"}}),
    "an unknown collective": _set("job", to={"collective": {"kind": "al-reduce", "size": "4 MB"}}),
    "an unknown key of a job": _set("job", to={**_JOB, "gpu": 1}),
    "an unknown event": _set("expect", 0, to={"order": {"events": ["carrier", "lga"]}}),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_wrong_for_both(validator: jsonschema.Draft202012Validator, what: str) -> None:
    data = parse(GOOD, "good.yaml").data
    assert list(validator.iter_errors(data)) == []
    drill_from(parse(GOOD, "good.yaml"), Path())
    WRONG[what](data)
    assert list(validator.iter_errors(data)) != []
    with pytest.raises(InputError):
        drill_from(parse(yaml.safe_dump(data), "bad.yaml"), Path())


def test_every_fault_and_metric_is_in_it(validator: jsonschema.Draft202012Validator) -> None:
    schema = validator.schema
    faults = schema["properties"]["timeline"]["properties"]["faults"]["items"]
    assert faults["properties"]["fault"]["enum"] == list(FAULTS)
    assert list(schema["properties"]["expect"]["items"]["properties"]) == list(METRICS)


def test_defaults_are_as_a_file_writes_them_and_no_title_says_a_key_again() -> None:
    properties = drill_schema()["properties"]
    assert properties["timeline"]["properties"]["healthy"]["default"] == "1 s"
    assert properties["workload"]["properties"]["load"]["default"] == "40 %"
    assert properties["capture"]["properties"]["snap"]["default"] == "256 B"
    assert properties["topology"]["anyOf"][-1]["properties"]["name"]["pattern"]
    assert "title" not in properties["workload"]


def test_what_a_plug_in_cannot_say_of_a_type_may_be_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    from hpn.scenarios.drill import json_schema

    class Strange(BaseModel):
        run: str
        call: Callable[[], None]

    monkeypatch.setattr(json_schema, "CLIENTS", {"strange": Strange})
    (rule,) = drill_schema()["properties"]["workload"]["properties"]["client"]["allOf"]
    assert rule["then"]["properties"]["call"] == {}
