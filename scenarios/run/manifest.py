"""Manifest of a run, written before it measures anything.

Changes when another fact belongs in every result.
"""

from __future__ import annotations

import os
import platform

from hpn.results.run.manifest import Manifest
from hpn.scenarios.drill.job_settings import told
from hpn.scenarios.run.client_site import told_of
from hpn.scenarios.run.phase import phase_of
from hpn.scenarios.run.run_order import Order
from hpn.testbed import versions
from hpn.testbed.lab.lab import Lab
from hpn.testbed.routing.daemons import kinds_of


def manifest_of(order: Order, lab: Lab, started_at: str, started_ns: int) -> Manifest:
    """Return the manifest of a run that has just started.

    ``started_at`` is wall time, ``started_ns`` is CLOCK_MONOTONIC.
    """
    spec, phase = lab.fabric.spec, phase_of(order.drill.topology, order.phase)
    job, workload = order.drill.job, order.drill.workload
    return Manifest(
        drill=order.drill.name,
        fabric=spec.name,
        architecture=spec.architecture,
        command=order.command,
        engine=order.engine,
        datapath=lab.datapath,
        marker="" if lab.marking is None else lab.marking.name,
        kernel=platform.release(),
        started_at=started_at,
        started_ns=started_ns,
        accelerator=os.environ.get("HPN_ACCELERATOR", ""),
        profile=order.drill.profile.value,
        host_profile=spec.profile,
        load=workload.load if order.drill.streams else 0.0,
        tick_ms=order.drill.tick_ns / 1e6,
        job={} if job is None else told(job, lab.fabric),
        client={} if order.drill.client is None else told_of(order.drill.client),
        repeat=order.repeat,
        phase=phase.number,
        phase_ms=phase.shift_ns / 1e6,
        versions={
            "hpn": versions.HPN,
            "python": platform.python_version(),
            "mininet": versions.MININET,
            **{kind.name: kind.version() for kind in kinds_of(lab.fabric)},
        },
        seeds={"fabric": spec.seed, **({} if workload.seed is None else {"workload": workload.seed})},
        summary=order.drill.summary,
        slow=order.slow or order.slowed,
        commit=order.origin.commit,
        machine=order.origin.machine,
        doctor={item.path: f"absent: {item.why}" for item in lab.wiring.missing},
    )
