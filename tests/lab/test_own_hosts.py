"""Hosts by their own network files in a running lab, on either datapath: each has the LACP that its file says.

``tests/vm`` runs this file in a guest too, whose kernel has the bonding driver.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hpn.testbed.events import EventKind, now_ns
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.lab.kernel_parts import choose
from hpn.testbed.lab.service.inspect import report
from hpn.testbed.lag.host_bond import KERNEL
from hpn.testbed.lag.lacpdu import PortState
from tests.fabric.own_hosts import INTERFACES, NETWORKD, topology, write
from tests.lab.running import Recorder, cut, mend, running

pytestmark = [pytest.mark.kernel, pytest.mark.parametrize("lag", ["nft", "kernel"])]
MS = 10**6


def needs(lag: str) -> None:
    if lag == KERNEL.name and choose("auto") is not KERNEL:
        pytest.skip("this kernel has no bonding driver")


async def test_inspect_shows_each_host_s_lacp_and_the_driver_says_the_same(lag: str, tmp_path: Path) -> None:
    needs(lag)
    fabric = load_fabric(str(write(tmp_path, topology(more=f"lag: {lag}"))))
    async with running(fabric) as lab:
        rows = report(lab, "lacp")
        assert isinstance(rows, list)
        said = {str(row["port"]): (row["asks"], row["profile"]) for row in rows if isinstance(row, dict)}
        assert said["gpu-a:eth0"] == said["gpu-a:eth1"] == ("slow", "gpu-a/interfaces")
        assert said["gpu-b:eth0"] == ("fast", "lab")
        assert said["gpu-c:eth0"] == ("fast", "gpu-c")
        assert said["leaf1:Ethernet0"] == ("fast", "")
        for host, slow in (("gpu-a", True), ("gpu-c", False)):
            for status in lab.nics[f"{host}.r0"].status():
                assert (PortState.TIMEOUT not in status.actor.state) == slow
        for host, words in (
            ("gpu-a", ("LACP rate: slow", "MII Polling Interval (ms): 100", "Up Delay (ms): 0", "Min links: 0")),
            ("gpu-c", ("LACP rate: fast", "MII Polling Interval (ms): 100", "Up Delay (ms): 200", "Min links: 1")),
        ):
            text = lab.nics[f"{host}.r0"].driver_text()
            assert all(word in text for word in words) or (not text and lag != KERNEL.name), text


async def test_a_host_with_updelay_takes_a_port_back_later_than_its_neighbour(lag: str, tmp_path: Path) -> None:
    """gpu-c waits 2 s after its look at carrier, gpu-d not; both wait as long as LACP does."""
    needs(lag)
    late = {**NETWORKD, "10-bond0.netdev": NETWORKD["10-bond0.netdev"].replace("UpDelaySec=0.2", "UpDelaySec=2s 500ms")}
    events = Recorder()
    async with running(load_fabric(str(write(tmp_path, topology(more=f"lag: {lag}"), networkd=late))), events) as lab:
        hosts = [lab.nics[f"{name}.r0"] for name in ("gpu-c", "gpu-d")]
        for host in hosts:
            cut(lab, host.nic.links[0])
        await lab.wait_for(lambda: all(host.active == (1,) for host in hosts), 10)
        await lab.wait_for(lambda: all(not host.status()[0].enabled for host in hosts), 10)
        start = now_ns()
        for host in hosts:
            mend(lab, host.nic.links[0])
        await lab.wait_for(lambda: all(host.active == (0, 1) for host in hosts), 20)
        at = {e.node: e.at_ns for e in events.after(start, EventKind.LAG) if e.node in ("gpu-c", "gpu-d")}
        print(f"took the port back after {(at['gpu-c'] - start) / 1e9:.2f} s, {(at['gpu-d'] - start) / 1e9:.2f} s")
        assert 2000 * MS < at["gpu-c"] - at["gpu-d"] < 3300 * MS


async def test_two_links_that_a_lag_must_have_are_none_where_one_fails(lag: str, tmp_path: Path) -> None:
    needs(lag)
    text = INTERFACES + "    bond-min-links 2\n"
    async with running(load_fabric(str(write(tmp_path, topology(more=f"lag: {lag}"), text)))) as lab:
        host = lab.nics["gpu-a.r0"]
        cut(lab, host.nic.links[0])
        await lab.wait_for(lambda: host.active == (), 10)
        mend(lab, host.nic.links[0])
        await lab.wait_for(lambda: host.active == (0, 1), 20)


async def test_a_hash_of_layer_2_sends_everything_by_one_port(lag: str, tmp_path: Path) -> None:
    needs(lag)
    text = re.sub(r"    bond-xmit-hash-policy.*\n", "", INTERFACES)
    async with running(load_fabric(str(write(tmp_path, topology(more=f"lag: {lag}"), text)))) as lab:
        by_host = {
            host: {
                lab.nics[f"{host}.r0"].port_for(lab.fabric.nic("gpu-d.r0").ip, sport, 4791)
                for sport in range(49152, 49184)
            }
            for host in ("gpu-a", "gpu-b")
        }
        assert (len(by_host["gpu-a"]), len(by_host["gpu-b"])) == (1, 2)
