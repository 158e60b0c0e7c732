"""Bench of the flow-level model: a pod solved, a failed port, eight pods and their memory. Imports numpy."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from statistics import median

from hpn.results.text.figure import Figure
from hpn.scenarios.selfcheck.bench.elephants import Measured
from hpn.testbed.fabric.presets import PRESETS
from hpn.traffic.fluid.flows import drawn, permutation
from hpn.traffic.fluid.pace import Paced, after, healthy
from hpn.traffic.fluid.pods import Pods
from hpn.traffic.fluid.routes import FailedParts

_CLOS = "dual-tor-clos"
_QUEUE_PAIRS = 16
_EVENTS = 9
_WIDE = {"pods": 8, "cores": 8}


def figures(found: Measured) -> Iterator[Figure]:
    """Yield the figures of ``measured``."""
    pod = f"15,360 GPUs, {found['flows']:,.0f} queue pairs, permutation on each rail"
    yield Figure("model: a pod solved", found["pod_s"], "s", 1.0, note=f"{pod}; the slower of HPN and Clos")
    yield Figure("model: a dead port solved", found["event_ms"], "ms", 20, note="median of 9 ports; the slower")
    eight = f"122,880 GPUs, {found['wide_flows']:,.0f} queue pairs"
    yield Figure("model: eight pods solved", found["wide_s"], "s", 10, note=eight)
    yield Figure("model: memory of eight pods", found["wide_mb"], "MB", 1000, note="largest resident size")


def measured() -> Measured:
    """Return times and memory. Run it in a separate process."""
    solved = [_solved(Pods.of(PRESETS["pod"].spec.model_copy(update=of))) for of in ({}, {"architecture": _CLOS})]
    events_s = [_events_s(well) for _, well in solved]
    pod_s, flows = max(took for took, _ in solved), len(solved[0][1].flows)
    del solved
    wide_s, wide = _solved(Pods.of(PRESETS["pods"].spec.model_copy(update=_WIDE)))
    return {
        "pod_s": pod_s,
        "flows": float(flows),
        "event_ms": max(events_s) * 1000,
        "wide_s": wide_s,
        "wide_flows": float(len(wide.flows)),
        "wide_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _solved(pods: Pods) -> tuple[float, Paced]:
    """Return the time for flows, paths and rates of a permutation, and the result."""
    before = time.monotonic()
    well = healthy(pods, drawn(pods, permutation(pods, 1), _QUEUE_PAIRS, 1, "even"))
    return time.monotonic() - before, well


def _events_s(well: Paced) -> float:
    took = []
    for nic in range(0, well.pods.gpus, well.pods.gpus // _EVENTS):
        before = time.monotonic()
        after(well, FailedParts.nothing(well.pods).with_access(nic, 0, well.pods))
        took.append(time.monotonic() - before)
    return median(took)
