"""ARP to every port by traffic control, in a real kernel."""

from __future__ import annotations

import pytest

from hpn.testbed.lag.tc_mirror import TcMirror
from tests.lag import rack
from tests.lag.rack import ETH_P_ARP, NIC_MAC, PORTS, QUIET_S, arrivals, wire

ARP = b"\xff" * 6 + bytes.fromhex(NIC_MAC.replace(":", "")) + b"\x08\x06" + bytes(46)
IPV4 = rack.udp_frame("10.0.0.1", "10.0.0.2", 5000, 4791, b"data")


@pytest.mark.kernel
def test_arp_that_leaves_an_interface_goes_to_each_port_named_and_to_no_other() -> None:
    where = rack.build()
    mirror = TcMirror(where.host, 10, {name: 20 + index for index, name in enumerate(PORTS)})
    lag, inner = wire(where.host, "bond0"), wire(where.host, "bond0i", ETH_P_ARP)
    far = [wire(tor, "down0", ETH_P_ARP) for tor in where.tors]
    for ports, expected in ((PORTS, [0, 1]), (PORTS[1:], [1]), (PORTS, [0, 1])):
        mirror.set_active(ports)
        lag.send(ARP)
        assert sorted(port for port, _ in arrivals(far, len(expected), QUIET_S)) == expected
    assert arrivals([inner], 0) == []
    mirror.close()
    lag.send(ARP)
    assert len(arrivals([inner], 1)) == 1


@pytest.mark.kernel
def test_with_no_port_active_arp_goes_the_driver_s_way_and_other_frames_always_do() -> None:
    where = rack.build()
    mirror = TcMirror(where.host, 10, {name: 20 + index for index, name in enumerate(PORTS)})
    lag, inner = wire(where.host, "bond0"), wire(where.host, "bond0i")
    mirror.set_active(())
    lag.send(ARP)
    mirror.set_active(PORTS)
    lag.send(IPV4)
    assert [frame[12:14] for _, frame in arrivals([inner], 2, QUIET_S)] == [b"\x08\x06", b"\x08\x00"]
