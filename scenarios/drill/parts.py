"""Sections of a drill file as its checks take them. Pure.

Changes when a check across sections needs another of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hpn.failover.analysis.port_sampling import Sampling
from hpn.failover.faults import PlannedFault
from hpn.scenarios.drill.capture import Captures
from hpn.scenarios.drill.job import JobSpec
from hpn.scenarios.drill.locate_section import Locating
from hpn.scenarios.drill.model import Profile, Timeline, Workload
from hpn.scenarios.expect.expectation import Expectation
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.files.document import Where
from hpn.traffic.flows.flow import FlowSpec

Found = Iterator[tuple[Where, str]]


@dataclass(frozen=True, slots=True)
class Parts:
    """Readable sections of a drill file; faults and expectations come with their place in the file."""

    fabric: Fabric | None
    workload: Workload | None  # None also for a job, and for a client that runs alone
    job: JobSpec | None
    profile: Profile
    timeline: Timeline | None
    faults: Sequence[tuple[PlannedFault, Where]]
    expectations: Sequence[tuple[Expectation, Where]]
    faults_complete: bool  # no fault of the file was refused
    flows: tuple[FlowSpec, ...]  # empty when they could not be computed
    line: Callable[[Where], int]  # line of a place in the file
    sample: Sampling | None
    captures: Captures | None
    locating: Locating | None
    client: bool  # True if one is named; not alongside a job that could not be read
    soft_roce: bool  # True if every NIC has an RDMA device, for the topology or the client
