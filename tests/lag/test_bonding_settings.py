"""LACP settings that Linux bonding has too: it is our partner, judged by its own words and by a packet socket.

Skipped where this kernel's bonding has them not; ``tests/vm`` runs it in a guest.

bond9 over eth0, eth1 [sniffed] -- two ToRs of ours
"""

from __future__ import annotations

import asyncio
import socket
import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hpn.testbed.fabric.bonding import Bonding
from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.lag import bond
from hpn.testbed.lag.config import LacpConfig, PortConfig
from hpn.testbed.lag.speaker import Speaker, SystemAt
from tests.lag import rack
from tests.lag.rack import NIC_MAC, PORTS, Rack
from tests.lag.sniffed import ACTIVE, COLLECTS, DISTRIBUTES, SYNC, Heard, Sniffer, first

pytestmark = pytest.mark.kernel
SHARED = "00:00:5e:00:01:01"
BOND, IFINDEX = "bond9", 99
SILENCE_S = 4.0  # longer than a Short Timeout
_BONDING_WAITS_S = 2.0  # AD_AGGREGATE_WAIT_TIME, as the standard's
_APART_S = 0.8  # its machines tick every 100 ms, and either end may say so with the next LACPDU
_LACP_ACTIVE, _COUPLED_CONTROL = 29, 32  # linux/if_link.h: IFLA_BOND_AD_LACP_ACTIVE, IFLA_BOND_COUPLED_CONTROL


def bonded(where: Rack, option: int = 0) -> list[Sniffer]:
    """A bond over both ports, with ``option`` off; a sniffer on each port, from before the bond was up."""
    netlink = Netlink(where.host)
    try:
        netlink.run([bond.create_bond(BOND, IFINDEX, mac=NIC_MAC, mtu=rack.MTU, bonding=Bonding("fast"))])
    except OSError:
        pytest.skip("this kernel has no bonding driver")
    if option:
        try:
            netlink.run([_bond_option(option, 0)])
        except OSError:
            pytest.skip(f"this kernel's bonding has no option {option}")
    sniffers = [Sniffer(where.host, port) for port in PORTS]
    members = [20 + index for index in range(len(PORTS))]
    netlink.run([rtnl.set_link(member, up=False) for member in members])
    netlink.run([bond.enslave(member, IFINDEX) for member in members])
    netlink.run([rtnl.set_link(IFINDEX, up=True)])
    return sniffers


def _bond_option(option: int, value: int) -> bytes:
    """A RTM_NEWLINK that sets one option of the bond, which must be down."""
    data = struct.pack("=HHB3x", 5, option, value)
    info = struct.pack("=HH5s3x", 9, 1, b"bond") + struct.pack("=HH", 4 + len(data), 2) + data
    body = struct.pack("=BxHiII", socket.AF_UNSPEC, 0, IFINDEX, 0, 0) + struct.pack("=HH", 4 + len(info), 18) + info
    return struct.pack("=IHHII", 16 + len(body), rtnl.RTM_NEWLINK, 1, 0, 0) + body


def tors(where: Rack, *, active: bool = True, independent: bool = False, wait_s: float = 0.2) -> list[Speaker]:
    """Both ToRs, speaking."""
    made = []
    for space, offset in zip(where.tors, (300, 600), strict=True):
        config = LacpConfig(SHARED, 7, active=active, independent=independent, aggregate_wait_ns=round(wait_s * 1e9))
        speaker = Speaker(SystemAt(space.name, space, config, [PortConfig("down0", offset + 1)], lambda _event: None))
        speaker.start()
        speaker.carrier("down0", True)
        made.append(speaker)
    return made


def said_by_driver(where: Rack) -> str:
    """Its own words."""
    with where.host.entered():
        return Path(f"/proc/thread-self/net/bonding/{BOND}").read_text()


def aggregates(where: Rack) -> bool:
    """Whether the driver itself says that both ports are in its aggregate with the ToRs' system."""
    said = said_by_driver(where)
    return "Number of ports: 2" in said and f"Partner Mac Address: {SHARED}" in said


async def _until(found: Callable[[], bool], within_s: float = 30) -> None:
    async with asyncio.timeout(within_s):
        while not found():
            await asyncio.sleep(0.1)


def both_distribute(sniffers: Sequence[Sniffer]) -> bool:
    """Whether each end has said on each link that it distributes."""
    return all(
        any(each.sent == sent and each.state & DISTRIBUTES for each in sniffer.heard())
        for sniffer in sniffers
        for sent in (True, False)
    )


@pytest.mark.parametrize("passive", ["bonding", "ToRs"])
async def test_one_passive_end_aggregates_with_an_active_one(passive: str) -> None:
    where = rack.build()
    sniffers = bonded(where, _LACP_ACTIVE if passive == "bonding" else 0)
    speakers = tors(where, active=passive == "bonding")
    await _until(lambda: both_distribute(sniffers) and aggregates(where))
    heard = [each for sniffer in sniffers for each in sniffer.heard()]
    assert not any(each.state & ACTIVE for each in heard if each.sent == (passive == "bonding"))
    await asyncio.sleep(SILENCE_S)
    assert aggregates(where), "it lasts"
    for speaker in speakers:
        speaker.stop()


async def test_two_passive_ends_do_not_aggregate_and_our_end_says_nothing() -> None:
    where = rack.build()
    sniffers = bonded(where, _LACP_ACTIVE)
    speakers = tors(where, active=False)
    await asyncio.sleep(SILENCE_S)
    heard = [each for sniffer in sniffers for each in sniffer.heard()]
    assert [each for each in heard if not each.sent] == []
    assert not any(each.state & DISTRIBUTES for each in heard)
    assert SHARED not in said_by_driver(where)
    for speaker in speakers:
        speaker.stop()


async def test_with_independent_control_on_both_ends_none_distributes_before_the_other_collects() -> None:
    """The ToRs attach last, to partners that are in Synchronization already: coupled they would distribute at once."""
    where = rack.build()
    sniffers = bonded(where, _COUPLED_CONTROL)
    speakers = tors(where, independent=True, wait_s=_BONDING_WAITS_S + 1)
    await _until(lambda: both_distribute(sniffers))
    for sniffer in sniffers:
        of_tor, of_bonding = (_of(sniffer.heard(), sent) for sent in (False, True))
        assert first(of_tor, COLLECTS, without=DISTRIBUTES).at_s < first(of_tor, DISTRIBUTES).at_s
        assert first(of_bonding, COLLECTS).at_s < first(of_tor, DISTRIBUTES).at_s
        assert first(of_tor, COLLECTS).at_s < first(of_bonding, DISTRIBUTES).at_s
    for speaker in speakers:
        speaker.stop()


async def test_the_standard_s_aggregate_wait_is_bonding_s() -> None:
    """To the first LACPDU in Synchronization: bonding from its first, our end, which waits for a partner, from when
    it names one."""
    where = rack.build()
    sniffers = bonded(where)
    speakers = tors(where, wait_s=_BONDING_WAITS_S)
    await _until(lambda: both_distribute(sniffers))
    for sniffer in sniffers:
        of_tor, of_bonding = (_of(sniffer.heard(), sent) for sent in (False, True))
        named = next(each for each in of_tor if int(each.to, 16))
        ours, bondings = (
            first(said, SYNC).at_s - begun.at_s for said, begun in ((of_tor, named), (of_bonding, of_bonding[0]))
        )
        print(f"in Synchronization after {ours:.2f} s, bonding {bondings:.2f} s")
        assert ours == pytest.approx(bondings, abs=_APART_S)
    for speaker in speakers:
        speaker.stop()


def _of(heard: Sequence[Heard], sent: bool) -> list[Heard]:
    return [each for each in heard if each.sent == sent]


def test_iproute2_reads_the_settings_that_the_tests_make() -> None:
    """A foreign reader of the two options, so that a wrong number is not taken for a kernel without them."""
    where = rack.build()
    bonded(where, _LACP_ACTIVE)
    with where.host.entered():
        shown = subprocess.run(["ip", "-d", "link", "show", BOND], capture_output=True, text=True, check=True).stdout
    assert "lacp_active off" in shown
