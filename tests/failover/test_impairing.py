"""Faults that take no carrier: at which port they are done, what they need, how a drill file writes them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, cast

import pytest

from hpn.failover.faults import (
    FAULTS,
    ArpLoss,
    BitCorruption,
    BucketDrop,
    Fault,
    LacpLoss,
    LinkDelay,
    LinkDown,
    Need,
    OneWayLoss,
    RateDrop,
    SilentDrop,
    VisibleTo,
    make,
    settled,
)
from hpn.failover.faults.impair import Dropped
from hpn.failover.faults.streams import Direction, Directions
from hpn.failover.inject import needs
from hpn.failover.inject.lab_actions import LabActions
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Link, Port
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.lab.breaking.impair import Arriving, Corrupt, Delay, Drop, DropBucket, Impairments, Slow, Traffic
from hpn.traffic.flows.framing import ACK_BYTES, BTH_BYTES

FABRIC = build(PRESETS["tiny"].spec)
LINK = FABRIC.link("p0.s0.h0.r0.0")
HOST, TOR = LINK.lower, LINK.upper
MS = 10**6


class Noted(Impairments):
    """Writes down what it is told, and does nothing."""

    def __init__(self) -> None:
        self.arriving: list[tuple[Port, Arriving]] = []
        self.leaving: list[tuple[Port, Slow | Delay]] = []
        self.keys: set[Hashable] = set()

    def open(self, nodes: Iterable[str]) -> None:
        assert tuple(nodes) == (HOST.node, TOR.node)

    def on_arrival(self, key: Hashable, port: Port, what: Arriving) -> None:
        self.keys.add(key)
        self.arriving.append((port, what))

    def on_departure(self, key: Hashable, link: Link, port: Port, what: Slow | Delay) -> None:
        assert link is LINK
        self.keys.add(key)
        self.leaving.append((port, what))


def done(fault: Fault) -> Noted:
    noted = Noted()
    stub = cast("Any", None)  # no other lever is pulled
    action = fault.act(LabActions(FABRIC, stub, stub, noted, stub))
    assert not noted.keys, "nothing is done yet"
    action.do()
    assert noted.keys == {fault}, "lifted by the fault itself"
    return noted


def test_what_goes_up_is_lost_where_it_arrives_at_the_tor() -> None:
    assert done(OneWayLoss(LINK.name, Direction.UP)).arriving == [(TOR, Drop())]
    assert done(OneWayLoss(LINK.name, Direction.DOWN)).arriving == [(HOST, Drop())]
    assert done(OneWayLoss(LINK.name, Direction.UP, 0.01)).arriving == [(TOR, Drop(share=0.01))]


def test_a_silent_drop_is_at_both_ends_and_takes_everything_unless_told_otherwise() -> None:
    assert done(SilentDrop(LINK.name)).arriving == [(HOST, Drop()), (TOR, Drop())]
    some = Drop(Traffic.NOT_CONTROL, 0.01)
    assert done(SilentDrop(LINK.name, 0.01, Dropped.NOT_CONTROL)).arriving == [(HOST, some), (TOR, some)]


@pytest.mark.parametrize(
    ("direction", "deaf"),
    [(Directions.BOTH, [HOST, TOR]), (Directions.UP, [TOR]), (Directions.DOWN, [HOST])],
)
def test_lacp_or_arp_loss_makes_the_receiving_end_deaf_for_that_alone(direction: Directions, deaf: list[Port]) -> None:
    assert done(LacpLoss(LINK.name, direction)).arriving == [(port, Drop(Traffic.LACP)) for port in deaf]
    assert done(ArpLoss(LINK.name, direction)).arriving == [(port, Drop(Traffic.ARP)) for port in deaf]


def test_a_bucket_is_lost_where_its_direction_arrives_and_each_link_hashes_with_its_own_seed() -> None:
    lost = DropBucket(4, 3, TOR.ifindex)
    assert done(BucketDrop(LINK.name, 4, 3)).arriving == [(HOST, lost), (TOR, lost)]
    assert done(BucketDrop(LINK.name, 4, 3, Directions.UP)).arriving == [(TOR, lost)]
    assert len({link.upper.ifindex for link in FABRIC.links}) == len(FABRIC.links)


def test_a_bucket_that_the_table_does_not_have_is_refused() -> None:
    assert settled(BucketDrop(LINK.name, 4, 3), FABRIC)
    with pytest.raises(InputError, match="of 4 'buckets' the last is 3"):
        settled(BucketDrop(LINK.name, 4, 4), FABRIC)


def test_the_corrupted_byte_is_payload_of_every_data_packet_and_of_no_acknowledgement() -> None:
    (_, what), _ = done(BitCorruption(LINK.name, 0.01)).arriving
    assert isinstance(what, Corrupt)
    assert what.share == 0.01
    assert ACK_BYTES < what.at < BTH_BYTES + 1024


def test_delay_and_rate_are_done_where_frames_leave() -> None:
    assert done(LinkDelay(LINK.name, 5 * MS, MS)).leaving == [(p, Delay(5 * MS, MS)) for p in (HOST, TOR)]
    assert done(RateDrop(LINK.name, 0.25)).leaving == [(HOST, Slow(0.25)), (TOR, Slow(0.25))]


def test_every_impairment_leaves_the_carrier() -> None:
    for kind in (OneWayLoss, SilentDrop, BucketDrop, LacpLoss, ArpLoss, BitCorruption, LinkDelay, RateDrop):
        assert kind.TELLS is VisibleTo.NOBODY
        assert not kind.REPAIRS_ITSELF
    assert LinkDown.TELLS is VisibleTo.CARRIER


def test_a_choice_in_a_file_becomes_the_choice_itself() -> None:
    assert make("one-way-loss", "x", {"direction": "up"}) == OneWayLoss("x", Direction.UP)
    fault = make("silent-drop", "x", {"share": 0.5, "traffic": "data"})
    assert isinstance(fault, SilentDrop)
    assert fault.traffic is Dropped.DATA


def test_a_kernel_that_lacks_something_is_refused_by_fault_and_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = {Need.NETEM: "no sch_netem", Need.NFT_INGRESS: "no netdev family"}
    monkeypatch.setattr("hpn.failover.inject.needs.sandbox.ask", lambda _question: lacking)
    with pytest.raises(MachineError) as caught:
        needs.check(
            [LinkDelay("x", MS), SilentDrop("x"), OneWayLoss("x", Direction.UP), SilentDrop("y"), LinkDown("x")]
        )
    by_netem, by_ingress = sorted(str(caught.value).splitlines())
    assert by_netem.startswith("link-delay: no netem in this kernel")
    assert "--engine qemu" in by_netem
    assert by_ingress.startswith("one-way-loss and silent-drop: no nftables at a port's ingress")
    assert "no netdev family" in by_ingress
    assert "--engine uml-virtual-time" in by_ingress


@pytest.mark.parametrize("faults", [[], [SilentDrop("x")], [LinkDelay("x", MS), SilentDrop("x"), BucketDrop("y")]])
def test_in_virtual_time_every_drill_makes_the_same_probes(
    monkeypatch: pytest.MonkeyPatch, faults: list[Fault]
) -> None:
    """A probe more would shift all later times of a guest by some steps of its clock."""
    asked: list[Need] = []
    monkeypatch.setattr(needs, "_tried", asked.append)
    monkeypatch.setattr("hpn.failover.inject.needs.sandbox.ask", lambda question: question())
    needs.check(faults, every=True)
    assert sorted(asked) == sorted(Need)


def test_a_drill_that_needs_nothing_special_probes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_question: object) -> object:
        raise AssertionError

    monkeypatch.setattr("hpn.failover.inject.needs.sandbox.ask", never)
    needs.check([LinkDown("x"), RateDrop("x", 0.5)])
    assert set(Need) == {need for kind in FAULTS.values() for need in kind.NEEDS}, "every need has its fault"
