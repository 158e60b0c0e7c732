"""Paths of queue pairs on healthy fabrics, by the kernel's own hash: a second opinion on drill results.

Labs are started and queried for exact paths (``Lab.path``). No packet is sent, so neither clock nor load matters, and
this runs on the host whatever the drills run on. The resulting loads are arithmetic: each queue pair sends its share of
its NIC's total rate over its path.
"""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from hpn.scenarios.run.lab_router import LabRouter
from hpn.testbed.errors import HpnError, error_for
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.kernel.process import sandbox
from hpn.testbed.kernel.process.processes import reap_strangers
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.service import preflight
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.flows.path_search import Router, links_of
from hpn.traffic.flows.paths import hashed, in_turn, spread
from hpn.traffic.flows.patterns import flows_for

QUEUE_PAIRS = 16
"""Number per NIC; the paper speaks of tens to hundreds of connections per GPU."""

SPEC = FabricSpec(name="paths", segments=2, hosts=8, rails=1, aggs=4)
"""Fabric with 16 hosts below ToRs that are 1:1 (8 x 200G down, 4 x 400G up); the paper's are 1.067:1."""

ARCHITECTURES = ("hpn", "dual-tor-clos")


@dataclass(frozen=True, slots=True)
class PathFigures:
    """Figures of one architecture for a permutation at full rate.

    ``ratios``: per receiving NIC the load of its busier port over the other's, when hosts send through both ports in
    turn. The others are the load of the most loaded link as a share of its rate. ``hashed_worst``: with the source
    ports that a RoCE stack draws. ``turns_worst``: with both ports in turn and hashes behind them. ``chosen_worst``:
    with path selection.
    """

    architecture: str
    queue_pairs: int
    ratios: tuple[float, ...]
    hashed_worst: float
    turns_worst: float
    chosen_worst: float

    @property
    def worst_ratio(self) -> float:
        """Largest ratio over all receiving NICs."""
        return max(self.ratios)


@dataclass(frozen=True, slots=True)
class _Answer:
    """Reply of the lab's process: the figures, or the error."""

    figures: PathFigures | None = None
    error: str = ""
    exit_code: int = 0


_ANSWER = TypeAdapter(_Answer)


def measure() -> Mapping[str, PathFigures]:
    """Return figures by architecture. MachineError when no lab can run on this host."""
    return {name: _measured(SPEC.model_copy(update={"architecture": name})) for name in ARCHITECTURES}


def _measured(spec: FabricSpec) -> PathFigures:
    fabric = build(spec)
    preflight.check(fabric)
    answer = _ANSWER.validate_python(sandbox.ask(lambda: _ANSWER.dump_python(_answer(fabric), mode="json")))
    if answer.figures is None:
        raise error_for(answer.exit_code, answer.error)
    return answer.figures


def _answer(fabric: Fabric) -> _Answer:
    try:
        return _Answer(asyncio.run(_on_lab(fabric)))
    except HpnError as error:
        return _Answer(error=str(error), exit_code=error.exit_code)


async def _on_lab(fabric: Fabric) -> PathFigures:
    lab = Lab.start(fabric, lambda _event: None)
    asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, lambda: reap_strangers(lab.child_pids()))
    await lab.converged()
    found = figures(fabric, LabRouter(lab))
    lab.close()
    return found


def figures(fabric: Fabric, router: Router) -> PathFigures:
    """Return the figures of a fabric whose paths ``router`` knows."""
    flows = flows_for(fabric, "permutation", load=1.0, queue_pairs=QUEUE_PAIRS)
    hash_only, turned, chosen = hashed(flows, router), in_turn(flows, router), spread(flows, router)
    ports = port_loads(turned.flows, router)
    ratios = tuple(max(loads) / min(loads) if min(loads) else float(QUEUE_PAIRS) for loads in ports.values())
    worst = [each.worst_load for each in (hash_only, turned, chosen)]
    return PathFigures(fabric.spec.architecture, QUEUE_PAIRS, ratios, *worst)


def port_loads(flows: Sequence[FlowSpec], router: Router) -> Mapping[str, tuple[float, float]]:
    """Return the load of the links into each receiving NIC with two ports in bit/s, the busier first."""
    found: dict[str, Counter[str]] = {}
    for flow in flows:
        last = links_of(flow, flow.sport, router)[-1]
        found.setdefault(flow.dst_nic, Counter())[last] += int(flow.goodput_bps)
    loads = {nic: sorted(by_link.values(), reverse=True) for nic, by_link in found.items()}
    return {nic: (busy[0], busy[1] if len(busy) > 1 else 0.0) for nic, busy in loads.items()}
