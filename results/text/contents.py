"""Contents of a run folder, part by part, and its missing parts, for the terminal. Pure.

Changes when a run folder has another part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from hpn.results.run.reading import Run
from hpn.results.run.series import RunSeries
from hpn.testbed.files.document import shorten

_WIDE = 160


def rows(run: Run) -> list[dict[str, str]]:
    """Return a row for each part that is or should be there: name, contents, and the reason if it is missing."""
    missing = [{"part": gap.part, "holds": "", "gap": shorten(gap.why, _WIDE, quoted=False)} for gap in run.gaps]
    return [*({"part": part, "holds": holds, "gap": ""} for part, holds in _parts(run)), *missing]


def _parts(run: Run) -> Iterator[tuple[str, str]]:
    yield (
        "manifest",
        f"format {run.manifest.format}, hpn {shorten(run.manifest.versions.get('hpn', '?'), quoted=False)}",
    )
    if run.drill is not None:
        faults, expects = len(run.drill.faults), len(run.drill.expects)
        yield "drill", f"{shorten(run.drill.name, quoted=False)}: {faults} faults, {expects} expectations"
    if run.fabric is not None:
        nodes, links, nics = len(run.fabric.nodes), len(run.fabric.links), len(run.fabric.nics)
        yield "fabric", f"{nodes} nodes, {links} links, {nics} NICs, {run.fabric.planes} planes"
    if run.metrics is not None:
        yield "metrics", f"{len(run.metrics.flows)} flows, {len(run.metrics.edges)} edges"
    if run.verdict is not None:
        yield "verdict", run.verdict.outcome.value
    if run.series is not None:
        yield "series", _series(run.series) or "nothing sent and no port sampled"
    if run.paths is not None:
        flows = len({path.flow for path in run.paths})
        yield "paths", f"{flows} flows, {len(run.paths) - flows} changes"
    if run.devices is not None:
        yield "devices", f"{len(run.devices)} NICs"
    listed: dict[str, Sequence[object] | None] = {
        "events": run.events,
        "host": run.host,
        "queue pairs": run.queue_pairs,
        "workers": None if run.workers is None else run.workers.workers,
        "spans": run.spans,
        "client spans": run.client_spans,
    }
    for part, items in listed.items():
        if items is not None:
            yield part, f"{len(items)}"


def _series(series: RunSeries) -> str:
    found = []
    for what, of in (("streams", series.streams), ("queue pairs", series.messages)):
        if of is not None:
            found.append(f"{len(of.flows)} {what} in {of.bins.count} bins of {of.bins.width_ns / 1e6:g} ms")
    if series.ports is not None:
        tiers = Counter(each.port.tier for each in series.ports.series)
        found += [f"{count} ports {shorten(tier, quoted=False)}" for tier, count in tiers.items()]
    return ", ".join(found)
