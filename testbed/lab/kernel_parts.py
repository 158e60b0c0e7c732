"""Kernel features that a lab needs, each tested in a throw-away namespace.

Changes when labs need another kernel feature. ``Lab.start`` and ``preflight.refusals`` both call this, so their
results agree.
"""

from __future__ import annotations

from typing import NamedTuple

from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.lab.classes import check as check_classes
from hpn.testbed.lab.markers import MarkerKind
from hpn.testbed.lab.markers import choose as choose_marker
from hpn.testbed.lab.soft_roce import check as check_soft_roce
from hpn.testbed.lag.choose import choose
from hpn.testbed.lag.datapath import LagKind
from hpn.testbed.lag.steering import check as check_steering


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
    check_soft_roce(spec)
    return KernelParts(lag, marking)
