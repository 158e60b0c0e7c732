"""Which worker owns which NIC, and what the sender's gaps are."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.streams.gaps import send_gaps
from hpn.traffic.streams.records import SENT
from hpn.traffic.workers.placement import place
from tests.traffic.nets import flows


def _flow(i: int, src: str, dst: str) -> FlowSpec:
    return FlowSpec(i, f"{src}>{dst}", src, dst, "10.0.0.1", "10.0.0.2", 0xC000, 0xC000, 1000.0)


def test_one_flow_is_sent_and_received_by_different_workers() -> None:
    placed = place(flows(1, 1000), 2)
    assert placed["a.r0"] != placed["b.r0"]


@given(st.integers(1, 40), st.integers(0, 10**6))
def test_a_permutation_between_two_segments_is_cut_in_half(hosts: int, seed: int) -> None:
    here, there = [f"h{i}" for i in range(hosts)], [f"g{i}" for i in range(hosts)]
    rng = random.Random(seed)
    rng.shuffle(here)
    back = there[:]
    rng.shuffle(back)
    every = [_flow(i, a, b) for i, (a, b) in enumerate([*zip(here, there, strict=True), *zip(back, here, strict=True)])]
    placed = place(every, 2)
    assert all(placed[f.src_nic] != placed[f.dst_nic] for f in every)
    assert sum(placed.values()) == hosts


@given(st.integers(1, 4), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1))
def test_every_nic_has_exactly_one_worker_in_range(workers: int, ends: list[tuple[int, int]]) -> None:
    every = [_flow(i, f"n{a}", f"n{b}") for i, (a, b) in enumerate(ends)]
    placed = place(every, workers)
    assert set(placed) == {nic for f in every for nic in (f.src_nic, f.dst_nic)}
    assert all(0 <= worker < workers for worker in placed.values())


def test_gaps_are_per_flow() -> None:
    rows = [(7, 0), (3, 5), (7, 10), (3, 6), (7, 40), (9, 1)]
    sent = np.zeros(len(rows), SENT)
    sent["flow"], sent["sent_ns"] = zip(*rows, strict=True)
    found = send_gaps(sent)
    assert {flow: (g.bursts, g.largest_ns) for flow, g in found.items()} == {3: (2, 1), 7: (3, 30), 9: (1, 0)}
    assert send_gaps(sent[:0]) == {}
