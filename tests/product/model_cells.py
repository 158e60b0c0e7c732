"""The drills that the flow-level model is held against: eleven topologies, three faults, streams and a job each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_STREAMS = """\
workload: {{pattern: permutation, queue_pairs: 4, load: {load}, ib_timeout: 20}}
sample: {{queues: 100 ms, ports: switches}}
"""
_JOB = """\
job:
  collective: {{kind: all-reduce, algorithm: ring, size: 2 MB, slices: 4}}
  gpus: 1
  hosts: 4
  order: interleaved
  queue_pairs: 2
  ib_timeout: 16
"""
_DRILL = """\
drill: {name}
summary: {fault} on {topology}, for the calibration of the flow-level model
description: made by tests/product/model_cells.py
topology: {{preset: {preset}, {more}scale: {scale}}}
{traffic}profile: quick
timeline:
  healthy: 1500 ms
  faults:
    - {{id: fault, fault: {kind}, target: {target}, at: 1500 ms, for: 2 s}}
  settle: {settle}
expect:
  - state_restored: yes
"""


@dataclass(frozen=True, slots=True)
class _Topology:
    """``agg``: the Agg that crashes; empty in direct networks, where a link between two ToRs is cut.

    ``load`` is what paths of a permutation bear that share links; ``ports`` those of a NIC.
    """

    name: str
    preset: str
    more: str = ""
    agg: str = "p0.a0.0"
    ports: int = 2
    load: str = "40 %"

    @property
    def targets(self) -> Mapping[str, str]:
        """What each fault hits."""
        above = {"agg-crash": self.agg} if self.agg else {"tor-link-down": "p0.s0.t0.0-p0.s1.t0.0"}
        return {"link-down": "p0.s0.h0.r0.0", "tor-crash": "p0.s0.t0.0", **above}


TOPOLOGIES = (
    _Topology("hpn", "tiny"),
    _Topology("four-planes", "tiny-four-planes"),
    _Topology("dual-tor-clos", "tiny", "architecture: dual-tor-clos, "),
    _Topology("single-tor", "tiny", "architecture: single-tor, ", ports=1),
    _Topology("dcn-plus", "tiny-dcn-plus"),
    _Topology("rail-only", "tiny-rail-only", agg="p0.r0.a0", ports=1),
    _Topology("fat-tree", "tiny-fat-tree", ports=1, load="10 %"),
    _Topology("torus", "tiny-torus", agg="", ports=1, load="10 %"),
    _Topology("full-mesh", "tiny-ub-mesh", agg="", ports=1, load="10 %"),
    _Topology("dragonfly", "tiny-dragonfly", agg="", ports=1, load="10 %"),
    _Topology("slim-fly", "tiny-slim-fly", agg="", ports=1, load="10 %"),
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One drill of the calibration. ``kind``: 'streams', 'full' (more than one port carries) or 'job'."""

    topology: str
    fault: str
    kind: str
    drill: str
    ports: int  # of a NIC

    @property
    def name(self) -> str:
        """Of its drill."""
        return f"model-{self.topology}-{self.fault}-{self.kind}"

    @property
    def taken_from(self) -> tuple[int, ...]:
        """Phases whose runs give the model its times."""
        return (1, 2, 4, 5, 6) if self._is_cut_off else (1, 2)

    @property
    def held_out(self) -> tuple[int, ...]:
        """Phases whose runs the model is held against, and that nothing is taken from."""
        return (3, 7, 8, 9, 10, 11) if self._is_cut_off else (3, 4)

    @property
    def _is_cut_off(self) -> bool:
        """A NIC has no other way: how long it is cut off depends on the phase, and two runs say little of that."""
        return self.ports == 1 and self.fault in ("link-down", "tor-crash") and self.kind == "streams"


def cells() -> Iterator[Cell]:
    """All of them."""
    for topology in TOPOLOGIES:
        for fault in topology.targets:
            full = fault == "link-down" and topology.agg  # links between ToRs cannot carry that load
            kinds = ("streams", "full", "job") if full else ("streams", "job")
            yield from (_cell(topology, fault, kind) for kind in kinds)


def _cell(topology: _Topology, fault: str, kind: str) -> Cell:
    load = {"streams": topology.load, "full": "70 %"}
    traffic = _JOB.format() if kind == "job" else _STREAMS.format(load=load[kind])
    text = _DRILL.format(
        name=f"model-{topology.name}-{fault}-{kind}",
        topology=topology.name,
        preset=topology.preset,
        more=topology.more,
        scale={"streams": 1000, "full": 4000, "job": 2000}[kind],
        traffic=traffic,
        fault=fault,
        kind="link-down" if fault == "tor-link-down" else fault,
        target=topology.targets[fault],
        settle="4 s" if fault == "link-down" else "5 s",
    )
    return Cell(topology.name, fault, kind, text, topology.ports)
