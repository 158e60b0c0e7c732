"""The fault catalogue: kinds of faults, their visibility to host and switch, and the times of their edges. Pure.

A new fault is one frozen dataclass in a module here, listed in ``_ALL``, from which ``FAULTS`` is made. Its first field
is the target; every other field is a parameter of the drill file (``parameter`` carries its unit and range). It defines
everything that ``Fault`` requires of a kind, including its fault action on a lab (``failover.faults.actions``). Which
faults may overlap follows from these definitions (``failover.faults.compose``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hpn.failover.faults.base import (
    MS,
    Fault,
    Need,
    PlannedEdge,
    PlannedFault,
    Replacement,
    TargetKind,
    VisibleTo,
    nics_hit,
)
from hpn.failover.faults.buckets import BucketDrop
from hpn.failover.faults.cabling import CablesSwapped
from hpn.failover.faults.circuits import OpticalCircuits
from hpn.failover.faults.control_plane import BgpReset, TorControlHang, TorDrain, TorLeave
from hpn.failover.faults.decay import Curve, Errors, LinkDecay
from hpn.failover.faults.fields import Parameter, Unit, parameter, parameters
from hpn.failover.faults.impair import ArpLoss, BitCorruption, LacpLoss, LinkDelay, OneWayLoss, RateDrop, SilentDrop
from hpn.failover.faults.link import AdminDown, End, LinkDown, LinkFlap
from hpn.failover.faults.node import (
    AggCrash,
    AggDataplaneDeath,
    CoreCrash,
    HostDown,
    NicDown,
    PlaneDown,
    Tier,
    TorCrash,
    TorDataplaneDeath,
)
from hpn.failover.faults.pause import PauseStorm
from hpn.failover.faults.replace import HostReplaced, SpareTakeover
from hpn.failover.faults.stack import StackUpgrade
from hpn.failover.faults.storm import FlapStorm
from hpn.testbed.entries import Registry
from hpn.testbed.fabric.model import Fabric

__all__ = [
    "FAULTS",
    "MS",
    "AdminDown",
    "AggCrash",
    "AggDataplaneDeath",
    "ArpLoss",
    "BgpReset",
    "BitCorruption",
    "BucketDrop",
    "CablesSwapped",
    "CoreCrash",
    "Curve",
    "End",
    "Errors",
    "Fault",
    "FlapStorm",
    "HostDown",
    "HostReplaced",
    "LacpLoss",
    "LinkDecay",
    "LinkDelay",
    "LinkDown",
    "LinkFlap",
    "Need",
    "NicDown",
    "OneWayLoss",
    "OpticalCircuits",
    "Parameter",
    "PauseStorm",
    "PlaneDown",
    "PlannedEdge",
    "PlannedFault",
    "RateDrop",
    "Replacement",
    "SilentDrop",
    "SpareTakeover",
    "StackUpgrade",
    "TargetKind",
    "Tier",
    "TorControlHang",
    "TorCrash",
    "TorDataplaneDeath",
    "TorDrain",
    "TorLeave",
    "Unit",
    "VisibleTo",
    "make",
    "nics_hit",
    "parameter",
    "parameters",
    "settled",
]

_ALL: tuple[type[Fault], ...] = (
    LinkDown,
    LinkFlap,
    AdminDown,
    FlapStorm,
    CablesSwapped,
    OpticalCircuits,
    OneWayLoss,
    SilentDrop,
    BucketDrop,
    LacpLoss,
    ArpLoss,
    BitCorruption,
    LinkDecay,
    LinkDelay,
    RateDrop,
    PauseStorm,
    NicDown,
    HostDown,
    HostReplaced,
    TorCrash,
    TorDrain,
    TorControlHang,
    TorDataplaneDeath,
    StackUpgrade,
    AggCrash,
    AggDataplaneDeath,
    CoreCrash,
    PlaneDown,
    BgpReset,
)


def lacks(fault: type[Fault]) -> set[str]:
    """Return the attributes that a kind of fault must define and does not."""
    unsaid = {name for name in Fault.__annotations__ if not hasattr(fault, name)}
    return unsaid | set(fault.__abstractmethods__)


FAULTS = Registry("fault", lambda fault: fault.KIND, _ALL, lacks)
"""The kinds that a drill may name."""

_STEPS = Registry[type[Fault]]("step of a fault", lambda fault: fault.KIND, (TorLeave, SpareTakeover), lacks)


def make(kind: str, target: str, arguments: Mapping[str, int | float | str]) -> Fault:
    """Return the fault of that kind; ``arguments`` by field name. KeyError for an unknown kind."""
    maker: Callable[..., Fault] = FAULTS[kind]
    known = parameters(FAULTS[kind])
    return maker(target, **{name: known[name].of(value) for name, value in arguments.items()})


def settled(fault: Fault, fabric: Fabric) -> Fault:
    """Return the fault with its fabric data: a storm's flaps, a plane's switches. InputError as in ``Fault.on``."""
    return fault.on(fabric)
