"""Queue affinity on real veths: a bound queue pair's packets leave by its port, whatever LAG and source port say."""

from __future__ import annotations

import pytest

from hpn.testbed.kernel.nftables.nft import Nft
from hpn.testbed.lag.affinity import Affinity, BoundQueuePair, check, elements, table
from hpn.testbed.lag.nft_datapath import NftDatapath
from tests.lag import rack
from tests.lag.rack import PORTS, QUIET_S, Rack, arrivals, udp_frame, wire

NEAR, FAR, OTHER = "10.0.0.1", "10.0.1.1", "10.0.1.2"
SPORTS = range(0xC000, 0xC020)


def _affinity(where: Rack) -> tuple[NftDatapath, Affinity]:
    nft = Nft(where.host)
    path = NftDatapath(nft, "bond0", "bond0i", PORTS, 0x1234)
    path.setup()
    path.set_active(PORTS)
    made = Affinity(nft, "bond0", PORTS)
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
    empty = "\tset port0 {\n\t\ttype ipv4_addr . inet_service\n\t}\n"
    full = "\tset port1 {\n\t\ttype ipv4_addr . inet_service\n\t\telements = { 10.0.1.1 . 49152,\n"
    full += "\t\t\t     10.0.1.2 . 49153 }\n\t}\n"
    found = elements(f"table netdev t {{\n{empty}{full}}}\n")
    assert found == {"port1": [("10.0.1.1", 49152), ("10.0.1.2", 49153)]}
    assert 'ip daddr . udp sport @port1 fwd to "b"' in table("affinity_x", ("a", "b"))


@pytest.mark.kernel
def test_bound_queue_pairs_leave_by_their_port_whatever_the_lag_does_and_others_by_the_lags() -> None:
    check()
    where = rack.build()
    path, affinity = _affinity(where)
    by_hash = _sent(where, FAR)
    assert min(by_hash) > 0
    pair = BoundQueuePair(1, FAR, tuple(SPORTS), PORTS[1])
    affinity.bind([pair])
    assert _sent(where, FAR) == [0, len(SPORTS)]
    assert min(_sent(where, OTHER)) > 0, "another destination's packets are no queue pair's"
    path.set_active(PORTS[:1])
    assert _sent(where, FAR) == [0, len(SPORTS)], "also by a port that the LAG has given up, until the adapter acts"
    affinity.remap({PORTS[0]: PORTS[0], PORTS[1]: PORTS[0]})
    assert _sent(where, FAR) == [len(SPORTS), 0]
    assert affinity.port_for(FAR, SPORTS[0]) == PORTS[0]
    path.set_active(PORTS)
    affinity.remap({port: port for port in PORTS})
    assert _sent(where, FAR) == [0, len(SPORTS)]
    affinity.rebind({1: PORTS[0]})
    assert _sent(where, FAR) == [len(SPORTS), 0]
    affinity.bind([pair])
    assert _sent(where, FAR) == [len(SPORTS), 0], "a queue pair that changes source ports keeps its port"
    affinity.release([1])
    assert affinity.standing() == {}
    assert _sent(where, FAR) == by_hash
    affinity.close()
    assert Nft(where.host).run("list tables").split() == ["table", "netdev", "lag_bond0"]


@pytest.mark.kernel
def test_each_source_port_of_each_queue_pair_stands_in_the_kernel_and_old_ones_leave_it() -> None:
    where = rack.build()
    _, affinity = _affinity(where)
    affinity.bind([BoundQueuePair(at, FAR, (sport,), PORTS[at % 2]) for at, sport in enumerate(SPORTS)])
    assert affinity.standing() == {(FAR, sport): PORTS[at % 2] for at, sport in enumerate(SPORTS)}
    assert _sent(where, FAR) == [16, 16]
    affinity.bind([BoundQueuePair(0, FAR, (0xD000, 0xD001), PORTS[0])])
    assert {sport for _, sport in affinity.standing()} == {*SPORTS[1:], 0xD000, 0xD001}
