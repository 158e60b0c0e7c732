"""What a lab needs of this kernel, each found out by trying it in a throw-away namespace.

Changes when labs need another part of the kernel. ``Lab.start`` and ``preflight.refusals`` ask here, so both say the
same.
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
    """What the lab uses where several would do; ``marking`` None: its ports mark nothing."""

    lag: LagKind
    marking: MarkerKind | None


def kernel_parts(spec: FabricSpec) -> KernelParts:
    """What a lab of this topology uses. MachineError, naming the way out, when this kernel lacks something.

    Needs the right to make network namespaces.
    """
    lag, marking = choose(spec.lag), choose_marker(spec.ecn)
    check_classes()
    if spec.path_control.chosen.steers:
        check_steering()
    check_soft_roce(spec)
    return KernelParts(lag, marking)
