"""Registry of all metrics, by the key in a drill file. A new family is one module and one line here."""

from __future__ import annotations

from hpn.scenarios.expect import (
    buffers,
    congestion,
    goodput,
    iterations,
    job,
    job_paths,
    lab,
    located,
    loss,
    outage,
    phases,
    ports,
    run_metrics,
    transfers,
)
from hpn.scenarios.expect.metric import Metric
from hpn.testbed.entries import Registry

METRICS: Registry[Metric] = Registry(
    "metric",
    lambda metric: metric.key,
    (
        *outage.METRICS,
        *loss.METRICS,
        *congestion.METRICS,
        *goodput.METRICS,
        *transfers.METRICS,
        *phases.METRICS,
        *lab.METRICS,
        *located.METRICS,
        *ports.METRICS,
        *buffers.METRICS,
        *iterations.METRICS,
        *job.METRICS,
        *job_paths.METRICS,
        *run_metrics.METRICS,
    ),
    of=Metric,
)
