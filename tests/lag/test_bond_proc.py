"""/proc/net/bonding as Linux 6.12 wrote it while one ToR of a set had been silent for three seconds."""

from __future__ import annotations

from hpn.testbed.lag.bond_proc import parse
from hpn.testbed.lag.lacpdu import PortInfo, PortState
from hpn.testbed.lag.states import Mux, Rx, Selected

_HEAD = """\
Ethernet Channel Bonding Driver: v6.12.117+deb12-amd64

Bonding Mode: IEEE 802.3ad Dynamic link aggregation
Transmit Hash Policy: layer3+4 (1)
MII Status: up
MII Polling Interval (ms): 10
Up Delay (ms): 0
Down Delay (ms): 0
Peer Notification Delay (ms): 0

802.3ad info
LACP active: on
LACP rate: fast
Min links: 0
Aggregator selection policy (ad_select): stable
System priority: 65535
System MAC address: 02:01:00:00:00:01
Active Aggregator Info:
\tAggregator ID: 1
\tNumber of ports: 2
\tActor Key: 15
\tPartner Key: 1
\tPartner Mac Address: 00:00:5e:00:01:01
"""


def _member(name: str, mii: str, aggregator: int, number: int, states: tuple[int, int], partner: int) -> str:
    return f"""
Slave Interface: {name}
MII Status: {mii}
Speed: 10000 Mbps
Duplex: full
Link Failure Count: 1
Permanent HW addr: 02:01:00:00:00:01
Slave queue ID: 0
Aggregator ID: {aggregator}
Actor Churn State: monitoring
Partner Churn State: monitoring
Actor Churned Count: 0
Partner Churned Count: 0
details actor lacp pdu:
    system priority: 65535
    system mac address: 02:01:00:00:00:01
    port key: 15
    port priority: 255
    port number: {number}
    port state: {states[0]}
details partner lacp pdu:
    system priority: 65535
    system mac address: 00:00:5e:00:01:01
    oper key: 1
    port priority: 255
    port number: {partner}
    port state: {states[1]}
"""


def test_both_ends_of_every_port_are_read() -> None:
    text = _HEAD + _member("r0p0", "up", 1, 1, (143, 55), 301) + _member("r0p1", "up", 1, 2, (63, 63), 601)
    silent, well = parse(text)
    assert (silent.name, silent.rx, silent.mux, silent.selected) == (
        "r0p0",
        Rx.EXPIRED,
        Mux.ATTACHED,
        Selected.SELECTED,
    )
    assert (well.name, well.rx, well.mux) == ("r0p1", Rx.CURRENT, Mux.COLLECTING_DISTRIBUTING)
    assert well.actor == PortInfo(65535, "02:01:00:00:00:01", 15, 255, 2, PortState(63))
    assert well.partner == PortInfo(65535, "00:00:5e:00:01:01", 1, 255, 601, PortState(63))


def test_a_port_without_carrier_and_one_in_another_aggregator() -> None:
    text = _HEAD + _member("r0p0", "down", 1, 1, (15, 55), 301) + _member("r0p1", "up", 2, 2, (71, 0), 1)
    dark, alone = parse(text)
    assert (dark.enabled, dark.rx) == (False, Rx.PORT_DISABLED)
    assert (alone.rx, alone.mux, alone.selected) == (Rx.DEFAULTED, Mux.DETACHED, Selected.STANDBY)


def test_without_the_right_to_see_the_details_the_ports_are_listed_all_the_same() -> None:
    text = _HEAD + "\nSlave Interface: r0p0\nMII Status: up\nAggregator ID: 1\n"
    (port,) = parse(text)
    assert (port.name, port.enabled, port.actor.port) == ("r0p0", True, 0)
