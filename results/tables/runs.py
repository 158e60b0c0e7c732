"""Table of runs: one row each, with facts and outcome. Pure.

Changes when analyses group or filter by another fact of a run.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpn.results.run.identity import DRILL, FABRIC, SETTINGS, experiment_of
from hpn.results.tables.table import Column, Kind, Row, RunFacts, Table

NO_OUTCOME = "none"
_COLUMNS = (
    Column("drill", Kind.TEXT, "its name"),
    Column("fabric", Kind.TEXT, "its name"),
    Column("architecture", Kind.TEXT, "of the fabric"),
    Column("engine", Kind.TEXT, "where the lab ran: host, qemu, uml or uml-virtual-time"),
    Column("kernel", Kind.TEXT, "release of the kernel that the lab ran on"),
    Column("datapath", Kind.TEXT, "what balanced each LAG: kernel or nft"),
    Column("profile", Kind.TEXT, "quick or full"),
    Column("host_profile", Kind.TEXT, "what hosts were like: lab or production; empty in folders of an older hpn"),
    Column("repeat", Kind.COUNT, "number among the repeats of one command, from 1; 0 of a run by itself"),
    Column("phase", Kind.COUNT, "number that the faults' moment and the seeds are drawn from; 1: as the drill has it"),
    Column("phase_ms", Kind.NUMBER, "how much later than in the drill the faults came", "ms"),
    Column("fabric_seed", Kind.COUNT, "seed of the hashes of switches and LAGs; empty where unknown"),
    Column("workload_seed", Kind.COUNT, "seed of who sends to whom; empty: the fabric's"),
    Column("attempt", Kind.COUNT, "more than 1: the attempts before it could not be trusted"),
    Column("outcome", Kind.TEXT, "pass, fail, inconclusive, or none: the run did not end or was not judged"),
    Column("reasons", Kind.TEXT, "why the run as a whole cannot be trusted, with ; between several"),
    Column("started", Kind.TEXT, "when it began, ISO 8601; empty where only a virtual clock was asked"),
    Column("duration_s", Kind.NUMBER, "how long it took", "s"),
    Column("noise_floor_ms", Kind.NUMBER, "the largest outage that was reported while nothing was wrong", "ms"),
    Column("resolution_ms", Kind.NUMBER, "the shortest time that outages are told apart by", "ms"),
    Column("hpn_version", Kind.TEXT, "version of hpn that made the run"),
    Column("hpn_commit", Kind.TEXT, "its commit; empty where it did not run from a checkout"),
    Column("experiment", Kind.TEXT, "digest of the next three: equal in runs that measured the same"),
    Column("fabric_digest", Kind.TEXT, "digest of the fabric"),
    Column("drill_digest", Kind.TEXT, "digest of the faults and when they come"),
    Column("settings_digest", Kind.TEXT, "digest of the traffic and how it is measured"),
)


def _rows(run: RunFacts) -> Iterator[Row]:
    manifest, verdict, metrics = run.manifest, run.verdict, run.metrics
    yield {
        "drill": manifest.drill,
        "fabric": manifest.fabric,
        "architecture": manifest.architecture,
        "engine": manifest.engine,
        "kernel": manifest.kernel,
        "datapath": manifest.datapath,
        "profile": manifest.profile,
        "host_profile": manifest.host_profile,
        "repeat": manifest.repeat,
        "phase": manifest.phase,
        "phase_ms": manifest.phase_ms,
        "fabric_seed": manifest.seeds.get("fabric"),
        "workload_seed": manifest.seeds.get("workload"),
        "attempt": manifest.attempt,
        "outcome": NO_OUTCOME if verdict is None else verdict.outcome.value,
        "reasons": "" if verdict is None else "; ".join(verdict.reasons),
        "started": manifest.date,
        "duration_s": manifest.duration_s,
        "noise_floor_ms": None if metrics is None else metrics.noise.noise_floor_ms,
        "resolution_ms": None if metrics is None else metrics.resolution_ms,
        "hpn_version": manifest.versions.get("hpn", ""),
        "hpn_commit": manifest.commit,
        "experiment": experiment_of(run.digests),
        "fabric_digest": run.digests.get(FABRIC, ""),
        "drill_digest": run.digests.get(DRILL, ""),
        "settings_digest": run.digests.get(SETTINGS, ""),
    }


RUNS = Table(
    "runs",
    "one row for each run: what it was and how it ended, and each setting that differs between them",
    _COLUMNS,
    _rows,
    "manifest.json",
)
