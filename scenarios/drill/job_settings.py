"""Transport settings of a job for the manifest. Pure.

Changes when a job gets another setting.
"""

from __future__ import annotations

from dataclasses import asdict

from hpn.scenarios.drill.job import JobSpec, scale_of
from hpn.testbed.fabric.model import Fabric
from hpn.traffic.jobengine.rehash import RehashPolicy
from hpn.traffic.multipath.settings import Multipath
from hpn.traffic.transport.port_recovery import PortRecovery
from hpn.traffic.transport.transports import MULTIPATH


def told(job: JobSpec, fabric: Fabric) -> dict[str, str | int | float | bool]:
    """Return the transport settings for the manifest: parameters for real links, and their scale."""
    timer, scale, second = job.transport.timer, scale_of(job, fabric), fabric.spec.second_class
    parameters = {f"congestion {key}": value for key, value in asdict(job.congestion).items() if value is not None}
    return {
        "recovery": job.recovery,
        "retry_timer": job.retry_timer,
        "ib_timeout": job.ib_timeout,
        "retry_count": job.retry_count,
        "first_wait_ms": timer.wait_ns(0) / 1e6,
        "longest_wait_ms": timer.wait_ns(timer.retries(job.retry_count)) / 1e6,
        "patience_ms": job.transport.patience_ns / 1e6,
        "window_packets": job.window_packets,
        "path_mtu": job.path_mtu,
        "congestion": job.congestion_name,
        **parameters,
        "congestion_slower": scale.slower,
        "congestion_longer": scale.longer,
        "queue_pairs": job.queue_pairs,
        "queue_pair_choice": job.choice,
        "split": job.split,
        "port_failover": job.port_failover,
        "port_use": job.port_use,
        "port_recovery": job.port_recovery is not None,
        **_recovery(job.port_recovery),
        "source_ports": job.source_ports,
        **_rehash(job.rehash),
        **({} if second is None else {"second_class_dscp": second.dscp, "second_class_share": second.share}),
        **({} if fabric.spec.switch is None else {"checkpoint_dscp": fabric.spec.switch.checkpoint_dscp}),
        **({"spray_ports": job.spray, "spray_reorder": job.reorder_packets} if job.reorder_packets else {}),
        **_multipath(job.multipath),
        "sizes": "real" if job.real_sizes else "lab",
        "rates_slower": job.slower,
    }


def _recovery(policy: PortRecovery | None) -> dict[str, str | int | float]:
    if policy is None:
        return {}
    return {
        "port_recovery_over": policy.over,
        "port_recovery_attempts": policy.attempts,
        "port_recovery_backoff": policy.backoff,
        "port_recovery_longest_ms": policy.longest_ns / 1e6,
    }


def _multipath(settings: Multipath | None) -> dict[str, str | int | float]:
    if settings is None:
        return {}
    return {
        "transport": MULTIPATH.name,
        "multipath_paths": settings.paths,
        "multipath_probe_interval_ms": settings.probe_interval_ns / 1e6,
        "multipath_skip_for_ms": settings.skip_for_ns / 1e6,
        "multipath_deny_after": settings.deny_after,
        "multipath_dark_after": settings.dark_after,
        "multipath_trimming": "no" if settings.trimmed_dscp is None else f"dscp {settings.trimmed_dscp}",
    }


def _rehash(policy: RehashPolicy | None) -> dict[str, float]:
    if policy is None:
        return {}
    rounds = {"rehash_rounds": policy.rounds, "rehash_idle_rounds": policy.idle_rounds}
    return {**rounds, "rehash_share": policy.share, "rehash_suspend_ms": policy.suspend_ns / 1e6}
