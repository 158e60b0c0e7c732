"""Steering by destination on real veths: whose packets leave where, what is in the kernel, and that nothing is lost."""

from __future__ import annotations

import os
import time

import pytest

from hpn.testbed.kernel.nftables.nft import Nft, NftError
from hpn.testbed.lag.nft_datapath import NftDatapath
from hpn.testbed.lag.steering import Steering, check, elements, table
from hpn.testbed.routing.pathcontrol.actions import Steer
from tests.lag import rack
from tests.lag.rack import PORTS, QUIET_S, Rack, arrivals, udp_frame, wire

NEAR, FAR, OTHER = "10.0.0.1", "10.0.1.1", "10.0.1.2"
SPORTS = range(0xC000, 0xC020)


def _steering(where: Rack) -> tuple[NftDatapath, Steering]:
    nft = Nft(where.host)
    path = NftDatapath(nft, "bond0", "bond0i", PORTS, 0x1234)
    path.setup()
    path.set_active(PORTS)
    made = Steering(nft, "bond0", PORTS)
    made.setup()
    return path, made


def _sent(where: Rack, to: str) -> list[int]:
    """How many of a UDP packet from each source port left by each member."""
    lag, far = wire(where.host, "bond0"), [wire(tor, "down0") for tor in where.tors]
    for sport in SPORTS:
        lag.send(udp_frame(NEAR, to, sport, 4791, b""))
    ports = [port for port, _ in arrivals(far, len(SPORTS), QUIET_S)]
    return [ports.count(0), ports.count(1)]


def test_the_sets_of_a_table_are_read_back() -> None:
    empty = "\tset e {\n\t\ttype ipv4_addr\n\t}\n"
    full = "\tset s {\n\t\ttype ipv4_addr\n\t\telements = { 10.0.1.1, 10.0.1.2,\n\t\t\t     10.0.1.3 }\n\t}\n"
    other = "\tset t {\n\t\ttype ipv4_addr\n\t\telements = { 10.0.1.4 }\n\t}\n"
    other += '\tchain p0 {\n\t\tip daddr @s fwd to "a"\n\t}\n'
    assert elements(f"table netdev t {{\n{empty}{full}{other}}}\n") == {
        "s": ["10.0.1.1", "10.0.1.2", "10.0.1.3"],
        "t": ["10.0.1.4"],
    }
    assert 'device "a" priority -300' in table("steer_x", ("a", "b"))


@pytest.mark.kernel
def test_what_is_for_a_steered_destination_leaves_by_the_other_member_and_nothing_else_does() -> None:
    check()
    where = rack.build()
    path, steering = _steering(where)
    by_hash = _sent(where, FAR)
    assert min(by_hash) > 0
    assert by_hash[0] == sum(path.port_for(NEAR, FAR, sport, 4791, 17, PORTS) == PORTS[0] for sport in SPORTS)
    steering.apply([Steer(FAR, PORTS[0], PORTS[1])])
    assert steering.standing() == {(PORTS[0], FAR): PORTS[1]}
    assert [steering.port_for(port, FAR) for port in PORTS] == [PORTS[1], PORTS[1]]
    assert _sent(where, FAR) == [0, len(SPORTS)]
    assert min(_sent(where, OTHER)) > 0
    path.set_active(PORTS[:1])
    assert _sent(where, FAR) == [0, len(SPORTS)], "after the LAG's own choice, whatever it is"
    path.set_active(PORTS)
    steering.apply([Steer(FAR, PORTS[0], None), Steer(FAR, PORTS[1], PORTS[0])])
    assert _sent(where, FAR) == [len(SPORTS), 0]
    steering.apply([Steer(FAR, PORTS[1], None)])
    assert steering.standing() == {}
    assert _sent(where, FAR) == by_hash
    steering.close()
    assert Nft(where.host).run("list tables").split() == ["table", "netdev", "lag_bond0"]


@pytest.mark.kernel
def test_a_thousand_destinations_are_steered_in_one_transaction_and_the_rest_of_the_house_gets_its_turn() -> None:
    where = rack.build()
    _, steering = _steering(where)
    ips = [f"10.9.{n >> 8}.{n & 255}" for n in range(1000)]
    begun = time.process_time()
    steering.apply([Steer(ip, PORTS[0], PORTS[1]) for ip in ips])
    assert len(steering.standing()) == 1000
    assert _sent(where, ips[500]) == [0, len(SPORTS)]
    steering.apply([Steer(ip, PORTS[0], None) for ip in ips])
    assert steering.standing() == {}
    assert time.process_time() - begun < 1.0


@pytest.mark.kernel
def test_no_packet_is_lost_or_doubled_while_steering_changes() -> None:
    where, count = rack.build(), 30_000
    _, steering = _steering(where)
    sender = os.fork()
    if sender == 0:
        lag = wire(where.host, "bond0")
        lag.setblocking(True)
        frames = [udp_frame(NEAR, FAR, sport, 4791, b"") for sport in SPORTS]
        for number in range(count):
            lag.send(frames[number % len(frames)])
        os._exit(0)
    turns = (
        [Steer(FAR, PORTS[0], PORTS[1])],
        [Steer(FAR, PORTS[0], None), Steer(FAR, PORTS[1], PORTS[0])],
        [Steer(FAR, PORTS[1], None)],
    )
    changes = 0
    while os.waitpid(sender, os.WNOHANG) == (0, 0):
        steering.apply(turns[changes % 3])
        changes += 1
    received = where.received_by_tors(count)
    assert changes > 20
    assert sum(received) == count
    assert min(received) > 0


@pytest.mark.kernel
def test_a_nic_of_one_port_has_nothing_to_steer_and_a_refused_change_says_why() -> None:
    where = rack.build()
    nft = Nft(where.host)
    alone = Steering(nft, "bond0", PORTS[:1])
    alone.setup()
    assert alone.standing() == {}
    alone.close()
    assert nft.run("list tables") == ""
    with pytest.raises(NftError):
        Steering(nft, "bond0", PORTS).apply([Steer(FAR, PORTS[0], PORTS[1])])
