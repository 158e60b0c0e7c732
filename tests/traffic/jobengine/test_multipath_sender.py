"""The sending end of a multipath queue pair waits for as long as a full packet may keep an acknowledgement."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hpn.traffic.flows.framing import wire_bytes
from hpn.traffic.jobengine.multipath_sender import MultipathSender
from hpn.traffic.jobengine.sender import sending_end
from hpn.traffic.jobengine.sending_end import Part
from hpn.traffic.jobengine.setup import FIRST_LIFE
from hpn.traffic.multipath.sack import Sack
from hpn.traffic.multipath.settings import EntropyValue
from tests.traffic.jobengine.network import planned, setups

PLAN = planned("{collective: {kind: all-reduce, size: 1 MB}, transport: {use: multipath, paths: 8}}")
MTU = PLAN.transport.path_mtu
VALUES = [EntropyValue(50_000 + path, path % 2) for path in range(8)]
RTT_NS, ROUNDS = 1_000_000, 64


def sender_at(rate_bps: int) -> MultipathSender:
    """At two ports of that rate."""
    setup = setups(PLAN)[0]
    pair = setup.senders[0]
    made = sending_end(replace(setup, port_rate_bps={pair.flow.src_nic: (rate_bps, rate_bps)}), pair, FIRST_LIFE)
    assert isinstance(made, MultipathSender)
    made.set_values(VALUES)
    made.post(Part(0, np.zeros(2 * ROUNDS, np.uint64)), 2 * ROUNDS * MTU, 0, 0, 0)
    return made


@pytest.mark.parametrize("rate_bps", [12_500_000, 50_000_000, 200_000_000])
def test_an_acknowledgement_behind_a_full_packet_there_and_back_comes_in_time(rate_bps: int) -> None:
    """At 12.5 Mbit/s such a packet takes 2.7 ms, and round trips before that were of 1 ms."""
    sender, now_ns = sender_at(rate_bps), 0
    for psn in range(ROUNDS):
        (run,), _ = sender.take_by(0, 1, now_ns)
        now_ns += RTT_NS
        sender.on_sack(Sack(psn, psn, VALUES[run.paths[0]].sport), now_ns)
    sender.take_by(0, 1, now_ns)
    packet_ns = wire_bytes(MTU) * 8 * 10**9 // rate_bps
    sender.on_timer(now_ns + RTT_NS + 2 * packet_ns)
    assert sender.path_counters()["path_denials"] == 0
    sender.on_timer(now_ns + RTT_NS + 2 * packet_ns + PLAN.acks.delay_ns + 4 * RTT_NS)
    assert sender.path_counters()["path_denials"] == 1
