"""Linux bonding: its bytes judged by pyroute2, its hash by hand, and which datapath a machine gets.

The driver itself is absent on some machines; the test that needs it says so.
"""

from __future__ import annotations

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.bonding import HASH_POLICIES, LAYER34, Bonding
from hpn.testbed.kernel import ns
from hpn.testbed.kernel.nftables.nft import Nft
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.lab.kernel_parts import choose
from hpn.testbed.lag import bond
from hpn.testbed.lag.host_bond import KERNEL
from hpn.testbed.lag.host_nft import NFT
from hpn.testbed.lag.kernel_datapath import KernelDatapath, Member, mirror_rules, mirror_setup
from hpn.testbed.lag.lacpdu import PortState
from tests.lag import rack
from tests.lag.rack import ETH_P_ARP, NIC_MAC, PORTS, QUIET_S, arrivals, wire

FAST = Bonding("fast")
HASH = bond.XmitHash(LAYER34, NIC_MAC, "02:00:00:00:00:01")
ARP = b"\xff" * 6 + bytes.fromhex(NIC_MAC.replace(":", "")) + b"\x08\x06" + bytes(46)


def test_pyroute2_reads_the_bond_as_it_was_meant() -> None:
    from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg

    message = ifinfmsg(bond.create_bond("bond0", 10, mac=NIC_MAC, mtu=4200, bonding=FAST))
    message.decode()
    assert message["index"] == 10
    assert (message.get_attr("IFLA_IFNAME"), message.get_attr("IFLA_MTU")) == ("bond0", 4200)
    assert message.get_attr("IFLA_ADDRESS") == NIC_MAC
    info = message.get_attr("IFLA_LINKINFO")
    assert info.get_attr("IFLA_INFO_KIND") == "bond"
    options = info.get_attr("IFLA_INFO_DATA")
    expected = {"MODE": 4, "MIIMON": 10, "XMIT_HASH_POLICY": 1, "AD_LACP_RATE": 1}
    assert {name: options.get_attr(f"IFLA_BOND_{name}") for name in expected} == expected


def test_pyroute2_reads_the_options_of_a_host_s_own_configuration() -> None:
    from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg

    own = Bonding("slow", 100, 200, "layer2+3", min_links=2, up_delay_ms=300, down_delay_ms=200, ad_select="count")
    message = ifinfmsg(bond.create_bond("bond0", 10, mac=NIC_MAC, mtu=4200, bonding=own))
    message.decode()
    options = message.get_attr("IFLA_LINKINFO").get_attr("IFLA_INFO_DATA")
    expected = {"MODE": 4, "MIIMON": 100, "XMIT_HASH_POLICY": 2, "AD_LACP_RATE": 0, "AD_SELECT": 2}
    expected |= {"MIN_LINKS": 2, "UPDELAY": 300, "DOWNDELAY": 200}
    assert {name: options.get_attr(f"IFLA_BOND_{name}") for name in expected} == expected


def test_each_policy_s_hash_follows_the_driver_s_documentation() -> None:
    def chosen(policy: str, dst_ip: str = "10.0.1.7", sport: int = 0x1234) -> int:
        made = bond.XmitHash(HASH_POLICIES[policy], "02:00:00:00:12:34", "02:00:00:00:00:81")
        return made("10.0.0.1", dst_ip, sport, 0x5678, 17)

    layer2 = 0x34 ^ 0x81 ^ 0x0800
    assert chosen("layer2") == layer2
    word = layer2 ^ int.from_bytes(bytes([10, 0, 0, 1]), "little") ^ int.from_bytes(bytes([10, 0, 1, 7]), "little")
    word ^= word >> 16
    assert chosen("layer2+3") == chosen("encap2+3") == word ^ word >> 8
    assert chosen("vlan+srcmac") == 0x020000 ^ 0x001234
    for policy in ("layer2", "layer2+3", "vlan+srcmac"):
        assert chosen(policy) == chosen(policy, sport=0x4321), "a source port moves no queue pair"
    assert chosen("layer2") == chosen("layer2", dst_ip="10.0.1.8")
    assert chosen("encap3+4") == bond.layer34_hash("10.0.0.1", "10.0.1.7", 0x1234, 0x5678, 17)


def test_the_driver_s_answers_are_read() -> None:
    def attribute(kind: int, value: bytes) -> bytes:
        return (4 + len(value)).to_bytes(2, "little") + kind.to_bytes(2, "little") + value + bytes(-len(value) % 4)

    def link(info: bytes, flags: int = 0x10001) -> bytes:  # IFF_UP, IFF_LOWER_UP
        return bytes(8) + flags.to_bytes(4, "little") + bytes(4) + attribute(3, b"x\0") + attribute(18, info)

    aggregator = attribute(23, attribute(1, b"\2\0"))
    old = link(attribute(1, b"bond\0") + attribute(2, aggregator))
    new = link(attribute(1, b"bond\0") + attribute(2, aggregator + attribute(33, b"\1")))
    assert bond.bond_state(old) == bond.BondState(2, False)
    assert bond.bond_state(new) == bond.BondState(2, True)
    cases = ((0, 0, 0x3F, True), (0, 0, 0x0F, False), (0, 2, 0x3F, False), (1, 0, 0x3F, False))
    for idle, mii, lacp, distributing in cases:
        options = attribute(1, bytes([idle])) + attribute(2, bytes([mii]))
        options += attribute(6, b"\2\0") + attribute(7, bytes([lacp]))
        assert bond.member_state(link(attribute(5, options))) == bond.MemberState(
            2, mii == 0, True, distributing, PortState(lacp)
        )
    told_late = attribute(1, b"\0") + attribute(2, b"\0") + attribute(6, b"\2\0") + attribute(7, b"\x3f")
    for flags in (0x1, 0x10000, 0):  # put down or without carrier, and miimon has not looked yet
        state = bond.member_state(link(attribute(5, told_late), flags))
        assert (state.up, state.running, state.distributing, state.settled) == (True, False, False, False)
    for lacp, settled in ((0x3F, False), (0x0F, True)):  # miimon has looked: its machines leave the port at their tick
        seen = attribute(1, b"\1") + attribute(2, b"\2") + attribute(6, b"\2\0") + attribute(7, bytes([lacp]))
        state = bond.member_state(link(attribute(5, seen), 0x1))
        assert (state.up, state.distributing, state.settled) == (False, False, settled)


def test_a_port_whose_machines_have_not_run_yet_is_told_without_lacp_state() -> None:
    """Seen in virtual time, where nothing has run before the first look."""
    slave = b"\5\0\1\0\0\0\0\0" + b"\5\0\2\0\0\0\0\0"  # IFLA_BOND_SLAVE_STATE, _MII_STATUS
    info = (4 + len(slave)).to_bytes(2, "little") + b"\5\0" + slave  # IFLA_INFO_SLAVE_DATA
    body = bytes(16) + (4 + len(info)).to_bytes(2, "little") + b"\x12\0" + info  # IFLA_LINKINFO
    assert bond.member_state(body) == bond.MemberState(0, True, False, False, PortState.DEFAULTED)


def test_the_layer34_hash_follows_the_driver_s_documentation() -> None:
    # Little-endian words, as on x86: ports 0x1234 -> 0x5678 on the wire read 0x78563412.
    word = 0x78563412 ^ int.from_bytes(bytes([10, 0, 0, 1]), "little") ^ int.from_bytes(bytes([10, 0, 1, 7]), "little")
    word ^= word >> 16
    word ^= word >> 8
    assert bond.layer34_hash("10.0.0.1", "10.0.1.7", 0x1234, 0x5678, 17) == word >> 1
    flips = {bond.layer34_hash("10.0.0.1", "10.0.1.7", sport, 4791, 17) % 2 for sport in range(49152, 49160)}
    assert flips == {0, 1}


@pytest.mark.kernel
def test_arp_that_leaves_an_interface_is_mirrored_to_each_port_and_to_no_other() -> None:
    where = rack.build()
    nft = Nft(where.host)
    nft.run(mirror_setup("lag_bond0", "bond0"))
    lag, inner = wire(where.host, "bond0"), wire(where.host, "bond0i", ETH_P_ARP)
    far = [wire(tor, "down0", ETH_P_ARP) for tor in where.tors]
    for ports, expected in ((PORTS, [0, 1]), (PORTS[1:], [1])):
        nft.run(mirror_rules("lag_bond0", ports))
        lag.send(ARP)
        assert sorted(port for port, _ in arrivals(far, len(expected), QUIET_S)) == expected
    assert arrivals([inner], 0) == []


@pytest.mark.kernel
def test_auto_takes_what_there_is_and_a_missing_driver_is_named() -> None:
    assert choose("nft") is NFT
    found = choose("auto")
    if found is KERNEL:
        assert choose("kernel") is KERNEL
    else:
        with pytest.raises(MachineError, match="modprobe bonding"):
            choose("kernel")


@pytest.mark.kernel
def test_a_bond_stands_over_both_ports_and_sends_arp_to_both() -> None:
    if choose("auto") is not KERNEL:
        pytest.skip("this kernel has no bonding driver")
    where = rack.build()
    netlink, nft = Netlink(where.host), Nft(where.host)
    members = [Member(name, 20 + index) for index, name in enumerate(PORTS)]
    netlink.run(bond.make("bond9", 99, [member.ifindex for member in members], mac=NIC_MAC, mtu=rack.MTU, bonding=FAST))
    path = KernelDatapath(where.host, nft, Member("bond9", 99), members, HASH)
    path.setup()
    path.set_active(PORTS)
    lag = wire(where.host, "bond9")
    far = [wire(tor, "down0", ETH_P_ARP) for tor in where.tors]
    lag.send(ARP)
    assert sorted(port for port, _ in arrivals(far, 2, QUIET_S)) == [0, 1]
    path.close()


@pytest.mark.kernel
def test_a_namespace_for_probing_is_given_back() -> None:
    choose("nft")  # what all nftables contexts of a process share is opened once
    before = ns.create("witness")
    choose("nft")
    assert ns.create("next").fd == before.fd + 1
