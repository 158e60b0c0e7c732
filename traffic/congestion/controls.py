"""Registry of congestion controls: the names that a drill may use, each with its default parameter set."""

from __future__ import annotations

from dataclasses import dataclass

from hpn.testbed.entries import Registry
from hpn.traffic.congestion.admission_parameters import AdmissionParameters
from hpn.traffic.congestion.constant import ConstantParameters
from hpn.traffic.congestion.control import CongestionControl, Parameters
from hpn.traffic.congestion.dcqcn import DcqcnParameters
from hpn.traffic.congestion.hpcc import HpccParameters
from hpn.traffic.congestion.nscc import NsccParameters
from hpn.traffic.congestion.parameter_sets import (
    HPCC_200G,
    LINE_RATE,
    NCCL_4MB,
    SIMAI_200G,
    SWIFT_2020,
    TIMELY_200G,
    UEC_2025,
    ParameterSet,
)
from hpn.traffic.congestion.scale import Scale
from hpn.traffic.congestion.swift import SwiftParameters
from hpn.traffic.congestion.timely import TimelyParameters


@dataclass(frozen=True, slots=True)
class ControlKind:
    """One kind of congestion control; ``parameters`` is the class of all its sets, ``usual`` the default set."""

    name: str
    summary: str  # for docs/drills.md
    parameters: type[Parameters]
    usual: ParameterSet
    marked: bool  # it does nothing unless switches mark
    telemetry: bool = False  # it does nothing unless switches report (INT)
    many_paths: bool = False  # it needs acknowledgements that name marked packets

    def make(self, line_rate_bps: float, scale: Scale, parameters: Parameters) -> CongestionControl:
        """Return the control of one queue pair on a lab port of ``line_rate_bps``; ``parameters`` as for real links."""
        return parameters.control(line_rate_bps, scale)


CONTROLS = Registry(
    "congestion control",
    lambda kind: kind.name,
    [
        ControlKind("constant", "none: a queue pair sends at its port's rate", ConstantParameters, LINE_RATE, False),
        ControlKind("dcqcn", "marks become CNPs, which cut the rate (SIGCOMM 2015)", DcqcnParameters, SIMAI_200G, True),
        ControlKind("swift", "the delay is held at a target (SIGCOMM 2020)", SwiftParameters, SWIFT_2020, False),
        ControlKind("timely", "the delay's gradient (SIGCOMM 2015)", TimelyParameters, TIMELY_200G, False),
        ControlKind("hpcc", "telemetry sets the window (SIGCOMM 2019)", HpccParameters, HPCC_200G, False, True),
        ControlKind(
            "nscc", "marks and delay set the window (Ultra Ethernet)", NsccParameters, UEC_2025, True, many_paths=True
        ),
        ControlKind(
            "receiver-driven", "receivers grant what may be on its way (Meta)", AdmissionParameters, NCCL_4MB, False
        ),
    ],
    of=ControlKind,
)
