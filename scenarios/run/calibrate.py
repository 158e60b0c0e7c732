"""Calibrate this machine: run the healthy baseline at rising load until the measurement is no longer clean.

The result is stored in the user's state directory. Drills that need a higher rate are refused before they start.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from hpn.results.judge.verdict import Outcome
from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.workload import flows_of
from hpn.scenarios.run import session
from hpn.scenarios.run.run_order import Order
from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.lab.service import registry

LOADS = (0.1, 0.2, 0.4, 0.6, 0.8)
_HEALTHY_NS = 2_000_000_000
_SETTLE_NS = 500_000_000
_FILE = "calibration.json"


@dataclass(frozen=True, slots=True)
class CalibrationLoad:
    """One load of the calibration.

    ``clean``: the run was fit to be judged. Rates are in packets per second over all flows.
    """

    load: float
    packets_per_s: float
    clean: bool
    noise_floor_ms: float
    send_gap_ms: float
    reason: str


@dataclass(frozen=True, slots=True)
class Calibration:
    """Highest clean rate, 0 if no load was clean, and the noise floor at that rate."""

    packets_per_s: float
    noise_floor_ms: float
    send_gap_ms: float


def calibrate() -> Iterator[CalibrationLoad]:
    """Try the loads in order and stop after the first that is not clean; about 5 s each."""
    drill = catalogue.load("healthy-baseline")
    for load in LOADS:
        step = _try(_at_load(drill, load))
        yield step
        if not step.clean:
            return


def result(steps: list[CalibrationLoad]) -> Calibration:
    """Return the calibration that the steps amount to."""
    clean = [step for step in steps if step.clean]
    if not clean:
        return Calibration(0.0, 0.0, 0.0)
    best = clean[-1]
    return Calibration(best.packets_per_s, best.noise_floor_ms, best.send_gap_ms)


def save(calibration: Calibration) -> None:
    """Store the calibration for this user on this machine."""
    (registry.base_directory() / _FILE).write_text(json.dumps(asdict(calibration)))


def load() -> Calibration | None:
    """Return the last calibration, or None when there is none or it is damaged."""
    try:
        return Calibration(**json.loads((registry.base_directory() / _FILE).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def check(drill: Drill, calibration: Calibration | None) -> None:
    """Raise MachineError, with the load that would fit, when the drill sends more packets than were clean here.

    A job has no required rate: it waits for acknowledgements, and longer on a slow machine.
    """
    if drill.job is not None:
        return
    wanted = packets_per_s(drill)
    if calibration is None or calibration.packets_per_s <= 0 or wanted <= calibration.packets_per_s * 1.02:
        return
    fits = int(drill.workload.load * 100 * calibration.packets_per_s / wanted)
    raise MachineError(
        f"drill {drill.name} sends {wanted:,.0f} packets/s but this machine was calibrated for"
        f" {calibration.packets_per_s:,.0f}; set workload.load to {fits} %, take a smaller preset,"
        " or calibrate again: hpn doctor --calibrate"
    )


def packets_per_s(drill: Drill) -> float:
    """Return the packets per second that all flows of a drill's workload send."""
    return sum(flow.rate_pps for flow in flows_of(drill.workload, build(drill.topology)))


def _at_load(drill: Drill, load: float) -> Drill:
    timeline = replace(drill.timeline, healthy_ns=_HEALTHY_NS, settle_ns=_SETTLE_NS)
    return replace(drill, workload=replace(drill.workload, load=load), timeline=timeline)


def _try(drill: Drill) -> CalibrationLoad:
    with tempfile.TemporaryDirectory() as out:
        folder = session.run(Order(drill, Path(out) / "run", ("doctor", "--calibrate")), lambda _news: None)
        metrics, verdict = folder.metrics(), folder.verdict()
    lost = sum(flow.lost for flow in metrics.flows)
    reason = "; ".join(verdict.reasons) or (f"{lost} packets lost" if lost else "")
    return CalibrationLoad(
        load=drill.workload.load,
        packets_per_s=packets_per_s(drill),
        clean=verdict.outcome is Outcome.PASS and not lost,
        noise_floor_ms=metrics.noise.noise_floor_ms,
        send_gap_ms=metrics.noise.send_gap_max_ms,
        reason=reason,
    )
