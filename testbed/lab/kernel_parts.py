"""Kernel features that a lab needs, each tested in a throw-away namespace.

Changes when labs need another kernel feature. ``Lab.start`` and ``preflight.refusals`` both call this, so their
results agree.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.kernel import ns
from hpn.testbed.lab.classes import check as check_classes
from hpn.testbed.lab.classes import check_buffers
from hpn.testbed.lab.markers import MarkerKind
from hpn.testbed.lab.markers import choose as choose_marker
from hpn.testbed.lab.soft_roce import check as check_soft_roce
from hpn.testbed.lab.srv6 import check as check_srv6
from hpn.testbed.lag.affinity import check as check_affinity
from hpn.testbed.lag.datapath import LagKind
from hpn.testbed.lag.datapaths import candidates
from hpn.testbed.lag.steering import check as check_steering


def choose(wanted: str) -> LagKind:
    """Return the datapath to use: the requested one, or for 'auto' the first that this kernel supports.

    MachineError, with a remedy, when it is not available. Needs the right to create network namespaces.
    """
    problems = []
    probe = ns.create("lag-probe")
    try:
        for kind in candidates(wanted):
            problem = kind.problem(probe)
            if problem is None:
                return kind
            problems.append(problem)
    finally:
        os.close(probe.fd)
    raise MachineError(problems[-1])


class KernelParts(NamedTuple):
    """Choice among alternatives that the lab uses; ``marking`` None: its ports do not mark."""

    lag: LagKind
    marking: MarkerKind | None


def kernel_parts(spec: FabricSpec) -> KernelParts:
    """Return the features that a lab of this topology uses. MachineError, with a remedy, when this kernel lacks one.

    Needs the right to create network namespaces.
    """
    lag, marking = choose(spec.lag), choose_marker(spec.ecn)
    check_classes()
    if spec.path_control.chosen.steers:
        check_steering()
    if spec.nic.binds:
        check_affinity()
    check_soft_roce(spec)
    check_srv6(spec)
    check_buffers(spec)
    return KernelParts(lag, marking)
