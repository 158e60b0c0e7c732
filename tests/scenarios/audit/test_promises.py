"""A promise file is read like the expectations of a drill, with every mistake at its line."""

from __future__ import annotations

import jsonschema
import pytest

from hpn.scenarios.audit.failures import KINDS, PAIR
from hpn.scenarios.audit.promises import DEFAULT, check_used, default_promises, promises_in, promises_schema
from hpn.testbed.errors import InputError
from hpn.testbed.files.document import parse

BAD = """\
promises:
  - worst_outage: {at_most: 500 lightyears, edge: failure}
    of: [link, prot]
  - wurst_outage: {at_most: 1 s}
  - packets_lost: {at_most: 0}
    of: []
colour: red
"""


def test_the_default_says_what_holds_for_which_kind() -> None:
    found = default_promises()
    assert [each.text for each in found] == [
        "worst outage at failure at most 500 ms",
        "packets lost at repair at most 0",
        "packets lost of other flows at most 0",
        "converged at failure at most 2 s",
        "state restored",
    ]
    assert found[0].of == ("link", "port", "switch", "member", "session", "silent")
    assert found[4].of == (*KINDS, PAIR)
    assert found[0].longest_ns == 500e6


def test_every_mistake_is_told_with_its_line() -> None:
    with pytest.raises(InputError) as caught:
        promises_in(parse("promises: 3\n", "p.yaml"))
    assert caught.value.problems == ("p.yaml:1: promises is 3; write a list",)
    with pytest.raises(InputError) as caught:
        promises_in(parse(BAD, "p.yaml"))
    lines = [each.partition(": ")[0] for each in caught.value.problems]
    assert lines == ["p.yaml:2", "p.yaml:3", "p.yaml:4", "p.yaml:6", "p.yaml:7"]
    assert "promises[0].worst_outage.at_most: '500 lightyears' is not a duration" in caught.value.problems[0]
    assert "unknown kind 'prot' in promises[0].of; did you mean port?" in caught.value.problems[1]
    assert "unknown metric 'wurst_outage' in promises[1]; did you mean worst_outage" in caught.value.problems[2]


@pytest.mark.parametrize("text", ["promises: []\n", "promises: [3]\n", "promises: [{of: link}]\n", "promises: [{}]\n"])
def test_a_list_without_a_promise_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"p\.yaml:1: "):
        promises_in(parse(text, "p.yaml"))


def test_the_schema_takes_the_default_and_refuses_what_the_loader_refuses() -> None:
    validator = jsonschema.Draft202012Validator(promises_schema())
    validator.check_schema(promises_schema())
    assert validator.is_valid(parse(DEFAULT, "default").data)
    for text in (BAD, "promises: []\n", "promises: [{of: nic, packets_lost: {at_most: 0}}]\n", "promises: [{}]\n"):
        assert not validator.is_valid(parse(text, "p.yaml").data), text


def test_promises_about_other_kinds_only_are_refused() -> None:
    promises = promises_in(parse("promises: [{packets_lost: {at_most: 0}, of: host}]\n", "p.yaml"))
    check_used(promises, ["host"])
    with pytest.raises(InputError, match="no promise is of link"):
        check_used(promises, ["link"])
