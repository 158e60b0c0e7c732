"""Offered load before a drill runs: what its links get, in `drill show`, `validate` and in what `drill new` writes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.cli import command_line
from hpn.failover.analysis.offered import Crossing, Offered
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.writing import DrillRequest
from hpn.scenarios.model.fitted_drill import congestion_lines, fitted
from hpn.scenarios.model.offered import Going, offered_load, planned_load
from hpn.testbed.fabric.build import build
from hpn.testbed.files.document import parse
from hpn.traffic.fluid.links import Links
from tests.failover.synthetic import flow as a_flow

CRASH = "{id: crash, fault: tor-crash, target: p0.s0.t0.0, at: 1500 ms, for: 2 s}"


def drill(topology: str, load: str = "40 %", fault: str = CRASH) -> Drill:
    text = (
        f"drill: mine\nsummary: x\ntopology: {topology}\nworkload: {{queue_pairs: 4, load: {load}}}\nprofile: quick\n"
        f"timeline: {{healthy: 1500 ms, faults: [{fault}], settle: 5 s}}\n"
        "expect:\n  - queue_pair_deaths: {at_most: 0}\n"
    )
    return drill_from(parse(text, "mine"), Path())


def planned(found: Drill) -> Offered:
    load = planned_load(found)
    assert load is not None
    return load


def sent_bps(load: Offered, span: int) -> float:
    """What all hosts send, added up over the links that leave them, as far as they are told."""
    return sum(link.rate_bps * (link.shares[span] or 0.0) for link in load.links if link.access and link.up)


@given(rails=st.integers(1, 2), hosts=st.integers(1, 3), aggs=st.integers(1, 4))
@settings(max_examples=12, deadline=None)
def test_all_that_is_sent_leaves_by_links_that_are_there(rails: int, hosts: int, aggs: int) -> None:
    found = drill(f"{{preset: small, segments: 2, rails: {rails}, hosts: {hosts}, aggs: {aggs}}}")
    load, fabric = planned(found), build(found.topology)
    busiest = max(share for link in load.links for share in link.shares if share is not None)
    assert busiest <= 4, "no link is told to carry what only all links together could"
    if len([link for link in load.links if link.access]) < 4 * len(fabric.nics):
        return  # only the busiest are told of
    rates = {sent_bps(load, span) for span in load.settled}
    data = sum(0.4 * sum(link.rate_bps for link in nic.links) for nic in fabric.nics)
    acks = 1.02
    assert all(0.999 * data <= rate <= acks * data for rate in rates), (rates, data)


def test_the_dead_ToR_carries_nothing_and_the_other_all_of_it() -> None:
    load = planned(drill("{preset: small, segments: 2, rails: 1, hosts: 2, aggs: 2}"))
    (before, after, repaired) = load.settled
    dead = [link for link in load.links if "p0.s0.t0.0" in (link.sender, link.towards)]
    assert dead
    assert all(link.shares[after] is None for link in dead)
    mine = [link for link in load.links if link.sender == "p0.s0.h0" and link.towards == "p0.s0.t0.1"]
    assert mine[0].shares[after] == pytest.approx(2 * (mine[0].shares[before] or 0), rel=0.01)
    assert mine[0].shares[repaired] == mine[0].shares[before]


def test_validate_and_show_name_the_links_that_a_crash_overloads(tmp_path: Path) -> None:
    text = fitted(
        DrillRequest(fault="tor-crash", topology="{preset: small, segments: 2, rails: 1, hosts: 4, aggs: 2}", name="m")
    )
    (tmp_path / "m.yaml").write_text(re.sub(r"load: \d+ %", "load: 48 %", text))
    said = CliRunner().invoke(command_line, ["drill", "validate", str(tmp_path / "m.yaml")])
    assert said.exit_code == 0
    assert "note: after crash failure: downlink p0.a1.1 to p0.s0.t0.1: 108 % of its rate" in said.output
    assert "loss there is congestion" in said.output
    lossless = re.sub("aggs: 2}", "aggs: 2, switch: {buffer: 4 MB}}", (tmp_path / "m.yaml").read_text())
    (tmp_path / "lossless.yaml").write_text(lossless)
    said = CliRunner().invoke(command_line, ["drill", "validate", str(tmp_path / "lossless.yaml")])
    assert "108 % of its rate" in said.output
    assert "PFC stops senders there" in said.output
    balanced = re.sub("buffer: 4 MB}", "balancing: {policy: adaptive}}", (tmp_path / "lossless.yaml").read_text())
    (tmp_path / "balanced.yaml").write_text(balanced)
    said = CliRunner().invoke(command_line, ["drill", "validate", str(tmp_path / "balanced.yaml")])
    assert "of its rate" not in said.output, "no flow has one path there"
    shown = CliRunner().invoke(command_line, ["drill", "show", str(tmp_path / "m.yaml")]).output
    assert "offered load once failover is over" in shown
    assert "before: 48 % of the rate of the busiest link" in shown
    assert "108 % of its rate" in shown


@pytest.mark.parametrize(
    "topology",
    [
        "{preset: small, segments: 2, rails: 1, hosts: 4, aggs: 1}",
        "{preset: small, segments: 2, rails: 2, hosts: 7, aggs: 2}",
        "{preset: small, segments: 2, rails: 3, hosts: 10, aggs: 3}",
        "{preset: tiny, architecture: dual-tor-clos}",
    ],
)
def test_a_new_drill_has_a_load_that_fits_after_its_fault_and_says_why(topology: str) -> None:
    text = fitted(DrillRequest(fault="tor-crash", topology=topology, name="mine"))
    assert not congestion_lines(drill_from(parse(text, "mine"), Path())), text
    assert re.search(r"load: \d+ %}  # after the fault the busiest link carries \d+%", text)


def test_a_new_drill_of_single_ToRs_expects_no_more_deaths_than_the_fault_must_cause() -> None:
    text = fitted(DrillRequest(fault="tor-crash", topology="{preset: tiny, architecture: single-tor}", name="mine"))
    assert "queue_pair_deaths: {at_most: 16}  # the fault leaves 16 of 32 queue pairs without a path" in text
    assert "worst_outage" not in text


def test_a_fault_that_nobody_tells_of_has_no_limit_that_timers_break() -> None:
    text = fitted(DrillRequest(fault="tor-dataplane-death", topology="tiny", name="mine"))
    assert "worst_outage" not in text
    assert "state_restored: yes" in text


def test_a_flow_that_an_edge_moved_to_an_overloaded_link_says_when() -> None:
    fabric = build(drill("{preset: tiny}").topology)
    links, (src, dst) = Links.of(fabric), fabric.nics[:2]
    row = links.out_of(src.links[0].lower.node, src.links[0].lower.name)
    flows = [replace(a_flow(), id=number, src_nic=src.name, dst_nic=dst.name, rate_pps=1e6) for number in (0, 1)]
    every = np.ones(2, dtype=np.bool_)
    going = Going(
        *(100, 200, "cut failure 0"),
        data=np.full((2, 1), row, dtype=np.int32),
        answers=np.full((2, 1), -1, dtype=np.int32),
        sends=every,
        arrives=every,
        known=every,
        marred=~every,
        why=["", ""],
        unanswered={},
        since_ns=np.array([130, 100]),
        moved=np.array([True, False]),
        down=frozenset(),
        slow={},
    )
    (span,) = offered_load(links, flows, [going], 10**6).spans
    assert span.crossing == (Crossing(0, 130, 130), Crossing(1, 100, None))


def test_a_new_drill_counts_queue_pairs_whose_acknowledgements_have_no_path() -> None:
    """Of 64 queue pairs 2 lose the path of their data and 2 that of acknowledgements: 4 died, and 2 were allowed."""
    fabric = "{preset: tiny, hosts: 4, aggs: 4, uplink_rate: 200G, seed: 20261, path_control: {policy: off}}"
    text = fitted(DrillRequest("streams", "link-down", fabric))
    assert "queue_pair_deaths: {at_most: 4}  # the fault leaves 4 of 64 queue pairs without a path" in text
