"""``series.json`` and ``series.npz``: flows and ports over time, small enough to be stored for every run.

Changes when there is a series of something more. The arrays are stored as ``results.run.arrays`` describes, with the
bins of each flow in sequence. Imports numpy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter

from hpn.failover.analysis.metrics.series import MessageSeries, StreamSeries
from hpn.failover.analysis.metrics.stamps import StampSeries
from hpn.failover.analysis.port_sampling import Sampled
from hpn.failover.analysis.series import Bins, SeriesFlow
from hpn.results.run.arrays import ExpectedArray, Stored, stored, write_arrays
from hpn.results.run.files import damaged, read, write
from hpn.results.run.readings import READING, SampledPorts, ports_of, sampled_from
from hpn.traffic.streams.columns import Column, Table, whole
from hpn.traffic.transport.telemetry import ROOM

_ABOUT, _ARRAYS = "series.json", "series.npz"
_STREAMS = np.dtype([("sent", "<u4"), ("received", "<u4"), ("delay_us", "<u4")])
_ARRIVALS = np.dtype([("packets", "<u4")])
_MESSAGES = np.dtype([("size_bytes", "<u8")])
_BUSY = np.dtype([("us", "<u4")])
_RETRIES = np.dtype([("count", "<u4")])
_STAMPS = np.dtype([("took_us", "<u4"), ("wait_us", "<u4")])
_LARGEST_NS = 2**62
_LONGEST_NS = 86_400 * 10**9


@dataclass(frozen=True, eq=False)
class RunSeries:
    """Time series of a run. None: the run had no such flows, or sampling of ports was not requested."""

    streams: StreamSeries | None = None
    messages: MessageSeries | None = None
    stamps: StampSeries | None = None
    ports: Sampled | None = None


@dataclass(frozen=True, slots=True)
class _Rows:
    """Flows and bins: a row and a column each."""

    bins: Bins
    flows: tuple[SeriesFlow, ...]

    @property
    def count(self) -> int:
        """Number of records."""
        return len(self.flows) * self.bins.count


@dataclass(frozen=True, slots=True)
class _About:
    """``series.json``."""

    streams: _Rows | None
    messages: _Rows | None
    ports: SampledPorts | None
    arrivals: bool = False  # goodput of streams counts packets when they arrived; left out where it does not
    busy: bool = False  # it is stored how long messages were under way; left out where it is not
    retries: bool = False  # the same of retries
    stamps: _Rows | None = None


@dataclass(frozen=True, eq=False)
class _Columns:
    """Table of arrays of one length."""

    dtype: np.dtype[np.void]
    values: Mapping[str, Column]

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    def columns(self) -> Iterator[tuple[str, Column]]:
        """Yield every field with its values."""
        for name in self.dtype.names or ():
            yield name, self.values[name].astype(self.dtype[name], copy=False)


_FILE = TypeAdapter(_About)


def write_series(folder: Path, series: RunSeries) -> None:
    """Write both files, the second only if there are arrays. OSError when they cannot be written."""
    tables: dict[str, Table] = {}
    streams, messages, ports = series.streams, series.messages, None
    if streams is not None:
        columns = {"sent": streams.sent, "received": streams.received, "delay_us": streams.delay_us}
        tables["streams"] = _Columns(_STREAMS, {name: found.reshape(-1) for name, found in columns.items()})
    if streams is not None and streams.arrived is not None:
        tables["arrivals"] = _Columns(_ARRIVALS, {"packets": streams.arrived.reshape(-1)})
    if messages is not None:
        tables["messages"] = _Columns(_MESSAGES, {"size_bytes": messages.size_bytes.reshape(-1)})
        if messages.busy_us is not None:
            tables["busy"] = _Columns(_BUSY, {"us": messages.busy_us.reshape(-1)})
        if messages.retries is not None:
            tables["retries"] = _Columns(_RETRIES, {"count": messages.retries.reshape(-1)})
    if series.stamps is not None:
        columns = {"took_us": series.stamps.took_us, "wait_us": series.stamps.wait_us}
        tables["stamps"] = _Columns(_STAMPS, {name: found.reshape(-1) for name, found in columns.items()})
    if series.ports is not None:
        ports, tables["ports"] = ports_of(series.ports)
    about = _About(
        None if streams is None else _Rows(streams.bins, streams.flows),
        None if messages is None else _Rows(messages.bins, messages.flows),
        ports,
        arrivals="arrivals" in tables,
        busy="busy" in tables,
        retries="retries" in tables,
        stamps=None if series.stamps is None else _Rows(series.stamps.bins, series.stamps.flows),
    )
    if tables:
        write_arrays(folder / _ARRAYS, tables)
    else:
        (folder / _ARRAYS).unlink(missing_ok=True)  # of an earlier analysis
    write(folder / _ABOUT, _FILE.dump_json(about, exclude={"arrivals", "busy", "retries", "stamps"} - tables.keys()))


def read_series(folder: Path) -> RunSeries:
    """Return the series that ``write_series`` wrote.

    InputError when they are missing or damaged, MachineError when memory is too small.
    """
    about = read(folder / _ABOUT, _FILE)
    problem = next(_impossible(about), None)
    if problem is not None:
        raise damaged(folder / _ABOUT, problem)
    wanted = {}
    if about.streams is not None:
        wanted["streams"] = ExpectedArray(_STREAMS, about.streams.count)
    if about.streams is not None and about.arrivals:
        wanted["arrivals"] = ExpectedArray(_ARRIVALS, about.streams.count)
    if about.messages is not None:
        wanted["messages"] = ExpectedArray(_MESSAGES, about.messages.count)
        if about.busy:
            wanted["busy"] = ExpectedArray(_BUSY, about.messages.count)
        if about.retries:
            wanted["retries"] = ExpectedArray(_RETRIES, about.messages.count)
    if about.stamps is not None:
        wanted["stamps"] = ExpectedArray(_STAMPS, ROOM * about.stamps.count)
    if about.ports is not None:
        wanted["ports"] = ExpectedArray(READING, sum(about.ports.readings))
    tables = stored(folder / _ARRAYS, wanted) if wanted else {}
    return RunSeries(
        streams=None if about.streams is None else _streams(about.streams, tables["streams"], tables.get("arrivals")),
        messages=None if about.messages is None else _messages(about.messages, tables),
        stamps=None if about.stamps is None else _stamps(about.stamps, tables["stamps"]),
        ports=None if about.ports is None else sampled_from(about.ports, whole(tables["ports"])),
    )


def _streams(rows: _Rows, table: Stored, arrivals: Stored | None) -> StreamSeries:
    shape = len(rows.flows), rows.bins.count
    found = {name: np.asarray(column, np.uint32).reshape(shape) for name, column in table.columns()}
    came = None if arrivals is None else dict(arrivals.columns())["packets"]
    arrived = None if came is None else np.asarray(came, np.uint32).reshape(shape)
    return StreamSeries(rows.bins, rows.flows, found["sent"], found["received"], found["delay_us"], arrived)


def _messages(rows: _Rows, tables: Mapping[str, Stored]) -> MessageSeries:
    shape = len(rows.flows), rows.bins.count
    found = {name: np.asarray(column, np.uint64).reshape(shape) for name, column in tables["messages"].columns()}
    beside = {name: dict(tables[name].columns()) for name in ("busy", "retries") if name in tables}
    busy_us, retries = (
        np.asarray(beside[name][column], np.uint32).reshape(shape) if name in beside else None
        for name, column in (("busy", "us"), ("retries", "count"))
    )
    return MessageSeries(rows.bins, rows.flows, found["size_bytes"], busy_us, retries)


def _stamps(rows: _Rows, table: Stored) -> StampSeries:
    shape = len(rows.flows), ROOM, rows.bins.count
    found = {name: np.asarray(column, np.uint32).reshape(shape) for name, column in table.columns()}
    return StampSeries(rows.bins, rows.flows, found["took_us"], found["wait_us"])


def _impossible(about: _About) -> Iterator[str]:
    """Yield contradictions that no run can have; the caller needs only the first."""
    for rows in (about.streams, about.messages, about.stamps):
        if rows is None:
            continue
        bins, ids = rows.bins, [flow.flow for flow in rows.flows]
        if not (0 <= bins.start_ns < _LARGEST_NS and bins.width_ns > 0 and bins.count >= 0):
            yield "its bins are none"
        elif bins.count * bins.width_ns > _LONGEST_NS:
            yield "it lasted longer than a day"
        if len(set(ids)) != len(ids):
            yield "two flows have one id"
    if about.ports is not None and not about.ports.adds_up(sum(about.ports.readings)):
        yield "its readings of ports do not add up"
