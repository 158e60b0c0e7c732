"""Named parameter sets, as for real links, each with its source and the marking it was made for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hpn.testbed.entries import Registry
from hpn.testbed.fabric.marking import Marker
from hpn.traffic.congestion.admission_parameters import AdmissionParameters
from hpn.traffic.congestion.constant import ConstantParameters
from hpn.traffic.congestion.control import Parameters
from hpn.traffic.congestion.dcqcn import DcqcnParameters
from hpn.traffic.congestion.hpcc import HpccParameters
from hpn.traffic.congestion.nscc import NsccParameters
from hpn.traffic.congestion.scale import Scale
from hpn.traffic.congestion.swift import SwiftParameters
from hpn.traffic.congestion.timely import TimelyParameters

_US = 1_000
_MBPS = 1_000_000


@dataclass(frozen=True, slots=True)
class ParameterSet:
    """Named parameters of one control, for links of ``real_rate_bps``; ``marker``: the switches' marking alongside."""

    name: str
    control: str  # key of CONTROLS
    summary: str
    values: Parameters
    real_rate_bps: int
    marker: Marker | None = None

    def marker_at(self, scale: Scale) -> Marker | None:
        """Return the marker with a lab's thresholds."""
        marker = self.marker
        if marker is None:
            return None
        return replace(marker, kmin_bytes=scale.bytes_(marker.kmin_bytes), kmax_bytes=scale.bytes_(marker.kmax_bytes))


LINE_RATE = ParameterSet(
    "line-rate", "constant", "a queue pair sends at the rate of its port", ConstantParameters(), 200_000_000_000
)
"""No source: it is no control."""

DCQCN_2015 = ParameterSet(
    "dcqcn-2015",
    "dcqcn",
    "the values of the DCQCN paper, for 40G",
    DcqcnParameters(
        gain=1 / 256,
        alpha_timer_ns=55 * _US,
        decrease_interval_ns=0,
        increase_timer_ns=55 * _US,
        byte_counter_bytes=10_000_000,
        fast_recovery=5,
        additive_bps=40 * _MBPS,
        hyper_bps=200 * _MBPS,
        minimum_bps=10 * _MBPS,
        clamp_target=True,
        hyper_grows=True,
        cnp_interval_ns=50 * _US,
        cnp_delay_ns=0,
    ),
    40_000_000_000,
    Marker(kmin_bytes=5_000, kmax_bytes=200_000, pmax=0.01),
)
"""Zhu et al., SIGCOMM 2015, sections 3, 5 and 6 (figure 14). Values: g 1/256, K and T 55 us, B 10 MB, F 5, R_AI 40
Mbit/s, a CNP per 50 us, K_min 5 KB, K_max 200 KB, P_max 1 %. The paper names no R_HAI and no minimum. 200 Mbit/s is
from its authors' simulator (github.com/bobzhuyb/ns3-rdma, mix/config.txt); 10 Mbit/s is ours. It has no CNP delay."""


_SIMAI = DcqcnParameters(
    gain=1 / 256,
    alpha_timer_ns=1 * _US,
    decrease_interval_ns=4 * _US,
    increase_timer_ns=900 * _US,
    byte_counter_bytes=None,
    fast_recovery=1,
    additive_bps=50 * _MBPS,
    hyper_bps=100 * _MBPS,
    minimum_bps=100 * _MBPS,
    clamp_target=False,
    hyper_grows=False,
    cnp_interval_ns=4 * _US,
    cnp_delay_ns=0,
)
"""github.com/aliyun/SimAI, astra-sim-alibabacloud/inputs/config/SimAI.conf: ALPHA_RESUME_INTERVAL 1,
RATE_DECREASE_INTERVAL 4, CLAMP_TARGET_RATE 0, RP_TIMER 900, EWMA_GAIN 1/256, FAST_RECOVERY_TIMES 1, RATE_AI 50,
RATE_HAI 100, MIN_RATE 100 Mbit/s. Its network builds on github.com/alibaba-edu/High-Precision-Congestion-Control.
There receivers report marks with each ACK, so the sender's 4 us between cuts decide. Hence 4 us between CNPs, which
is also an adapter's default (mlxconfig: MIN_TIME_BETWEEN_CNPS 4). Its window (HAS_WIN) is the transport's here."""

SIMAI_200G = ParameterSet(
    "simai-200g",
    "dcqcn",
    "SimAI's values and marking for 200G",
    _SIMAI,
    200_000_000_000,
    Marker(kmin_bytes=300_000, kmax_bytes=1_200_000, pmax=0.8),
)
"""The same file: KMIN_MAP, KMAX_MAP and PMAX_MAP at 200000000000."""

SIMAI_400G = ParameterSet(
    "simai-400g",
    "dcqcn",
    "SimAI's values and marking for 400G",
    _SIMAI,
    400_000_000_000,
    Marker(kmin_bytes=800_000, kmax_bytes=3_200_000, pmax=0.2),
)
"""The same file, maps at 400000000000."""

ADAPTER_200G = ParameterSet(
    "adapter-200g",
    "dcqcn",
    "simai-200g with the 55 us that real adapters need to send a CNP",
    replace(_SIMAI, cnp_delay_ns=55 * _US),
    200_000_000_000,
    SIMAI_200G.marker,
)
"""FACTS 13 for the delay; no simulator has it."""

SWIFT_2020 = ParameterSet(
    "swift-2020",
    "swift",
    "the delay held at 30 us, three switches on the way",
    SwiftParameters(
        target_ns=30 * _US,
        increase_packets=1.0,
        decrease=0.8,
        most_decrease=0.5,
        scaling_ns=100 * _US,
        scaling_least=0.1,
        scaling_most=100.0,
        packet_bytes=4200,
        minimum_bps=100 * _MBPS,
        timeouts=5,
    ),
    200_000_000_000,
)
"""Source: the paper gives the equations, not the constants. These are from a simulator whose authors call them guesses
too (github.com/Broadcom/csg-htsim, sim/swift.cpp). Values: ai 1, beta 0.8, max_mdf 0.5, base 20 us and 3 us per hop,
flow scaling over five times the base from 0.1 to 100 packets, five timeouts. The minimum is SimAI's; packets are 4
KiB."""

_TIMELY = TimelyParameters(
    low_ns=50 * _US,
    high_ns=500 * _US,
    minimum_rtt_ns=20 * _US,
    step_bps=10 * _MBPS,
    hyper_after=5,
    hyper_steps=5,
    decrease=0.8,
    smoothing=0.875,
    segment_bytes=64_000,
    minimum_bps=10 * _MBPS,
)

TIMELY_2015 = ParameterSet("timely-2015", "timely", "the values of the TIMELY paper, for 10G", _TIMELY, 10_000_000_000)
"""Mittal et al., SIGCOMM 2015, as Zhu et al. (CoNEXT 2016, table 2) and github.com/alibaba-edu/
High-Precision-Congestion-Control (rdma-hw.cc) have them too. T_low 50 us, T_high 500 us, minimum RTT 20 us, delta 10
Mbit/s, beta 0.8, alpha 0.875, HAI of 5 deltas. Segments of 64 KB are among the paper's sizes, and what an ACK covers
here. The minimum is ours."""

TIMELY_200G = ParameterSet(
    "timely-200g",
    "timely",
    "timely-2015 with steps for 200G",
    replace(_TIMELY, step_bps=200 * _MBPS, minimum_bps=100 * _MBPS),
    200_000_000_000,
)
"""The step grows with the rate, as in the same repository (run.py: 10 Mbit/s for each 10G). The minimum is
SimAI's."""

_HPCC = HpccParameters(
    target=0.95,
    max_stage=5,
    base_rtt_ns=13 * _US,
    additive_bps=40 * _MBPS,
    minimum_bps=100 * _MBPS,
    probe_bytes=64_000,
)

HPCC_2019 = ParameterSet("hpcc-2019", "hpcc", "the values of the HPCC paper, for 100G", _HPCC, 100_000_000_000)
"""Li et al., SIGCOMM 2019, section 5: eta 95 %, maxStage 5, T 13 us. W_AI and minimum are those of its authors'
simulator (github.com/alibaba-edu/High-Precision-Congestion-Control, run.py and rdma-hw.cc): RATE_AI 10 Mbit/s for each
25G, MinRate 100 Mbit/s. One probe for 64 KB is ours: what an ACK covers here."""

HPCC_200G = ParameterSet(
    "hpcc-200g",
    "hpcc",
    "hpcc-2019 with W_AI for 16 flows at 200G",
    replace(_HPCC, additive_bps=625 * _MBPS),
    200_000_000_000,
)
"""W_AI by the paper's rule, (1 - eta) x rate / flows (section 3.3). The simulator's would be 80 Mbit/s, with packets of
1,000 bytes. With 4 KiB one waiting packet counts as 1.3 % of load, and that W_AI leaves flows unequal. SimAI has no set
for HPCC."""

UEC_2025 = ParameterSet(
    "uec-2025",
    "nscc",
    "the values of Ultra Ethernet's authors, for 100G",
    NsccParameters(
        base_rtt_ns=12 * _US,
        target_ns=9 * _US,
        reference_bps=100_000_000_000,
        reference_rtt_ns=12 * _US,
        proportional=4.0,
        fair=5.0,
        steady=0.15,
        fast=0.25,
        fast_below_ns=_US,
        decrease=0.8,
        most_decrease=0.5,
        smoothing=0.0125,
        quick_delays=4.0,
        quick_share=1 / 8,
        adjust_packets=8,
        most_window=1.5,
        packet_bytes=4200,
    ),
    100_000_000_000,
    Marker(kmin_bytes=30_000, kmax_bytes=120_000, pmax=1.0),
)
"""Source: github.com/Broadcom/csg-htsim, sim/uec.cpp (``initNsccParams``): alpha 4, fair 5, eta 0.15 and fast 0.25, in
steps that grow with the bandwidth-delay product from that of 100G and 12 us; gamma 0.8, at most half, average over 80
acknowledgements, gate 2^3, target three quarters of the round trip where packets are trimmed. Marks from 20 to 80 % of
one bandwidth-delay product, as its fat-tree has them of its queue. The specification was not read."""

NCCL_4MB = ParameterSet(
    "nccl-4mb",
    "receiver-driven",
    "4 MB on their way to a NIC, granted in 512 KB",
    AdmissionParameters(limit_bytes=4 << 20, slice_bytes=512 << 10),
    200_000_000_000,
)
"""NCCL's buffer of a channel: NCCL_BUFFSIZE 4 MiB, in 8 steps (NCCL_STEPS), each with its own clear-to-send. NCCL has
one per channel and peer. Here a whole NIC gets one, as Meta tunes their number times size to the capacity of the
network."""

PARAMETERS = Registry(
    "parameter set of a congestion control",
    lambda one: one.name,
    [
        *(LINE_RATE, DCQCN_2015, SIMAI_200G, SIMAI_400G, ADAPTER_200G, SWIFT_2020),
        *(TIMELY_2015, TIMELY_200G, HPCC_2019, HPCC_200G, UEC_2025, NCCL_4MB),
    ],
    of=ParameterSet,
)
