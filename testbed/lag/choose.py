"""Which LAG datapath this machine gets, found out by trying each in a throw-away namespace."""

from __future__ import annotations

import os

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel import ns
from hpn.testbed.lag.datapath import LagKind
from hpn.testbed.lag.datapaths import candidates


def choose(wanted: str) -> LagKind:
    """The datapath to use: the wanted one, or for 'auto' the first that this kernel has.

    MachineError, naming the way out, when it cannot be had. Needs the right to make network namespaces.
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
