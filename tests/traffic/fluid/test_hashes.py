"""The kernel's multipath hash, computed: against the reference of SipHash, the bounds in its source, and a kernel."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.testbed.kernel import ns
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.lag.jhash import jhash
from hpn.testbed.routing.ecmp import namespace_sysctls
from hpn.traffic.fluid import hashes
from hpn.traffic.fluid.hashes import addresses, chosen, multipath_hash, siphash, words
from tests.routing import fabrics


def test_siphash_is_that_of_its_authors() -> None:
    """Appendix A of the paper: key 00..0f, message 00..0e."""
    message = bytes(range(15)) + b"\0"
    parts = [words([int.from_bytes(message[at : at + 8], "little")]) for at in (0, 8)]
    found = siphash(words([0x0706050403020100]), words([0x0F0E0D0C0B0A0908]), parts, 15)
    assert found.tolist() == [0xA129CA6149BE45E5]


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=5))
def test_the_array_of_jhashes_is_the_lags_jhash_one_by_one(first: list[int]) -> None:
    found = hashes._jhash(np.array(first, dtype=np.uint32))
    assert found.tolist() == [jhash(np.array([word, 0], dtype=np.uint32).tobytes(), 0) for word in first]


def _bounds(hops: int) -> list[int]:
    """fib_rebalance: DIV_ROUND_CLOSEST_ULL(weight << 31, total) - 1."""
    return [(((hop + 1) << 31) + hops // 2) // hops - 1 for hop in range(hops)]


@given(st.integers(1, 64), st.lists(st.integers(0, 2**31 - 1)))
def test_the_first_next_hop_whose_bound_is_not_below_the_hash_is_chosen(hops: int, anywhere: list[int]) -> None:
    bounds = _bounds(hops)
    found = [at for bound in bounds for at in (bound - 1, bound, bound + 1) if 0 <= at < 2**31] + anywhere
    expected = [next(hop for hop, bound in enumerate(bounds) if at <= bound) for at in found]
    assert chosen(words(found), words([hops])).tolist() == expected


def test_both_directions_of_a_flow_hash_alike_and_seeds_do_not() -> None:
    here, there, one, two = addresses(["10.0.0.1"]), addresses(["10.0.1.1"]), words([50_000]), words([4791])
    seed = words([7])
    assert multipath_hash(seed, here, there, one, two) == multipath_hash(seed, there, here, two, one)
    assert multipath_hash(seed, here, there, one, two) != multipath_hash(words([8]), here, there, one, two)


HOPS = (1, 2, 3, 4, 5, 6, 7, 60)
SPORTS = range(0xC000, 0xC000 + 60)
SEED = Path("/proc/sys/net/ipv4/fib_multipath_hash_seed")


@pytest.mark.kernel
@pytest.mark.skipif(not SEED.exists(), reason="switches have seeds from Linux 6.11 on")
def test_a_kernel_takes_the_next_hop_that_is_computed() -> None:
    """Of 1 to 60 equal next hops, for 60 source ports each, by RTM_GETROUTE with the settings of a switch."""
    node, space = fabrics.hpn().node("p0.s0.t0.0"), ns.create("switch")
    with space.entered():
        for setting in namespace_sysctls(node):
            if setting.required or setting.path.endswith("seed"):
                Path("/proc/sys", setting.path).write_text(setting.value)
        _ip("link add in0 type veth peer name in1", "link add up0 type veth peer name up1")
        _ip(*(f"link set {name} up" for name in ("in0", "in1", "up0", "up1")))
        _ip("addr add 10.9.0.1/16 dev up0", "addr add 10.8.0.1/16 dev in0")
        _ip(*(f"route add 10.0.{hops}.9/32 {' '.join(_ways(hops))}" for hops in HOPS))
        entered = socket.if_nametoindex("in0")
    lookup = Netlink(space)
    for hops in HOPS:
        dst = f"10.0.{hops}.9"
        asked = [lookup.route_get(dst, src="10.8.0.7", iif=entered, sport=sport, dport=4791) for sport in SPORTS]
        many = len(SPORTS)
        packets = addresses(["10.8.0.7"] * many), addresses([dst] * many), words(SPORTS), words([4791] * many)
        found = chosen(multipath_hash(words([node.ecmp_seed] * many), *packets), words([hops]))
        assert [hop.gateway for hop in asked] == [f"10.9.1.{at + 1}" for at in found.tolist()], hops


def _ways(hops: int) -> list[str]:
    return [f"{'nexthop ' if hops > 1 else ''}via 10.9.1.{at + 1} dev up0" for at in range(hops)]


def _ip(*lines: str) -> None:
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)
