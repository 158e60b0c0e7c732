"""The BGP daemons that a topology may name: ``bgp: {daemon: ...}``."""

from __future__ import annotations

from hpn.testbed.entries import Registry
from hpn.testbed.routing.bgp import DaemonKind
from hpn.testbed.routing.bird.daemon import BIRD
from hpn.testbed.routing.frr.daemon import FRR

DAEMONS: Registry[DaemonKind] = Registry("BGP daemon", lambda kind: kind.name, (BIRD, FRR), of=DaemonKind)
