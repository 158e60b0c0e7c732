"""Queue pair numbers and source ports."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.traffic.flows.flow import MAX_FLOWS, default_sport, requester_qpn, responder_qpn

qpns = st.integers(2, 2**24 - 1)


@pytest.mark.parametrize(
    ("local", "remote", "sport"),
    [(0x12, 0x13, 0xC156), (0x1000, 0x1001, 0xD010), (0x4000, 0x11, 0xC011)],
)
def test_source_ports_follow_the_kernels_arithmetic(local: int, remote: int, sport: int) -> None:
    """Worked by hand from rdma_calc_flow_label and rdma_flow_label_to_udp_sport."""
    assert default_sport(local, remote) == sport


@given(qpns, qpns)
def test_source_ports_stay_in_the_range_and_are_the_same_seen_from_both_ends(a: int, b: int) -> None:
    assert 0xC000 <= default_sport(a, b) <= 0xFFFF
    assert default_sport(a, b) == default_sport(b, a)


def test_every_flow_has_two_numbers_of_its_own_in_24_bits() -> None:
    flows = (0, 1, 2, MAX_FLOWS - 1)
    numbers = [q(f) for f in flows for q in (requester_qpn, responder_qpn)]
    assert len(set(numbers)) == 8
    assert all(2 <= n < 2**24 for n in numbers)


def test_the_supervisor_can_import_the_engine_without_numpy() -> None:
    modules = "sys, hpn.traffic.streams.engine, hpn.traffic.flows.patterns"
    code = f"import {modules}; sys.exit(bool({{'numpy', 'scapy'}} & {{*sys.modules}}))"
    subprocess.run([sys.executable, "-c", code], check=True)
