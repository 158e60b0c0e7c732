"""Charts over a run's time: goodput by plane, queues of ports, load of the machine. Imports numpy.

Changes when another series of a run folder is drawn. All share one x axis, seconds since the traffic began, so that
they are zoomed together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from hpn.failover.analysis.hostload import HostMoment
from hpn.failover.analysis.metrics.series import MessageSeries, StreamSeries
from hpn.failover.analysis.paths import PathAt
from hpn.failover.analysis.port_sampling import Sampled
from hpn.failover.analysis.series import Bins
from hpn.results.page.axis import number_text
from hpn.results.page.chart import MOST_POINTS, Chart, Line, Moment, thinned
from hpn.results.run.readings import READING
from hpn.results.text.values import scale

X_LABEL = "s since the traffic began"
GROUP = "run"
HOST = "host"
"""Chart of the machine's load, which is no effect of a fault."""
_MOST_PORTS = 4
_NO_PLANE = -1
_MOST_PLANES = 16
_LATEST_NS = 2**62

Floats = npt.NDArray[np.float64]


def goodput_chart(streams: StreamSeries, paths: Sequence[PathAt] | None, moments: Sequence[Moment]) -> Chart | None:
    """Return the payload that arrived, by plane and time as goodput counts it; None if no flow sent."""
    bins = streams.bins
    if not bins.count or not streams.flows:
        return None
    by_plane = goodput_bps(streams, paths or ())
    when = "by when it was sent" if streams.arrived is None else "when it arrived"
    title = f"Goodput{' by plane' if len(by_plane) > 1 else ''}: payload that arrived, {when}"
    return _chart("goodput", title, bins, by_plane, moments)


def goodput_bps(streams: StreamSeries, paths: Sequence[PathAt]) -> dict[str, Floats]:
    """Return the payload that arrived in each bin in bit/s: of all flows and, if there are several planes, by plane."""
    packet_bytes = np.array([flow.packet_bytes for flow in streams.flows], np.float64)
    bps = streams.goodput_packets * packet_bytes[:, None] * 8e9 / streams.bins.width_ns
    by_plane = {"all": bps.sum(axis=0)}
    there = sorted({path.plane for path in paths if path.plane is not None})
    if 1 < len(there) <= _MOST_PLANES:
        planes = _planes(streams.bins, [flow.flow for flow in streams.flows], paths, there)
        by_plane |= {f"plane {plane}": np.where(planes == at, bps, 0.0).sum(axis=0) for at, plane in enumerate(there)}
    return by_plane


def messages_chart(messages: MessageSeries, moments: Sequence[Moment]) -> Chart | None:
    """Return the payload of a job's messages, each spread evenly over its duration; None if there was none."""
    bins = messages.bins
    if not bins.count or not messages.flows:
        return None
    all_ = messages.size_bytes.sum(axis=0) * 8e9 / bins.width_ns
    return _chart(
        "messages", "Goodput of the job: payload, each message spread over its time", bins, {"all": all_}, moments
    )


def queues_chart(sampled: Sampled, begin_ns: int, end_ns: int | None, moments: Sequence[Moment]) -> Chart | None:
    """Return the longest port queues, in ms at the port's rate; None if all were always empty.

    Ports are read one after another, so a point is a port's maximum in an interval common to all ports.
    """
    courses = []
    for series in sampled.series:
        rows = np.frombuffer(series.packed(), READING)
        rows = rows[(rows["at_ns"] <= (_LATEST_NS if end_ns is None else end_ns)) & (rows["rate_bps"] > 0)]
        waits_ms = rows["backlog_bytes"] * 8e3 / rows["rate_bps"]
        if len(rows) and waits_ms.max() > 0:
            courses.append((float(waits_ms.max()), series.port.port, rows["at_ns"].astype(np.int64), waits_ms))
    courses.sort(key=lambda each: (-each[0], each[1]))
    if not courses:
        return None
    shown = courses[:_MOST_PORTS]
    first_ns = min(int(at_ns.min()) for _, _, at_ns, _ in shown)
    last_ns = max(int(at_ns.max()) for _, _, at_ns, _ in shown)
    width_ns = max(sampled.sampling.period_ns, -(-(last_ns - first_ns + 1) // MOST_POINTS))
    count = (last_ns - first_ns) // width_ns + 1
    lines = [Line(port, _most((at_ns - first_ns) // width_ns, waits_ms, count)) for _, port, at_ns, waits_ms in shown]
    which = f"the {len(shown)} longest" if len(shown) > 1 else "the only one that was ever filled"
    title = f"Queues of {len(sampled.series)} ports: {which}; the most in {number_text(width_ns / 1e6)} ms"
    xs = [(first_ns - begin_ns + at * width_ns) / 1e9 for at in range(count)]
    return Chart("queues", title, X_LABEL, "ms", xs, tuple(lines), tuple(moments), group=GROUP)


def _most(places: npt.NDArray[np.int64], values: Floats, count: int) -> list[float | None]:
    """Return the largest value at each place; None where there is none."""
    found = np.full(count, -1.0)
    np.maximum.at(found, places, values)
    return [None if value < 0 else value for value in found.tolist()]


def host_chart(course: Sequence[HostMoment], begin_ns: int, moments: Sequence[Moment]) -> Chart | None:
    """Return the machine's load over time; None if it was not sampled."""
    if len(course) < 2:
        return None
    xs = [(each.at_ns - begin_ns) / 1e9 for each in course]
    lines = (
        Line("idle", [each.idle_pct for each in course]),
        Line("other processes", [each.others_pct for each in course]),
        Line("our processes wait for a CPU", [each.run_delay_pct for each in course]),
    )
    xs_, thin = thinned(xs, lines)
    return Chart(HOST, "CPU time, all CPUs together", X_LABEL, "%", xs_, thin, tuple(moments), group=GROUP)


def _chart(id_: str, title: str, bins: Bins, lines: dict[str, Floats], moments: Sequence[Moment]) -> Chart:
    whole = max(bins.count - 1, 1)  # the run ends within the last bin, which is incomplete
    factor, unit = scale(max(float(values[:whole].max(initial=0.0)) for values in lines.values()), "bit/s")
    xs, thin = thinned(
        [at * bins.width_ns / 1e9 for at in range(whole)],
        [Line(name, (values[:whole] / factor).tolist()) for name, values in lines.items()],
    )
    return Chart(id_, title, X_LABEL, unit, xs, thin, tuple(moments), group=GROUP)


def _planes(bins: Bins, flows: Sequence[int], paths: Sequence[PathAt], there: Sequence[int]) -> npt.NDArray[np.int8]:
    """Return, for each flow and bin, the index in ``there`` of the flow's plane, from its paths."""
    planes = np.full((len(flows), bins.count), _NO_PLANE, np.int8)
    row = {flow: at for at, flow in enumerate(flows)}
    for path in _in_order(paths):
        if path.flow in row:
            first = max((path.at_ns - bins.start_ns) // bins.width_ns, 0)
            planes[row[path.flow], first:] = _NO_PLANE if path.plane is None else there.index(path.plane)
    return planes


def _in_order(paths: Sequence[PathAt]) -> Iterator[PathAt]:
    return iter(sorted(paths, key=lambda path: path.at_ns))
