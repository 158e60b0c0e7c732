"""Settings that distinguish runs, shown with the key and unit of the topology or drill file. Pure.

Changes when a file's key is stored under another name than in the file. Stored keys (``results.run.identity``) stay as
they are, so baselines of an older hpn remain readable: only the text shown to people is translated. An unknown setting
is shown as it is stored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from hpn.testbed.files.units import format_duration, format_percent, format_size

_FAULT = re.compile(r"faults\.(\d+)(?:\.(.+))?")
_CLASS = re.compile(r"\.[A-Z]\w*")
_WORKS: Mapping[str, str] = {
    "job.work.Training": "job.training",
    "job.work.CollectiveWork": "job.collective",
    "job.work.MessageWork": "job.messages",
    "job.multipath.Multipath": "job.transport",
    "job.multipath": "job.transport",
}
_RENAMED: Mapping[str, str] = {
    "healthy_ns": "timeline.healthy",
    "end_ns": "end of the timeline",
    "job.choice": "job.queue_pair_choice",
    "job.congestion_name": "job.congestion",
    "job.nvlink_bps": "job.nvlink_rate",
    "job.reorder_packets": "job.spray.reorder",
    "job.spray": "job.spray.ports",
    "job.window_packets": "job.window",
    "job.collective.grouping": "job.collective.among",
}
_RATES = frozenset({"nic_port_rate", "uplink_rate", "core_rate", "switch_capacity", "job.nvlink_bps", "client.rate"})
_OF_FABRIC_BYTES = frozenset({"ecn.kmin_bytes", "ecn.kmax_bytes"})
"""Keys that include their unit in files, too."""
_MOMENTS, _KIND = "moments", "kind"
_LEAST_NS = 1000
"""Smallest integer parameter of a fault that is a duration; smaller ones are counts."""


def key_in_file(key: str) -> str:
    """Return the key as in the file: 'job.training.data_size' for 'job.work.Training.data_bytes'."""
    if (found := _FAULT.fullmatch(key)) is not None:
        parameter = {_MOMENTS: "", _KIND: "fault"}.get(found[2], found[2] or "")
        return f"timeline.faults[{found[1]}]" + (f".{parameter}" if parameter else "")
    for kept, written in _WORKS.items():
        key = re.sub(rf"^{re.escape(kept)}\b", written, key)
    if key in _OF_FABRIC_BYTES:
        return key
    key = _RENAMED.get(key, _CLASS.sub("", key))
    return re.sub(r"(\.size)?_bytes$", lambda found: found[1] or "_size", key.removesuffix("_ns"))


def value_in_file(key: str, value: str) -> str:
    """Return the value as in the file: '1 MB' for '1000000' bytes. ``key`` is the stored one."""
    if (found := _FAULT.fullmatch(key)) is not None:
        return _of_fault(found[2] or "", value)
    return _with_unit(value, _unit(key))


def _unit(key: str) -> Callable[[float], str] | None:
    if key in _RATES:
        return _rate
    if key == "workload.load":
        return format_percent
    if key.endswith("_ns") or key == "client.pause":
        return lambda value: format_duration(int(value))
    if (key.endswith("_bytes") and key not in _OF_FABRIC_BYTES) or key == "client.size":
        return lambda value: format_size(int(value))
    return None


def _rate(bps: float) -> str:
    return next(
        (f"{bps / factor:.10g}{unit}" for factor, unit in ((1e9, "G"), (1e6, "M")) if bps >= factor), f"{bps:g}"
    )


def _of_fault(parameter: str, value: str) -> str:
    """Return a fault's parameter as in the file. Durations are stored as whole ns, percentages as decimal shares."""
    if parameter == _MOMENTS:
        return _moments(value)
    try:
        number = json.loads(value)
    except ValueError:
        return value
    if isinstance(number, float):
        return _with_unit(value, format_percent)
    is_time = isinstance(number, int) and number >= _LEAST_NS
    return _with_unit(value, lambda ns: format_duration(int(ns))) if is_time else value


def _moments(value: str) -> str:
    """Return 'failure at 1 s then repair at 3 s'; the digest of many moments is returned unchanged."""
    found = re.findall(r'"(\w+) (-?\d+)"', value)
    return " then ".join(f"{kind} at {format_duration(int(at_ns))}" for kind, at_ns in found) or value


def _with_unit(value: str, unit: Callable[[float], str] | None) -> str:
    """Return the value with its unit; a value that is not a number, as in a damaged folder, stays unchanged."""
    if unit is None or not re.fullmatch(r"\d{1,18}(\.\d{1,18})?", value):
        return value
    return unit(float(value) if "." in value else int(value))
