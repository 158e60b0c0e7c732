"""The nftables datapath on real veths: where each packet goes, what is dropped, and that a swap loses nothing."""

from __future__ import annotations

import os
import random
from ipaddress import IPv4Address

import pytest

from hpn.testbed.kernel.nftables.nft import Nft, NftError
from hpn.testbed.lag.nft_datapath import NftDatapath
from tests.lag import rack
from tests.lag.rack import NIC_MAC, PORTS, QUIET_S, Rack, arrivals, ipv4_frame, udp_frame, wire

TCP, UDP = 6, 17

pytestmark = pytest.mark.kernel


def datapath(where: Rack, seed: int = 0x1234, layer: int = 4) -> NftDatapath:
    made = NftDatapath(Nft(where.host), "bond0", "bond0i", PORTS, seed, layer)
    made.setup()
    return made


def ips(dice: random.Random) -> tuple[str, str]:
    return str(IPv4Address(dice.getrandbits(32))), str(IPv4Address(dice.getrandbits(32)))


@pytest.mark.parametrize("seed", [0, 1, 0x1234, 0xFFFFFFFF])
def test_the_predicted_port_is_the_one_the_kernel_takes(seed: int) -> None:
    where, dice = rack.build(), random.Random(seed)
    path = datapath(where, seed)
    lag, far = wire(where.host, "bond0"), [wire(tor, "down0") for tor in where.tors]
    taken: list[str] = []
    for active in (PORTS, PORTS[::-1], PORTS[:1]):
        path.set_active(active)
        for number in range(150):
            src, dst = ips(dice)
            sport, dport = dice.getrandbits(16), dice.getrandbits(16)
            proto = TCP if number % 5 == 0 else UDP
            frame = (udp_frame if proto == UDP else tcp_frame)(src, dst, sport, dport, b"%d" % number)
            lag.send(frame)
            ((port, arrived),) = arrivals(far, 1)
            assert arrived == frame
            taken.append(PORTS[port])
            assert path.port_for(src, dst, sport, dport, proto, active) == PORTS[port]
    assert min(taken.count(port) for port in PORTS) > 100


@pytest.mark.parametrize("layer", [2, 3])
def test_a_hash_of_lower_layers_is_predicted_too_and_sees_no_source_port(layer: int) -> None:
    where, dice = rack.build(), random.Random(layer)
    path = datapath(where, layer=layer)
    lag, far = wire(where.host, "bond0"), [wire(tor, "down0") for tor in where.tors]
    path.set_active(PORTS)
    by_pair: list[set[int]] = []
    for _ in range(40):
        src, dst = ips(dice)
        by_pair.append(set())
        for sport in (1, 2, 3, 4):
            lag.send(udp_frame(src, dst, sport, 4791, b""))
            ((port, _frame),) = arrivals(far, 1)
            by_pair[-1].add(port)
            assert path.port_for(src, dst, sport, 4791, UDP, PORTS) == PORTS[port]
    assert all(len(ports) == 1 for ports in by_pair)
    assert len(set().union(*by_pair)) == (1 if layer == 2 else 2)


def tcp_frame(src: str, dst: str, sport: int, dport: int, data: bytes) -> bytes:
    return ipv4_frame(src, dst, TCP, sport.to_bytes(2, "big") + dport.to_bytes(2, "big") + bytes(16) + data)


def test_arp_goes_to_every_active_port_and_to_no_other() -> None:
    where = rack.build()
    path = datapath(where)
    lag, far = wire(where.host, "bond0"), [wire(tor, "down0") for tor in where.tors]
    arp = b"\xff" * 6 + bytes.fromhex(NIC_MAC.replace(":", "")) + b"\x08\x06" + bytes(46)
    for active, expected in ((PORTS, [0, 1]), (PORTS[1:], [1]), ((), [])):
        path.set_active(active)
        lag.send(arp)
        assert sorted(port for port, _ in arrivals(far, len(expected), QUIET_S)) == expected


def test_a_port_that_does_not_collect_discards_data_but_keeps_control() -> None:
    where = rack.build()
    path = datapath(where)
    path.set_active(PORTS[:1])
    lag, member = wire(where.host, "bond0"), wire(where.host, "eth1", 0x88B5)
    lacp = wire(where.host, "eth1", 0x8809)
    far = [wire(tor, "down0") for tor in where.tors]
    data = udp_frame("10.0.0.2", "10.0.0.1", 1, 2, b"data", destination=NIC_MAC)
    far[1].send(data)
    assert arrivals([lag], 0, QUIET_S) == []
    far[0].send(data)
    assert [frame for _, frame in arrivals([lag], 1)] == [data]
    for listener, ethertype in ((member, b"\x88\xb5"), (lacp, b"\x88\x09")):
        control = data[:12] + ethertype + bytes(46)
        far[1].send(control)
        assert [frame for _, frame in arrivals([listener], 1)] == [control]
    assert arrivals([lag], 0, QUIET_S) == []


def test_with_no_active_port_nothing_leaves() -> None:
    where = rack.build()
    datapath(where)
    far = [wire(tor, "down0") for tor in where.tors]
    wire(where.host, "bond0").send(udp_frame("10.0.0.1", "10.0.0.2", 1, 2, b""))
    assert arrivals(far, 0, QUIET_S) == []


def test_no_packet_is_lost_or_doubled_while_the_rules_are_swapped() -> None:
    where, count = rack.build(), 60_000
    path = datapath(where)
    sets = (PORTS, PORTS[:1], PORTS[1:], PORTS[::-1])
    path.set_active(PORTS)
    sender = os.fork()
    if sender == 0:
        lag = wire(where.host, "bond0")
        lag.setblocking(True)
        frames = [udp_frame("10.0.0.1", "10.0.0.2", sport, 4791, b"") for sport in range(64)]
        for number in range(count):
            lag.send(frames[number % 64])
        os._exit(0)
    swaps = 0
    while os.waitpid(sender, os.WNOHANG) == (0, 0):
        path.set_active(sets[swaps % len(sets)])
        swaps += 1
    received = where.received_by_tors(count)
    assert swaps > 20
    assert sum(received) == count
    assert min(received) > 0


def test_the_nics_of_one_host_do_not_meet() -> None:
    where = rack.build()
    nft = Nft(where.host)
    first, second = (NftDatapath(nft, name, "bond0i", (port,), 1) for name, port in zip(("a", "b"), PORTS, strict=True))
    first.setup()
    second.setup()
    second.set_active(PORTS[1:])
    first.close()
    tables = nft.run("list tables")
    assert tables.split() == ["table", "netdev", "lag_b"]
    second.close()
    assert nft.run("list tables") == ""


def test_a_refused_ruleset_says_why_and_changes_nothing() -> None:
    where = rack.build()
    nft = Nft(where.host)
    with pytest.raises(NftError, match="No such file or directory"):
        nft.run("add table netdev t; add rule netdev nowhere c accept")
    assert nft.run("list tables") == ""
    nft.close()
    with pytest.raises(NftError, match="closed"):
        nft.run("list tables")
