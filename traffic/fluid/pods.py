"""Pods and tens of pods by arithmetic: a link is a number, without an object. PURE.

NICs are numbered rail by rail, in a rail pod by pod, segment by segment, host by host. So NICs of one ToR set are
neighbours, and so are sets of one rail. Directed links are in blocks: access up, access down, fabric up, fabric down,
core up, core down, and the peer links of stacks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.spec import FabricSpec
from hpn.traffic.fluid.solve import Floats

Numbers = npt.NDArray[np.int64]

ARITHMETIC = ("hpn", "dual-tor-clos", "stacked-dual-tor", "single-tor")
"""Supported architectures: every ToR set serves one rail and all Aggs of a plane."""
_BYTES_A_LINK = 8 * 10  # capacity, shares, counts, sums during the computation
_BYTES_A_HOP = 4 + 8 * 3  # of a flow: path, and the solver's copies during the computation
_BYTES_A_FLOW = 8 * 25  # hash choices, and healthy and failed state side by side


@dataclass(frozen=True)
class Pods:
    """Sizes of a fabric of one architecture, and its numbering; rates are real ones in bit/s, not scaled."""

    architecture: str
    pods: int
    segments: int  # per pod
    hosts: int  # per segment; spare ones are left out
    rails: int
    aggs: int  # per plane and pod
    cores: int  # per plane
    tors: int  # of a set, one for each port of a NIC
    planes: int
    port_bps: float
    uplink_bps: float
    core_bps: float

    @classmethod
    def of(cls, spec: FabricSpec) -> Pods:
        """Return the arithmetic form of a topology. InputError if it is not supported."""
        problems = []
        if spec.architecture not in ARITHMETIC:
            problems.append(f"{spec.architecture} cannot be reckoned by arithmetic; {', '.join(ARITHMETIC)} can")
        if spec.uplinks != 1 or spec.core_groups != 1:
            problems.append("sizes by arithmetic know one uplink to each Agg and one group of Cores")
        if spec.pods > 1 and spec.cores == 0:
            problems.append(f"{spec.pods} pods do not reach each other; give cores")
        if spec.planes > 1 and spec.nic_ports not in (None, spec.planes):
            problems.append("sizes by arithmetic know one ToR of a NIC in each plane; leave nic_ports out")
        if spec.aggs == 0:
            problems.append("there are no Aggs; give aggs")
        if problems:
            raise InputError(problems)
        least = {"pods": 1, "segments": 1, "hosts": 1, "spare_hosts": 0, "rails": 1, "aggs": 1, "cores": 0, "scale": 1}
        nic = (smallest := build(FabricSpec(**{**_own(spec), **least}))).nics[0]
        return cls(
            spec.architecture,
            spec.pods,
            spec.segments,
            spec.hosts,
            spec.rails,
            spec.aggs,
            spec.cores,
            len(nic.links),
            smallest.planes,
            float(nic.links[0].rate_bps),
            float(spec.uplink_rate),
            float(spec.core_rate),
        )

    @property
    def gpus(self) -> int:
        """Number of GPUs, one per NIC."""
        return self.rails * self.nics_of_a_rail

    @property
    def nics_of_a_rail(self) -> int:
        """Number of NICs of a rail, one per host."""
        return self.pods * self.segments * self.hosts

    @property
    def sets(self) -> int:
        """Number of ToR sets, one for each segment and rail."""
        return self.rails * self.pods * self.segments

    @property
    def stacked(self) -> bool:
        """True if the ToRs of a set forward to each other what one of them cannot deliver."""
        return self.architecture == "stacked-dual-tor"

    @property
    def blocks(self) -> tuple[int, int, int, int, int, int, int, int]:
        """Starts of the blocks of directed links, in the order of the module docstring, and the end of the last."""
        access, fabric = self.gpus * self.tors, self.sets * self.tors * self.aggs
        core, peer = self.pods * self.planes * self.aggs * self.cores, self.sets * 2 * self.stacked
        sizes = (access, access, fabric, fabric, core, core, peer)
        starts = [sum(sizes[:at]) for at in range(8)]
        return (starts[0], starts[1], starts[2], starts[3], starts[4], starts[5], starts[6], starts[7])

    @property
    def links(self) -> int:
        """Number of directed links."""
        return self.blocks[7]

    @property
    def hops(self) -> int:
        """Links of the longest path."""
        return 4 + 2 * (self.pods > 1) + self.stacked

    def capacity(self) -> Floats:
        """Return the capacity of each directed link, bit/s."""
        _, _, fabric, _, core, _, peer, end = self.blocks
        found = np.full(end, self.port_bps)
        found[fabric:core] = self.uplink_bps
        found[core:peer] = self.core_bps
        found[peer:] = self.uplink_bps
        return found

    def nics(self, hosts: Numbers, rail: int) -> Numbers:
        """Return the NIC of a rail at each of these hosts, counted over all pods."""
        return rail * self.nics_of_a_rail + hosts

    def set_of(self, nic: Numbers) -> Numbers:
        """Return the ToR set of NICs."""
        return nic // self.hosts

    def pod_of(self, tor_set: Numbers) -> Numbers:
        """Return the pod of ToR sets."""
        return tor_set % (self.pods * self.segments) // self.segments

    def rail_of(self, nic: Numbers) -> Numbers:
        """Return the rail of NICs."""
        return nic // self.nics_of_a_rail

    def access(self, nic: Numbers, port: Numbers, *, down: bool = False) -> Numbers:
        """Return directed links between NICs and their ToRs."""
        return self.blocks[down] + nic * self.tors + port

    def fabric(self, tor: Numbers, agg: Numbers, *, down: bool = False) -> Numbers:
        """Return directed links between ToRs and Aggs of their plane; ToR k of a set is number ``set * tors + k``."""
        return self.blocks[2 + down] + tor * self.aggs + agg

    def core(self, pod: Numbers, plane: Numbers, agg: Numbers, core: Numbers, *, down: bool = False) -> Numbers:
        """Return directed links between the Aggs of a pod and Cores of their plane."""
        return self.blocks[4 + down] + ((pod * self.planes + plane) * self.aggs + agg) * self.cores + core

    def peer(self, tor: Numbers) -> Numbers:
        """Return the link from a stacked ToR to the other of its set."""
        return self.blocks[6] + tor

    def plane_of_port(self, port: Numbers) -> Numbers:
        """Return the plane of a NIC's port."""
        return port % self.planes

    def memory_bytes(self, flows: int) -> int:
        """Return the peak memory of computing ``flows`` flows, bytes; the process itself takes some 60 MB."""
        return flows * (self.hops * _BYTES_A_HOP + _BYTES_A_FLOW) + self.links * _BYTES_A_LINK


def _own(spec: FabricSpec) -> dict[str, object]:
    """Return a topology's rates and architecture."""
    keys = ("architecture", "planes", "nic_ports", "nic_port_rate", "uplink_rate", "core_rate", "switch_capacity")
    return {key: getattr(spec, key) for key in keys}
