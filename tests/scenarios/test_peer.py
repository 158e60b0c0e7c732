"""Expectations about local and remote senders: flows within a segment, and between segments."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.failover.analysis.model import DrillMetrics, Relation
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.expect.evidence import RunFacts
from hpn.scenarios.expect.scope import Scope
from hpn.scenarios.expect.verdict import judge
from hpn.testbed.errors import InputError
from hpn.testbed.files.document import parse

from .measured import FAILURE, at_edge, flow, metrics

HIT, LOCAL, REMOTE = "p0.s0.h0.r0", "p0.s0.h1.r0", "p0.s1.h0.r0"
DRILL = """
drill: cut
summary: one link is cut
topology: {{preset: tiny, hosts: 3}}
workload: {{across_segments: {across}}}
timeline:
  faults: [{{id: cut, fault: link-down, target: {target}, at: 1 s, for: 2 s}}]
expect:
  - {expectation}
"""


def measured() -> DrillMetrics:
    """The hit NIC hears a local sender, which lost 10 packets, and a remote one, which lost 40."""
    return metrics(
        (FAILURE,),
        (
            flow("near", at_edge("near", Relation.RECEIVER, 10), src=LOCAL, dst=HIT),
            flow("far", at_edge("far", Relation.RECEIVER, 40), src=REMOTE, dst=HIT),
        ),
    )


def test_peers_are_local_when_they_share_their_tors() -> None:
    segments = {"p0.s0.h0": (0, 0), "p0.s0.h1": (0, 0), "p0.s1.h0": (0, 1), "p1.s0.h0": (1, 0), "gpu-a": (1, 0)}
    local, remote = (Scope(peer=peer, segments=segments) for peer in ("local", "remote"))
    assert local.has_flow(HIT, LOCAL, None)
    assert local.has_flow(LOCAL, HIT, None)
    assert local.has_flow("gpu-a.r0", "p1.s0.h0.r0", None)
    assert remote.has_flow(HIT, REMOTE, None)
    assert remote.has_flow(HIT, "p1.s0.h0.r0", None)
    assert not local.has_flow(REMOTE, HIT, 0)
    assert Scope(peer="local")


@pytest.mark.parametrize(
    ("peer", "target", "lost", "where"),
    [("local", "p0.s0.h0.r0.0", 10, "near"), ("remote", "p0.s0.h1.r0.0", 40, "far")],  # as seed 1 draws the pairs
)
def test_local_and_remote_senders_are_judged_apart(peer: str, target: str, lost: int, where: str) -> None:
    text = DRILL.format(
        across="false",
        target=target,
        expectation=f"packets_lost: {{at_most: 20, flows: receiver, edge: failure, peer: {peer}}}",
    )
    found = judge(drill_from(parse(text, "d.yaml"), Path()), measured(), RunFacts(state_differences=())).checks[0]
    assert found.text == f"packets lost of receiver flows in {peer} peers at failure at most 20"
    assert (found.measured, found.evidence.split()[0]) == (lost, where)


def test_local_senders_that_the_workload_does_not_have_are_refused() -> None:
    text = DRILL.format(across="true", target=f"{HIT}.0", expectation="worst_outage: {below: 50 ms, peer: local}")
    with pytest.raises(InputError, match="peer is local, but no such flow stays within a segment; see across_segments"):
        drill_from(parse(text, "d.yaml"), Path())
