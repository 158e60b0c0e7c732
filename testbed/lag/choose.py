"""Choice of this machine's LAG datapath, by trying each in a throw-away namespace."""

from __future__ import annotations

import os

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel import ns
from hpn.testbed.lag.datapath import LagKind
from hpn.testbed.lag.datapaths import candidates


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
