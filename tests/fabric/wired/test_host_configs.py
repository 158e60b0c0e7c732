"""Hosts with network files of their own: what is taken, what is told before a start, what is refused with its line."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.bonding import Bonding
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.fabric.wired.host_configs import asked_rates
from hpn.testbed.fabric.wired.host_rules import host_notes
from hpn.testbed.fabric.wired.host_words import QUEUES
from tests.fabric.own_hosts import INTERFACES, NETPLAN, NETWORKD, STATIC, topology, write

_OWN = ", config: gpu-a/interfaces"
_OTHERS = ", nics: {bond0: {ports: [eth0, eth1], ip: 10.1.1.2/24}}"


def options(path: Path) -> Mapping[str, Bonding]:
    fabric = load_fabric(str(path))
    return {nic.host: fabric.bonding(nic) for nic in fabric.nics}


def notes(path: Path) -> list[str]:
    return list(host_notes(load_fabric(str(path)).spec))


def refused(path: Path) -> str:
    with pytest.raises(InputError) as error:
        load_fabric(str(path))
    return str(error.value)


def test_bonds_and_their_options_come_from_the_files_and_other_hosts_keep_the_topology_s(tmp_path: Path) -> None:
    path = write(tmp_path)
    fabric = load_fabric(str(path))
    assert [(nic.lag, [link.lower.name for link in nic.links]) for nic in fabric.nics] == [
        ("bond0", ["eth0", "eth1"])
    ] * 4
    found = options(path)
    assert found["gpu-a"] == Bonding("slow", 100, 200, "layer3+4")
    assert found["gpu-c"] == Bonding("fast", 100, 200, "layer3+4", min_links=1, up_delay_ms=200)
    assert found["gpu-b"] == found["gpu-d"] == Bonding("fast", None, 200, "layer3+4")
    assert asked_rates(fabric.spec) == {"fast", "slow"}
    assert notes(path) == []


def test_netplan_says_the_same_in_yaml(tmp_path: Path) -> None:
    path = write(tmp_path, topology(a=", config: gpu-a/netplan.yaml"))
    (tmp_path / "gpu-a" / "netplan.yaml").write_text(NETPLAN + "  vlans: {v9: {id: 9, link: bond0}}\n")
    assert options(path)["gpu-a"] == Bonding("fast", 50, 200, "layer2+3")
    assert notes(path) == ["gpu-a/netplan.yaml:14: not done: 'vlans': hpn has no VLANs"]


def test_what_a_file_leaves_out_is_the_driver_s_default_and_not_ours(tmp_path: Path) -> None:
    text = "auto bond0\niface bond0 inet manual\n bond-slaves eth0 eth1\n bond-mode 4\n"
    assert options(write(tmp_path, interfaces=text))["gpu-a"] == Bonding("slow", 100, 200, "layer2")
    text += " bond_lacp_rate 1\n bond-miimon 0\n bond-xmit_hash_policy 2\n bond-ad-select 1\n"
    assert options(write(tmp_path, interfaces=text))["gpu-a"] == Bonding(
        "fast", 100, 200, "layer2+3", ad_select="bandwidth"
    )


def test_addresses_of_the_files_are_those_of_the_nics(tmp_path: Path) -> None:
    interfaces = STATIC + "    address 10.1.1.1\n    netmask 255.255.255.0\n    gateway 10.1.1.254\n"
    of_bond = "[Match]\nName=bond0\n[Network]\nAddress=10.1.2.3/24\n[Route]\nGateway=10.1.2.1\n"
    networkd = {**NETWORKD, "30-bond0.network": of_bond}
    text = topology().replace(", nics: {bond0: {ports: [eth0, eth1]}}", _OTHERS, 1)
    text = text.replace("ports: [eth0, eth1]}", "ports: [eth0, eth1], ip: 10.1.2.4/24}")
    fabric = load_fabric(str(write(tmp_path, text, interfaces, networkd)))
    assert [(nic.ip, nic.gateway) for nic in fabric.nics] == [
        ("10.1.1.1", "10.1.1.254"),
        ("10.1.1.2", "10.1.1.254"),
        ("10.1.2.3", "10.1.2.1"),
        ("10.1.2.4", "10.1.2.254"),
    ]
    again = write(tmp_path, text, interfaces.replace("10.1.1.1\n", "10.1.1.2\n"), networkd)
    assert "5: gpu-a/interfaces:20: 10.1.1.2 is an address of gpu-b too; write another" in refused(again)


def test_a_folder_is_read_as_etc_network_with_the_files_that_it_names(tmp_path: Path) -> None:
    path = write(tmp_path, topology(a=", config: gpu-a"), "source /etc/network/interfaces.d/*\n")
    assert "gpu-a/interfaces:1: gpu-a has no bond over its links here" in refused(path)
    (tmp_path / "gpu-a" / "interfaces.d").mkdir()
    (tmp_path / "gpu-a" / "interfaces.d" / "bond0").write_text(INTERFACES)
    assert options(path)["gpu-a"].lacp_rate == "slow"
    path.write_text(topology())
    (tmp_path / "gpu-a" / "interfaces").write_text("source /etc/network/interfaces.d/*\n")
    assert ":1: '/etc/network/interfaces.d/*' is not read with this file; write config: FOLDER" in refused(path)


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("    up tc qdisc add dev bond0 root fq", QUEUES),
        ("    post-up ip route add 10.9.0.0/16 via 10.1.1.1", "a host of hpn has the routes to its rails"),
        ("    post-up echo hello", "post-up echo hello: hpn runs no commands"),
        ("    mtu 9000", "mtu 9000: all links have the topology's mtu, 4200"),
        ("    bond-primary eth0", "bond-primary eth0: it changes nothing in mode 802.3ad"),
        ("    bond-lacp-active off", "bond-lacp-active off: hpn does not set it"),
        ("    bond-min-links 1", "bond-min-links: Debian's ifenslave ignores it"),
        ("    bond-updelay 250", "bond-updelay 250 is no multiple of miimon: the driver takes 200 ms"),
        ("    frobnicate 7", "frobnicate of bond0: hpn does not know it"),
        ("    address 10.0.0.1/24", "address: inet manual sets no address; write iface bond0 inet static"),
        ("iface bond0 inet6 auto", "hpn has IPv4 addresses only"),
        ("iface bond0.7 inet manual", "iface bond0.7: hpn has no VLANs"),
        ("iface br0 inet dhcp\n    bridge_ports bond0", "iface br0: hpn has no bridges on hosts"),
        ("iface eno1 inet dhcp", "iface eno1: it has no link in the wiring"),
        ("mapping eth0", "hpn knows no 'mapping'"),
        ("iface bond9 inet manual\n    bond-slaves eno1 eno2", "bond9: none of its ports has a link"),
    ],
)
def test_what_hpn_cannot_give_is_listed_with_its_line(tmp_path: Path, line: str, note: str) -> None:
    number = INTERFACES.count("\n") + 1
    (said,) = notes(write(tmp_path, interfaces=f"{INTERFACES}{line}\n"))
    assert said.startswith(f"gpu-a/interfaces:{number}: "), said
    assert note in said


@pytest.mark.parametrize(
    ("old", "new", "note"),
    [
        ("bond-mode 802.3ad", "bond-mode balance-rr", ":16: not done: bond-mode balance-rr: hpn runs LACP, 802.3ad"),
        ("    bond-mode 802.3ad\n", "", ":14: not done: bond0 has no mode, so it is balance-rr"),
        ("bond-miimon 100", "bond-downdelay 200", "ifenslave sets it while there is no miimon, and the driver refuses"),
        ("auto ", "# ", "no auto bond0: nothing brings it up at boot; hpn does"),
    ],
)
def test_a_bond_that_is_not_what_its_author_may_expect_is_told(tmp_path: Path, old: str, new: str, note: str) -> None:
    (said,) = notes(write(tmp_path, interfaces=INTERFACES.replace(old, new)))
    assert note in said


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            "bond-lacp-rate slow",
            "bond-lacp-rate quick",
            ":18: bond-lacp-rate quick is not what the driver takes; write one of slow",
        ),
        ("bond-miimon 100", "bond-miimon 1e3", ":17: bond-miimon 1e3 is not what the driver takes"),
        ("layer3+4", "layer7", "write one of layer2, layer3+4, layer2+3, encap2+3, encap3+4, vlan+srcmac"),
        ("layer3+4", "layer3+4\n    bond-min-links 3", ":20: bond-min-links 3: bond0 has 2 ports and"),
        ("layer3+4", "layer3+4\n    bond-miimon 50", ":20: bond-miimon of bond0 is at gpu-a/interfaces:17 too"),
        ("layer3+4", "layer3+4\niface bond0 inet manual", ":20: iface bond0 inet is at gpu-a/interfaces:14 too"),
        (
            "manual\n    bond-s",
            "static\n    address 10.0.0.1/31\n    bond-s",
            ":15: address 10.0.0.1/31 is no IPv4 address",
        ),
        ("manual\n    bond-s", "static\n    bond-s", ":14: inet static of bond0 needs an address; write one"),
        (
            "manual\n    bond-s",
            "static\n    address 10.0.0.1/24\n    gateway 10.0.1.1\n    bond-s",
            "is no other address of bond0's subnet",
        ),
        ("iface eth1", "iface eth7", ":11: eth7 has no link in the wiring; its ports are eth0, eth1"),
        ("eth1 inet manual\n    bond-master bond0", "eth1 inet manual", "eth1 of gpu-a has a link, but is in no bond"),
        ("eth1 inet manual\n    bond-master bond0", "eth1 inet manual\n    bond-master bond1", ":11: no iface bond1;"),
        ("bond-slaves none", "bond-slaves eth0 eth9", ":15: eth9 has no link in the wiring"),
        ("auto lo\niface lo inet loopback", "address 10.0.0.1", ":2: 'address' belongs to no stanza"),
        ("auto lo", "source ../secret", ":2: '../secret' is not read with this file"),
    ],
)
def test_a_mistake_is_refused_with_its_line_and_that_of_the_topology(
    tmp_path: Path, old: str, new: str, problem: str
) -> None:
    path = write(tmp_path, interfaces=INTERFACES.replace(old, new))
    said = refused(path)
    assert said.startswith(f"{path}:5: gpu-a/interfaces:"), said
    assert problem in said


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("10-bond0.netdev", "100ms", "fast", "gpu-c/10-bond0.netdev:8: MIIMonitorSec=fast is no time"),
        ("10-bond0.netdev", "Name=bond0\n", "", "10-bond0.netdev:1: a .netdev needs [NetDev] with Name= and"),
        ("10-bond0.netdev", "=fast", "=quick", ":7: LACPTransmitRate quick is not what the driver takes"),
        ("20-ports.network", "Bond=bond0", "Bond=bond9", "gpu-c/20-ports.network:5: no .netdev makes 'bond9'"),
        ("20-ports.network", "Name=eth*", "Name=!eth0", "eth0 of gpu-c has a link, but is in no bond"),
        ("20-ports.network", "Name=eth*", "Name=eth*\nMACAddress=02:00:00:00:00:01", "hpn matches by Name= and Kind="),
        ("20-ports.network", "Bond=bond0", "Bond bond0", "20-ports.network:5: 'Bond bond0' is no Key=Value"),
    ],
)  # fmt: skip
def test_so_is_one_of_networkd(tmp_path: Path, name: str, old: str, new: str, problem: str) -> None:
    said = refused(write(tmp_path, networkd={**NETWORKD, name: NETWORKD[name].replace(old, new)}))
    assert said.startswith(f"{tmp_path}/own-hosts.yaml:7: ")
    assert problem in said


def test_the_first_network_that_matches_counts_and_the_rest_is_listed(tmp_path: Path) -> None:
    more = {
        "30-bond0.network": NETWORKD["30-bond0.network"] + "VLAN=v9\n[FairQueueing]\nParent=root\n",
        "40-late.network": "[Match]\nName=eth*\n[Network]\nBond=bond9\n",
        "50-v9.netdev": "[NetDev]\nName=v9\nKind=vlan\n",
    }
    said = notes(write(tmp_path, networkd={**NETWORKD, **more}))
    assert said == [
        "gpu-c/50-v9.netdev:3: not done: v9 of kind 'vlan': hpn has no VLANs",
        "gpu-c/30-bond0.network:6: not done: [Network] VLAN=v9: hpn has no VLANs",
        f"gpu-c/30-bond0.network:8: not done: [FairQueueing] Parent=root: {QUEUES}",
        "gpu-c/40-late.network:1: not done: it matches no port with a link by [Match] Name=, and no bond",
    ]


@pytest.mark.parametrize(
    ("nics", "problem"),
    [
        ("bond0: {ports: [eth0]}, bond1: {ports: [eth1]}", "bond0 has eth0 here, and eth0, eth1 at gpu-a/interfaces:7"),
        ("bond7: {ports: [eth0, eth1]}", "gpu-a/interfaces has bond0, and no 'bond7'; write one name in both"),
        ("bond0: {ports: [eth0, eth1], ip: 10.1.1.7/24}", "10.1.1.7/24 here, and 10.1.1.1/24 at gpu-a/interfaces:20"),
    ],
)  # fmt: skip
def test_a_wiring_that_contradicts_its_host_is_refused_with_both_lines(tmp_path: Path, nics: str, problem: str) -> None:
    path = write(tmp_path, topology(a=f"{_OWN}, nics: {{{nics}}}"), STATIC + "    address 10.1.1.1/24\n")
    said = refused(path)
    assert f"{path}:5: " in said
    assert problem in said


def test_the_order_of_ports_is_the_wiring_s_where_it_has_one(tmp_path: Path) -> None:
    path = write(tmp_path, topology(a=f"{_OWN}, nics: {{bond0: {{ports: [eth1, eth0], rail: 0}}}}"))
    fabric = load_fabric(str(path))
    assert [link.lower.name for link in fabric.nics[0].links] == ["eth1", "eth0"]
    assert fabric.bonding(fabric.nics[0]).lacp_rate == "slow"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("../secret/interfaces", "leads out of the topology file's folder; copy it there"),
        ("link", "is a folder without a host's configuration"),
        ("linked", "leads out of the topology file's folder; copy it there"),
        ("many", "holds more than 256 files or 1,000,000 characters"),
        ("big/interfaces", "is no file of at most 1,000,000 bytes"),
        ("raw/interfaces", "is no text; write the path of a configuration"),
        ("gpu-c/10-bond0.netdev", "hpn reads no '10-bond0.netdev' of a host; write interfaces, a netplan .yaml, or"),
        ("gpu-a/startup.cfg", "hpn reads no 'startup.cfg' of a host"),
    ],
)
def test_a_file_that_cannot_be_is_refused(tmp_path: Path, given: str, problem: str) -> None:
    folder = tmp_path / "net"
    path = write(folder, topology(a=f", config: {given}"))
    for name, content in (("big", b"#" * 1_000_001), ("raw", b"\xff\xfe"), ("../secret", b"# mine")):
        (folder / name).mkdir()
        (folder / name / "interfaces").write_bytes(content)
    (folder / "gpu-a" / "startup.cfg").write_text("# other")
    (folder / "link").mkdir()
    (folder / "linked").mkdir()
    (folder / "linked" / "interfaces").symlink_to(tmp_path / "secret" / "interfaces")
    (folder / "many").mkdir()
    for number in range(257):
        (folder / "many" / f"{number}.network").write_text("")
    said = refused(path)
    assert f"{path}:5: " in said
    assert problem in said


def test_a_large_file_of_unknown_words_is_told_in_a_hundred_lines(tmp_path: Path) -> None:
    said = notes(write(tmp_path, interfaces=INTERFACES + "".join(f"    word{n} 1\n" for n in range(20_000))))
    assert len(said) == 101
    assert said[-1].endswith("and 19900 lines more like these")


_HOSTILE = {
    "interfaces": {
        "one line": INTERFACES + "\\\n" * 400_000,
        "commands": INTERFACES + f"    up {'ip ' * 300_000}\n",
        "bonds": "".join(f"iface b{n} inet manual\n bond-slaves eth0\n" for n in range(20_000)),
        "sources": "source interfaces.d/*\n" * 40_000,
        "a name": f"iface {'x' * 900_000} inet manual\n bond-mode 4\n bond-slaves eth0 eth1\n",
        "no letters": "".join(map(chr, range(1, 32))) * 1000,
    },
    "10-bond0.netdev": {
        "a time": f"[NetDev]\nName=bond0\nKind=bond\n[Bond]\nMIIMonitorSec={'9' * 900_000}\n",
        "lines": "[NetDev]\nName=bond0\nKind=bond\n" + "[Route]\nGateway=10.0.0.1\n" * 30_000,
    },
    "20-ports.network": {
        "routes": "[Match]\nName=*\n[Network]\nBond=bond0\n" + "[Route]\nGateway=10.0.0.1\n" * 30_000,
        "names": f"[Match]\nName={'*a' * 1000} {' '.join(f'{n}*' for n in range(100_000))}\n[Network]\nBond=bond0\n",
    },
}


@pytest.mark.parametrize(("name", "what"), [(name, what) for name, texts in _HOSTILE.items() for what in texts])
def test_hostile_files_are_read_within_seconds_and_told_in_short_lines(tmp_path: Path, name: str, what: str) -> None:
    text = _HOSTILE[name][what]
    path = (
        write(tmp_path, interfaces=text) if name == "interfaces" else write(tmp_path, networkd={**NETWORKD, name: text})
    )
    began = time.process_time()
    try:
        said = notes(path)
    except InputError as error:
        said = list(error.problems)
    assert time.process_time() - began < 5
    assert len(said) <= 210
    assert all(len(line) < 400 and line.isprintable() for line in said), max(said, key=len)[:500]
