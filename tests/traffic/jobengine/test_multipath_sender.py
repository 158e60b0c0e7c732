"""The sending end of a multipath queue pair waits for as long as a full packet may keep an acknowledgement."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from hpn.traffic.congestion.constant import ConstantParameters
from hpn.traffic.congestion.control import Inert
from hpn.traffic.congestion.nscc import Nscc, NsccParameters
from hpn.traffic.congestion.parameter_sets import UEC_2025
from hpn.traffic.congestion.scale import Scale
from hpn.traffic.flows.framing import wire_bytes
from hpn.traffic.jobengine.multipath_sender import MultipathSender
from hpn.traffic.jobengine.nic_ports import NicPorts
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


class Told(Inert):
    """A control that notes what it hears of."""

    rate_bps = 50e6

    def __init__(self) -> None:
        self.heard: list[tuple[str, int]] = []
        self.round_trips: list[int | None] = []

    def on_marked(self, bytes_: int, now_ns: int) -> None:
        self.heard.append(("marked", bytes_))

    def on_acked(self, bytes_: int, rtt_ns: int | None, now_ns: int) -> None:
        self.heard.append(("acked", bytes_))
        self.round_trips.append(rtt_ns)

    def on_trimmed(self, bytes_: int, now_ns: int) -> None:
        self.heard.append(("trimmed", bytes_))


def test_its_control_hears_of_marks_before_the_acknowledgement_and_of_trims() -> None:
    sender = sender_at(50_000_000)
    (run,), _ = sender.take_by(0, 4, 0)
    sender.control = told = Told()
    values = [VALUES[path].sport for path in run.paths]
    sender.on_sack(Sack(-1, 2, values[2], trimmed=True), RTT_NS)
    sender.on_sack(Sack(1, 1, values[1], marked=(values[0],)), RTT_NS)
    packet = wire_bytes(MTU)
    assert told.heard == [("trimmed", packet), ("marked", packet), ("acked", 2 * packet)]
    assert sender.path_counters()["path_trims"] == 1
    assert sender.requester.counters.packets_again == 0
    (again, *_), _ = sender.take_by(1, 1, RTT_NS)
    assert (again.psn, again.again) == (2, True)


@pytest.mark.parametrize("first_ns", [100_000, 40_000_000])
def test_neither_a_lucky_packet_nor_a_standing_queue_bounds_the_window_for_good(first_ns: int) -> None:
    """A lab's token buckets let a lone packet pass at once, and a sender that comes late meets a queue."""
    setup, rate_bps = setups(PLAN)[0], 100_000_000
    pair = replace(setup.senders[0], wire_ns=1_400_000)
    nics = {pair.flow.src_nic: (rate_bps, rate_bps)}
    setup = replace(setup, port_rate_bps=nics, control=UEC_2025.values, scale=Scale.similar(2000))
    made = sending_end(setup, pair, FIRST_LIFE)
    assert isinstance(made, MultipathSender)
    assert isinstance(made.control, Nscc)
    made.set_values(VALUES)
    made.post(Part(0, np.zeros(2 * ROUNDS, np.uint64)), 2 * ROUNDS * MTU, 0, 0, 0)
    base_ns, now_ns = pair.wire_ns + 2 * setup.tick_ns, 0
    for psn in range(ROUNDS):
        (run,), _ = made.take_by(psn % 2, 1, now_ns)
        now_ns += base_ns if psn else first_ns
        made.on_sack(Sack(psn, psn, VALUES[run.paths[0]].sport), now_ns)
    assert made.control.window_bytes == pytest.approx(1.5 * 2 * rate_bps * base_ns / 8e9)


@pytest.mark.parametrize("ports", [2, 8])
@pytest.mark.parametrize("packets", [3, 16])
def test_no_more_is_under_way_than_the_window_of_its_control(ports: int, packets: int) -> None:
    setup, rate_bps = setups(PLAN)[0], 100_000_000
    values = UEC_2025.values
    assert isinstance(values, NsccParameters)
    control = replace(values, packet_bytes=wire_bytes(MTU), base_rtt_ns=10**6)
    line_bps = ports * rate_bps
    wanted_ns = packets * wire_bytes(MTU) * 8 * 10**9 // (line_bps * 3 // 2) + 1
    pair = replace(setup.senders[0], wire_ns=wanted_ns)
    nics = {pair.flow.src_nic: (rate_bps,) * ports}
    setup = replace(setup, port_rate_bps=nics, control=control, scale=Scale.similar(2000), tick_ns=0)
    made = sending_end(setup, pair, FIRST_LIFE)
    assert isinstance(made, MultipathSender)
    made.set_values([EntropyValue(50_000 + path, path % ports) for path in range(8)])
    made.post(Part(0, np.zeros(100, np.uint64)), 100 * MTU, 0, 0, 0)
    sent = [sum(run.count for run in made.take_by(port, 50, 0)[0]) for port in range(ports)]
    assert sent == [max(packets // ports, 1)] * ports
    assert not any(made.sendable_by(port) for port in range(ports))
    made.on_sack(Sack(0, 0, 50_000), wanted_ns)
    assert made.sendable_by(0)


def test_the_time_that_the_receiver_waited_is_no_part_of_the_round_trip() -> None:
    sender = sender_at(50_000_000)
    (run,), _ = sender.take_by(0, 1, 0)
    sender.control = told = Told()
    sender.on_sack(Sack(0, 0, VALUES[run.paths[0]].sport, waited_ns=RTT_NS // 2), RTT_NS)
    assert told.round_trips == [RTT_NS // 2]


@pytest.mark.parametrize("ports", [2, 3, 8])
@pytest.mark.parametrize("share", [0.02, 0.3, 1.0])
def test_all_ports_carry_the_same_whatever_the_rate(ports: int, share: float) -> None:
    """A queue pair that is slowed down would send all of it by the port that is served first."""
    rate_bps, seconds = 100_000_000, 1
    setup = setups(PLAN)[0]
    pair = setup.senders[0]
    nics = {nic.name: (rate_bps,) * ports for nic in setup.nics}
    made = sending_end(replace(setup, port_rate_bps=nics, control=ConstantParameters(share)), pair, FIRST_LIFE)
    assert isinstance(made, MultipathSender)
    made.set_values([EntropyValue(50_000 + path, path % ports) for path in range(8)])
    count = 10**5
    made.post(Part(0, np.zeros(count, np.uint64)), count * MTU, 0, 0, 0)
    outlets, sent = NicPorts(nics, MTU), Counter[int]()
    outlets.wake(made, 0)
    for now_ns in range(0, seconds * 10**9, setup.tick_ns):
        last = None
        for _, _, runs in outlets.serve(now_ns, now_ns + setup.tick_ns):
            for run in runs:
                sent.update(path % ports for path in run.paths)
                last = (run.psn + run.count - 1, run.paths[-1])
        if last is not None:
            made.on_sack(Sack(last[0], last[0], 50_000 + last[1]), now_ns + setup.tick_ns // 2)
            outlets.wake(made, now_ns)
    expected = share * rate_bps * ports * seconds / 8 / wire_bytes(MTU)
    assert sum(sent.values()) == pytest.approx(expected, rel=0.1)
    assert max(sent.values()) - min(sent.values()) <= 0.02 * expected + 4
