"""Software faults of a ToR that only a stack cannot survive. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hpn.failover.faults.actions import Action, FaultActions
from hpn.failover.faults.base import MS, TargetKind
from hpn.failover.faults.fields import Unit, parameter
from hpn.failover.faults.node import SwitchFault


@dataclass(frozen=True, slots=True)
class StackUpgrade(SwitchFault):
    """A ToR is reloaded with another software version: dead for ``reload``, then back with empty state.

    Hosts and Aggs: ``TorCrash``, then its repair. Its stack, if it is in one: the two no longer fit together, and
    the one that booted later shuts itself down (``testbed.lab.stack``). Restored by a reload with the version it had.
    """

    KIND: ClassVar[str] = "stack-upgrade"
    TARGET: ClassVar[TargetKind] = TargetKind.TOR
    STEADY: ClassVar[bool] = False

    version: int = parameter("version", Unit.COUNT, 0, 9999)
    reload_ns: int = parameter("reload", Unit.DURATION, 10 * MS, 600_000 * MS)

    def rate_left(self) -> float | None:
        """Return None: the stack decides which ToRs go on."""
        return None

    def act(self, actions: FaultActions) -> Action:
        """Boot the ToR with that version."""
        return actions.reload(actions.fabric.node(self.switch).name, str(self.version), self.reload_ns)
