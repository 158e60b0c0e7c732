"""Reader of a subset of PARAM's basic communication trace. PURE.

The format is a JSON list that every rank processes in order (facebookresearch/param, train/comms/pt, its trace replay).
``comms`` names a collective; ``in_msg_size`` and ``out_msg_size`` count elements of ``dtype``. ``global_ranks`` (or
``pg_id`` of an earlier ``init`` entry) are its ranks; ``startTime_ns`` is its start. A call whose ``req`` appears in a
later ``wait`` runs concurrently with the next entries; any other is waited for. ``send`` and ``recv`` have ``src_rank``
and ``dst_rank``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hpn.testbed.errors import InputError
from hpn.traffic.job.jsonvalues import json_values
from hpn.traffic.job.trace import Call, ReceiveCall, SendCall, Step, TraceWork, Wait

_KINDS = {
    "all_reduce": "all-reduce",
    "all_gather": "all-gather",
    "all_gather_base": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "reduce_scatter_base": "reduce-scatter",
    "all_to_all": "all-to-all",
    "broadcast": "broadcast",
}
_BYTES = {
    **dict.fromkeys(("bool", "byte", "char", "uint8", "int8"), 1),
    **dict.fromkeys(("half", "float16", "bfloat16", "int16"), 2),
    **dict.fromkeys(("float", "float32", "int", "int32"), 4),
    **dict.fromkeys(("double", "float64", "long", "int64"), 8),
}
_SKIPPED = frozenset(("init", "barrier"))


def read_trace(text: str, where: str) -> TraceWork:
    """Return the trace in ``text``, which comes from ``where``. InputError with every entry that cannot be replayed."""
    found = json_values(text, where)
    entries = found[0] if len(found) == 1 else None
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{where}: a trace is a JSON list of entries with 'comms'")
    reader = _Reader(entries)
    steps: list[Step] = []
    problems = []
    for number, entry in enumerate(entries, 1):
        try:
            steps += reader.steps(entry)
        except _Unfit as error:
            problems.append(f"{where}: entry {number}: {error}")
    if problems:
        raise InputError(problems)
    if not steps:
        raise InputError(f"{where}: the trace has no collective and no message")
    return TraceWork(tuple(steps))


class _Unfit(Exception):
    """An entry that cannot be replayed, with the reason."""


class _Reader:
    """Converter of entries into steps, in order."""

    def __init__(self, entries: Sequence[object]) -> None:
        self._waited = {
            entry.get("req") for entry in entries if isinstance(entry, dict) and entry.get("comms") == "wait"
        }
        self._groups: dict[object, tuple[int, ...]] = {}
        self._open: set[int] = set()
        self._sent: dict[tuple[int, int], int] = {}
        self._first_ns: int | None = None

    def steps(self, entry: object) -> Iterator[Step]:
        """Yield the steps of one entry: one or none. _Unfit when it cannot be replayed."""
        if not isinstance(entry, dict) or not isinstance(entry.get("comms"), str):
            raise _Unfit("it has no 'comms'; compute is told by 'startTime_ns' of what follows it")
        name = entry["comms"].lower()
        if name in _KINDS:
            yield self._call(name, entry)
        elif name == "wait":
            yield self._wait(entry)
        elif name == "send":
            yield self._send(entry)
        elif name == "recv":
            yield self._receive(entry)
        elif name == "init":
            self._groups[entry.get("pg_id")] = _ranks(entry) or ()
        elif name not in _SKIPPED:
            raise _Unfit(f"{name!r} cannot be replayed; there are {', '.join((*_KINDS, 'send', 'recv', 'wait'))}")

    def _call(self, name: str, entry: Mapping[str, object]) -> Call:
        ranks = _ranks(entry) or self._groups.get(entry.get("pg_id")) or None
        kind = _KINDS[name]
        size = _size(entry, "out_msg_size" if kind == "all-gather" else "in_msg_size")
        root = entry.get("root")
        if kind == "broadcast" and ranks is not None and isinstance(root, int) and root in ranks:
            ranks = (root, *(rank for rank in ranks if rank != root))
        elif kind == "broadcast" and root not in {None, 0 if ranks is None else ranks[0]}:
            raise _Unfit(f"its root {root!r} is none of its ranks")
        request = _whole(entry, "req") if "req" in entry and entry["req"] in self._waited else None
        if request is not None:
            if request in self._open:
                raise _Unfit(f"its request {request} is under way already")
            self._open.add(request)
        return Call(kind, size, ranks, request, self._time(entry))

    def _wait(self, entry: Mapping[str, object]) -> Wait:
        request = _whole(entry, "req")
        if request not in self._open:
            raise _Unfit(f"it waits for request {request}, which nothing before it begins")
        self._open.remove(request)
        return Wait(request)

    def _send(self, entry: Mapping[str, object]) -> SendCall:
        pair = _whole(entry, "src_rank"), _whole(entry, "dst_rank")
        self._sent[pair] = self._sent.get(pair, 0) + 1
        return SendCall(*pair, _size(entry, "in_msg_size"))

    def _receive(self, entry: Mapping[str, object]) -> ReceiveCall:
        pair = _whole(entry, "src_rank"), _whole(entry, "dst_rank")
        if not self._sent.get(pair):
            raise _Unfit(f"it receives from rank {pair[0]} what no entry before it sends; put the send first")
        self._sent[pair] -= 1
        return ReceiveCall(*pair)

    def _time(self, entry: Mapping[str, object]) -> int | None:
        if entry.get("startTime_ns") is None:
            return None
        at_ns = _whole(entry, "startTime_ns")
        self._first_ns = at_ns if self._first_ns is None else self._first_ns
        return at_ns - self._first_ns


def _size(entry: Mapping[str, object], key: str) -> int:
    dtype = entry.get("dtype")
    if not isinstance(dtype, str) or dtype.lower() not in _BYTES:
        raise _Unfit(f"its dtype is {dtype!r}; there are {', '.join(_BYTES)}")
    elements = _whole(entry, key)
    if elements < 1:
        raise _Unfit(f"its {key} is {elements}; at least 1")
    return elements * _BYTES[dtype.lower()]


def _ranks(entry: Mapping[str, object]) -> tuple[int, ...] | None:
    ranks = entry.get("global_ranks")
    if ranks is None:
        return None
    if not isinstance(ranks, list) or not all(isinstance(rank, int) for rank in ranks):
        raise _Unfit("its global_ranks are no list of numbers")
    return tuple(ranks)


def _whole(entry: Mapping[str, object], key: str) -> int:
    value = entry.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _Unfit(f"its {key} is {value!r}; write a whole number")
    return value
