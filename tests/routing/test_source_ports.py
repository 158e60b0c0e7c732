"""Any LAG's hash takes a queue pair to a port that works, where there is one: candidates share no structure with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.testbed.lag.bond import layer34_hash
from hpn.testbed.lag.datapath import UDP
from hpn.testbed.lag.datapaths import DATAPATHS
from hpn.testbed.lag.host_bond import KERNEL
from hpn.testbed.lag.host_nft import NFT
from hpn.testbed.lag.nft_datapath import port_index
from hpn.testbed.routing.pathcontrol.actions import Stuck
from hpn.testbed.routing.pathcontrol.destinations import HostSettings
from hpn.testbed.routing.pathcontrol.host_agent import BATCH_GAP_NS, Connection, HostAgent
from hpn.testbed.routing.pathcontrol.message import encode_reach
from hpn.testbed.routing.pathcontrol.source_ports import FIRST_SPORT, SEARCH_LIMIT, SPORTS, SourcePorts
from hpn.traffic.flows.flow import ROCE_PORT

PortOf = Callable[[int, int, int], int]
"""(source port, destination, ports) to a port's number."""
SEARCHES = 1_000_000


def bonding(sport: int, dst: int, ports: int) -> int:
    return layer34_hash("10.0.0.1", f"10.0.{dst >> 8 & 255}.{dst & 255}", sport, ROCE_PORT, UDP) % ports


def nft(sport: int, dst: int, ports: int) -> int:
    """Each search is another NIC's, whose hash has a seed of its own."""
    seed = dst * 0x9E3779B1 & 0xFFFFFFFF | 1
    return port_index("10.0.0.1", f"10.0.{dst >> 8 & 255}.{dst & 255}", sport, ROCE_PORT, UDP, ports, seed)


def bits(first: int, second: int) -> PortOf:
    """The parity of two bits of the source port, and what is above them for more ports."""
    return lambda sport, dst, ports: ((sport >> first ^ sport >> second ^ dst) & 7) % ports


OF_DATAPATHS: dict[str, PortOf] = {KERNEL.name: bonding, NFT.name: nft}
"""What bonding hashes without ports (layer2, layer2+3) is no use to path control: that it says so has its test."""
POLICIES: dict[str, PortOf] = {
    **OF_DATAPATHS,
    "low bits": lambda sport, dst, ports: (sport + dst) % ports,
    "high bits": lambda sport, dst, ports: (sport >> 11) % ports,
    **{f"bits {low} and {low + apart}": bits(low, low + apart) for low in range(0, 10, 3) for apart in (1, 4)},
}


def tries(found: SourcePorts, connection: int, port_of: PortOf, ports: int) -> int:
    """Candidates looked at until one goes by the only port that works; 0: none does."""
    good = connection % ports
    candidates = enumerate(found.candidates(connection), 1)
    return next((at for at, sport in candidates if port_of(sport, connection, ports) == good), 0)


def test_every_datapath_has_its_hash_here() -> None:
    assert {kind.name for kind in DATAPATHS.values()} == OF_DATAPATHS.keys()


@pytest.mark.parametrize("ports", range(2, 9))
@pytest.mark.parametrize("datapath", OF_DATAPATHS)
def test_an_agent_takes_every_queue_pair_to_the_one_port_that_still_reaches(datapath: str, ports: int) -> None:
    def port_for(sport: int, _dst_ip: str, _dport: int, active: Sequence[str]) -> str:
        return active[OF_DATAPATHS[datapath](sport, 1, len(active))]

    names = [f"r0p{number}" for number in range(ports)]
    made = HostAgent("p0.s0.h0.r0", names, HostSettings(), port_for)
    made.set_active(names, 0)
    made.add([Connection(number, "10.0.0.2", ROCE_PORT, FIRST_SPORT + number) for number in range(300)], 0)
    lost = [a for name in names[1:] for a in made.on_frame(name, encode_reach(1, [("10.0.0.2", False)])[0], 1)]
    for at in range(20):
        lost += made.on_timer(at * 2 * BATCH_GAP_NS)
    assert not [each for each in lost if isinstance(each, Stuck)]
    sports = [made.sport_of(number) for number in range(300)]
    assert {port_for(sport, "", 0, names) for sport in sports} == {names[0]}
    assert len(set(sports)) == 300


def test_a_million_searches_over_all_hashes_and_1_to_8_ports_all_find_one() -> None:
    cases = [(name, ports) for name in POLICIES for ports in range(1, 9)]
    each = -(-SEARCHES // len(cases))
    failed: dict[tuple[str, int], int] = {}
    for at, (name, ports) in enumerate(cases):
        found = SourcePorts(f"p0.s0.h{at}.r0", at)
        lost = sum(not tries(found, number, POLICIES[name], ports) for number in range(each))
        if lost:
            failed[name, ports] = lost
    assert not failed, f"searches that found nothing, of {each} each: {failed}"


@given(st.integers(0, 2**32), st.integers(0, 2**20))
def test_candidates_are_distinct_roce_ports_and_the_same_again(seed: int, connection: int) -> None:
    found = list(SourcePorts("p0.s0.h0.r0", seed).candidates(connection))
    assert len(set(found)) == len(found) == SEARCH_LIMIT
    assert all(FIRST_SPORT <= sport < FIRST_SPORT + SPORTS for sport in found)
    assert found == list(SourcePorts("p0.s0.h0.r0", seed).candidates(connection))


def test_candidates_have_no_stride() -> None:
    """What an arithmetic progression has: one difference between all neighbours."""
    for connection in range(100):
        found = list(SourcePorts("p0.s0.h0.r0", 1).candidates(connection))
        strides = {(after - before) % SPORTS for before, after in pairwise(found)}
        assert len(strides) > SEARCH_LIMIT * 0.9


def test_every_source_port_is_a_candidate_once_before_the_search_gives_up() -> None:
    def all_but(kept: int) -> Iterator[int]:
        found = SourcePorts("p0.s0.h0.r0", 1)
        for number in range(SPORTS):
            if number != kept:
                found.add(number, FIRST_SPORT + number)
        return islice(found.candidates(SPORTS), 2)

    assert list(all_but(77)) == [FIRST_SPORT + 77], "the last free one is found, and nothing after it"


@pytest.mark.parametrize("ports", [2, 3, 5, 8])
def test_the_share_of_candidates_that_fits_is_that_of_the_good_ports(ports: int) -> None:
    found = SourcePorts("p0.s0.h0.r0", 1)
    looked = [tries(found, number, bonding, ports) for number in range(4000)]
    assert sum(looked) / len(looked) == pytest.approx(ports, rel=0.1), "geometric: one of so many fits"
