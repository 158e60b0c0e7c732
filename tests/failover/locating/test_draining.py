"""A link is drained when its loss costs more than its siblings cannot carry, and only if it is known which it is."""

from __future__ import annotations

import numpy as np
import pytest

from hpn.failover.analysis.metrics.series import StreamSeries
from hpn.failover.analysis.series import Bins, SeriesFlow
from hpn.failover.locating.draining import decide
from hpn.failover.locating.drains import drains_of
from hpn.failover.locating.known import Standing
from hpn.failover.locating.parts import Part, PartKind, Suspect, ends_of
from hpn.failover.locating.seen import Accused
from hpn.failover.locating.siblings import siblings
from hpn.testbed.events import Event, EventKind
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec
from hpn.traffic.flows.path_search import Direction

TINY = load_fabric("tiny")
UPLINK, ACCESS = "p0.s0.t0.0-p0.a0.1", "p0.s0.h0.r0.0"


def _accused(*names: str, loss: float = 0.01, kind: PartKind = PartKind.DIRECTION) -> Accused:
    upward = True if kind is PartKind.DIRECTION else None
    return Accused(Suspect(tuple(Part(kind, name, upward) for name in names)), loss, 0.99)


def _loads(fabric: Fabric, share: float) -> dict[Direction, float]:
    return {(link.name, up): share * link.rate_bps for link in fabric.links for up in (True, False)}


@pytest.mark.parametrize("name", [UPLINK, ACCESS])
def test_a_lossy_link_of_a_quiet_fabric_is_drained(name: str) -> None:
    found = decide(TINY, _accused(name), _loads(TINY, 0.1))
    assert (found.link, found.drains, found.draining) == (name, True, 0.0)
    assert found.leaving == pytest.approx(0.01 / len(siblings(TINY, TINY.link(name))))


def test_a_link_that_its_siblings_cannot_replace_stays_unless_it_loses_more() -> None:
    busy = _loads(TINY, 0.6)
    ways = len(siblings(TINY, TINY.link(ACCESS)))
    too_much = 1 - (ways - 1) / (ways * 0.6)
    found = decide(TINY, _accused(ACCESS), busy)
    assert not found.drains
    assert found.draining == pytest.approx(too_much)
    assert decide(TINY, _accused(ACCESS, loss=0.9), busy).drains


def test_the_loss_of_one_direction_is_weighed_against_both() -> None:
    down_is_full = {**_loads(TINY, 0.1), **{(each.name, False): 0.9 * each.rate_bps for each in TINY.links}}
    assert not decide(TINY, _accused(ACCESS), down_is_full).drains


def test_a_port_stays_if_nobody_moves_what_is_sent_to_it() -> None:
    quiet = _loads(TINY, 0.1)
    found = decide(TINY, _accused(ACCESS), quiet, senders_follow=False)
    assert not found.drains
    assert found.draining == pytest.approx(0.5)
    assert decide(TINY, _accused(UPLINK), quiet, senders_follow=False).drains


def test_a_port_beside_which_its_nic_has_another_in_that_plane_needs_nobody_to_move_senders() -> None:
    four = build(FabricSpec(name="four", planes=2, nic_ports=4))
    nic = four.nics[0]
    beside = [link.name for link in nic.links if link.plane == nic.links[0].plane]
    quiet, access = _loads(four, 0.1), _accused(beside[0])
    assert len(beside) == 2
    assert decide(four, access, quiet, senders_follow=False).drains
    assert not decide(four, access, quiet, beside[1:], senders_follow=False).drains
    clos = build(FabricSpec(name="clos", architecture="dual-tor-clos"))
    assert decide(clos, _accused(clos.nics[0].links[0].name), _loads(clos, 0.1), senders_follow=False).drains


def test_only_what_a_nic_sends_by_a_port_can_be_bound_to_another() -> None:
    quiet = _loads(TINY, 0.1)
    found = decide(TINY, _accused(ACCESS), quiet, senders_follow=False, moves_arrivals=False)
    assert found.drains, "what arrives stays, so nobody has to follow"
    down = Accused(Suspect((Part(PartKind.DIRECTION, ACCESS, False),)), 0.01, 0.99)
    assert "what arrives" in decide(TINY, down, quiet, moves_arrivals=False).why
    assert decide(TINY, down, quiet).drains
    assert "no queue pair is bound to it" in decide(TINY, _accused(UPLINK), quiet, moves_arrivals=False).why
    full_below = {**quiet, **{(each.name, False): 0.9 * each.rate_bps for each in TINY.links}}
    assert decide(TINY, _accused(ACCESS), full_below, moves_arrivals=False).drains, "no room is needed for arrivals"


def test_what_cannot_be_told_apart_and_nodes_and_last_ways_stay() -> None:
    quiet = _loads(TINY, 0.1)
    assert "2 links" in decide(TINY, _accused(UPLINK, "p0.s0.t0.0-p0.a0.0"), quiet).why
    assert "node" in decide(TINY, _accused("p0.a0.0", kind=PartKind.NODE), quiet).why
    others = [each.name for each in siblings(TINY, TINY.link(UPLINK)) if each.name != UPLINK]
    found = decide(TINY, _accused(UPLINK), quiet, others)
    assert (found.drains, found.why) == (False, "it is the last way of its node")
    single = load_fabric("tiny-fat-tree")
    access = next(link.name for link in single.links if link.lower.node in {host.name for host in single.hosts})
    assert not decide(single, _accused(access, loss=1.0), _loads(single, 0.1)).drains


def test_a_drain_is_right_while_a_fault_stands_in_its_link_and_its_figure_is_what_was_lost() -> None:
    s = 10**9
    sent = np.full((1, 100), 10, np.uint32)
    received = sent.copy()
    received[0, 20:40] = 9  # of 10 a bin: 20 lost until the drain, then 5 more
    received[0, 50:55] = 9
    series = StreamSeries(Bins(0, s // 10, 100), (SeriesFlow(0, "f", "a", "b", 256),), sent, received, sent * 0)
    fault = Standing("hole", "", 2 * s, 8 * s, (Part(PartKind.DIRECTION, UPLINK, True),))
    events = [Event(at_ns, EventKind.LOCATE, "", link, "drained") for at_ns, link in ((4 * s, UPLINK), (9 * s, UPLINK))]
    events.append(Event(5 * s, EventKind.LOCATE, "", ACCESS, "drained"))
    right, repaired, wrong = drains_of(events, [fault], ends_of(TINY), series)
    assert (right.fault, right.after_ms, right.lost, right.if_left) == ("hole", 2000.0, 5, 40)
    assert (repaired.fault, wrong.fault, wrong.after_ms, wrong.if_left) == ("", "", None, None)
