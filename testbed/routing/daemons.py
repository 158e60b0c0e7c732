"""The BGP daemons that a topology may name: ``bgp: {daemon: ...}``."""

from __future__ import annotations

from testbed.entries import Registry
from testbed.routing.bgp import DaemonKind
from testbed.routing.bird.daemon import BIRD
from testbed.routing.frr.daemon import FRR

DAEMONS: Registry[DaemonKind] = Registry("BGP daemon", lambda kind: kind.name, (BIRD, FRR), of=DaemonKind)
