"""What our batch makes of a LAG's rules, judged by libnftables: the text it lists is that of its own transaction."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Sequence

import pytest

from hpn.testbed.kernel import ns
from hpn.testbed.kernel.nftables import rules as nftrules
from hpn.testbed.kernel.nftables.nft import Nft, NftError
from hpn.testbed.kernel.nftables.rules import Chain
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.lag.nft_datapath import NftDatapath

FOUR = tuple(f"eth{n}" for n in range(4))
SEED = 0x1234
MAC = "02:00:00:00:00:0a"

pytestmark = pytest.mark.kernel


def host() -> tuple[NetNs, Netlink]:
    """A namespace with a LAG, bond0 =veth= bond0i, and four ports whose far ends are here too."""
    space = ns.create("host")
    link = Netlink(space)
    pairs = [("bond0", "bond0i"), *((port, f"far{n}") for n, port in enumerate(FOUR))]
    for n, (near, far) in enumerate(pairs):
        link.run([rtnl.add_veth(near, 10 + n, space, far, 20 + n, space, mac=MAC, peer_mac=MAC, mtu=1500)])
    return space, link


def datapath(nft: Nft, seed: int = SEED) -> NftDatapath:
    made = NftDatapath(nft, "bond0", "bond0i", FOUR, seed)
    made.setup()
    return made


def as_text(ports: Sequence[str], seed: int) -> str:
    """The same rules in the language of nft(8)."""
    tx = [f'ether type arp dup to "{port}"' for port in ports[1:]]
    tx += [f'ether type arp fwd to "{port}"' for port in ports[:1]]
    if len(ports) == 1:
        tx += [f'ether type ip fwd to "{ports[0]}"']
    else:
        udp = "meta l4proto udp jhash ip saddr . ip daddr . udp sport . udp dport"
        scale = f"mod {len(ports)} seed {seed:#x}"
        tx += [
            f'{hashed} {scale} == {index} fwd to "{port}"'
            for hashed in (udp, "jhash ip saddr . ip daddr")
            for index, port in enumerate(ports)
        ]
    rx = [f"ether type {kind} accept" for kind in ("0x8809", "0x88b5", "0x8808", "0x88cc")]
    rx += [f'iif "{port}" fwd to "bond0i"' for port in ports]
    lines = [f"flush chain netdev lag_bond0 {chain}" for chain in ("tx", "rx")]
    lines += [
        f"add rule netdev lag_bond0 {chain} {rule}" for chain, rules in (("tx", tx), ("rx", rx)) for rule in rules
    ]
    return "\n".join(lines)


@pytest.mark.parametrize("seed", [0, SEED, 0xFFFFFFFF])
def test_libnftables_lists_what_the_batch_wrote_as_what_it_writes_itself(seed: int) -> None:
    space, _ = host()
    nft = Nft(space)
    path = datapath(nft, seed)
    for ports in ((), FOUR[:1], FOUR[1:2], FOUR[:2], FOUR[1::-1], FOUR, ()):
        path.set_active(ports)
        ours = nft.run("list table netdev lag_bond0")
        nft.run(as_text(ports, seed))
        assert ours == nft.run("list table netdev lag_bond0")
        assert ours.count(" fwd to ") == 2 * len(ports) + (len(ports) if len(ports) > 1 else 0) + bool(ports)


def test_a_port_that_is_missing_is_named_and_changes_nothing() -> None:
    space, link = host()
    nft = Nft(space)
    path = datapath(nft)
    path.set_active(FOUR)
    before = nft.run("list table netdev lag_bond0")
    for missing in ("eth9", "x" * 16):
        with pytest.raises(NftError, match=f"bond0: host: {missing}: No such device") as refused:
            path.set_active([*FOUR[:2], missing])
        assert refused.value.errno == errno.ENODEV
        assert nft.run("list table netdev lag_bond0") == before
    with space.entered():
        subprocess.run(["ip", "link", "delete", FOUR[2]], check=True)
    link.run([rtnl.add_veth(FOUR[2], 43, space, "far2", 44, space, mac=MAC, peer_mac=MAC, mtu=1500)])
    path.set_active(FOUR[2:3])
    assert f'iif "{FOUR[2]}" fwd to "bond0i"' in nft.run("list table netdev lag_bond0"), "by the index it has now"


def test_a_refused_batch_changes_nothing_and_leaves_no_answer_behind() -> None:
    space, _ = host()
    nft = Nft(space)
    path = datapath(nft)
    path.set_active(FOUR)
    before = nft.run("list ruleset")
    here, nowhere = Chain("lag_bond0", "tx"), Chain("lag_bond1", "tx")
    with pytest.raises(NftError, match=r"host: add rule netdev lag_bond1 tx: No such file or directory") as refused:
        nft.commit([here.flush(), *[nowhere.append(nftrules.accept())] * 3, here.append(nftrules.accept())])
    assert refused.value.errno == errno.ENOENT
    with pytest.raises(NftError, match="add rule netdev lag_bond0 tx: ") as refused:
        nft.commit([here.flush(), here.append(nftrules.jhash(12, 16, 2, SEED, 1))])  # of registers that nobody filled
    assert refused.value.errno == errno.ENODATA
    assert nft.run("list ruleset") == before
    path.set_active(FOUR[:1])
    assert nft.run("list ruleset") != before
    path.close()
    with pytest.raises(NftError, match="flush chain netdev lag_bond0 tx: No such file or directory"):
        path.set_active(FOUR)
    assert nft.run("list ruleset") == ""
    nft.close()
    with pytest.raises(NftError, match="closed"):
        path.set_active(FOUR)
