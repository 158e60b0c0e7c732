"""Location of faults by what end hosts saw in a stored run. Imports numpy.

Changes when a run folder shows more of what end hosts saw.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from hpn.failover.analysis.series import Bins, SeriesFlow
from hpn.failover.locating.answer import Located, located_by
from hpn.failover.locating.known import Injected, known_paths
from hpn.failover.locating.observed import Observed, observed
from hpn.failover.locating.recorded import Recorded
from hpn.failover.locating.rerouted import changes_of
from hpn.results.run.drill import AskedDrill, AskedFault
from hpn.results.run.folder import RunFolder
from hpn.results.run.series import RunSeries
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric, LinkKind
from hpn.traffic.flows.framing import wire_bytes
from hpn.traffic.job.placement import place

_LOSS = "loss"
"""Source that counts packets of streams, as their load does."""


def located_in(run: RunFolder, method: str, source: str | None = None) -> tuple[Located, float]:
    """Return what a method makes of a source of a run, and the streams' load on the busiest access link (0 .. 1).

    ``source`` None: losses of streams, or retransmissions of a job.

    InputError where the run has no records of that source, or where the paths of its flows are unknown.
    """
    recorded = recorded_in(run)
    source = source or recorded.usual_source
    try:
        found = located_by(recorded, source, method)
    except InputError as error:
        raise InputError(f"{run.path}: {error}") from error
    if not found.seen.suspects.paths:
        raise InputError(f"{run.path}: paths.jsonl has no links, so the paths of its flows are unknown")
    seen = found.seen if source == _LOSS else None
    return replace(found, doubts=doubts_of(run)), _load(run.fabric(), recorded, seen)


def recorded_in(run: RunFolder) -> Recorded:
    """Return everything of a run that a source may use. InputError where its files are missing or damaged."""
    fabric, drill, series = run.fabric(), run.drill(), run.series()
    flows, bins = _flows(run, series)
    receivers = {flow.flow: flow.dst_nic for flow in flows}
    paths = run.paths() if os.path.isfile(run.path / "paths.jsonl") else ()
    for name in {link for path in paths for link in path.links} | _sampled(series):
        fabric.link(name)  # who edited the folder is told of a link that is not there
    known = known_paths(
        fabric,
        {flow.flow: flow.src_nic for flow in flows},
        paths,
        [each.edge for each in run.metrics().edges],
        injected(drill.faults),
        bins.end_ns,
        changes_of(fabric, run.events(), receivers),
    )
    return Recorded(
        known=known,
        bins=bins,
        streams=series.streams,
        messages=series.messages,
        stamps=series.stamps,
        spans=run.spans() if drill.job else (),
        hosts=_hosts(fabric, drill),
        ports=series.ports,
    )


def doubts_of(run: RunFolder) -> tuple[str, ...]:
    """Return why a run cannot be trusted, and so nobody it accuses: that its machine was starved, for one."""
    return run.verdict().reasons if run.has_verdict else ()


def injected(faults: Iterable[AskedFault]) -> dict[str, Injected]:
    """Return what a drill's faults are in words, and their direction, by id."""
    return {each.id: Injected(f"{each.kind} {each.target}", each.direction) for each in faults}


def _sampled(series: RunSeries) -> set[str]:
    return set() if series.ports is None else {each.port.link for each in series.ports.series}


def _flows(run: RunFolder, series: RunSeries) -> tuple[Sequence[SeriesFlow], Bins]:
    """Return the flows of a run's streams, or of its job, and its bins."""
    for each in (series.streams, series.messages):
        if each is not None:
            return each.flows, each.bins
    raise InputError(
        f"{run.path}: neither streams nor a job's messages were recorded, so nothing tells where a fault is"
    )


def _hosts(fabric: Fabric, drill: AskedDrill) -> Mapping[int, str] | None:
    """Return the host of each rank of the job as it began; None without a job."""
    asked = drill.asks.get("job")
    if not drill.job or not isinstance(asked, dict):
        return None
    seed = asked.get("seed")
    places = place(
        fabric,
        hosts=_count(asked, "hosts"),
        rails=_count(asked, "gpus"),
        segments=_count(asked, "segments"),
        order=str(asked.get("order", "contiguous")),
        seed=seed if isinstance(seed, int) else fabric.spec.seed,
    )
    return {rank: found.host for rank, found in enumerate(places)}


def _count(asked: Mapping[str, JsonValue], key: str) -> int | None:
    found = asked.get(key)
    return found if isinstance(found, int) else None


def _load(fabric: Fabric, run: Recorded, losses: Observed | None) -> float:
    """Return the share of its rate that streams took of the access link most loaded by its own NIC; 0 without.

    ``losses``: packets by path, if they are counted already.
    """
    if run.streams is None:
        return 0.0
    carried = {link.name: 0 for link in fabric.links if link.kind is LinkKind.ACCESS}
    seen = losses or observed(run.known, run.streams)
    for path, packets in zip(seen.suspects.paths, seen.sent[:, -1].tolist(), strict=True):
        carried[path[0][0]] += packets
    bits, seconds = 8 * wire_bytes(run.streams.flows[0].packet_bytes), max(run.bins.end_ns - run.bins.start_ns, 1) / 1e9
    return max(packets * bits / seconds / fabric.link(name).rate_bps for name, packets in carried.items())
