"""Drill of one failure: traffic within and between racks, the failure, its repair, and its promises. Pure.

Changes when a failure is tried in another way. The text is what ``hpn drill run`` reads, so that a user can repeat it.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from hpn.failover.faults import FAULTS, MS, Fault
from hpn.scenarios.audit.failures import Breakage, Failure
from hpn.scenarios.audit.promises import Promise
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.model import PATH_MTUS, Drill, Workload
from hpn.scenarios.drill.workload import flows_of, mtu_needed
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import LACP_PERIOD_MS
from hpn.testbed.fabric.wired.host_configs import asked_rates
from hpn.testbed.fabric.writing import as_data
from hpn.testbed.files.document import Document, Plain, Where
from hpn.testbed.files.units import format_duration, format_percent
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.flows.framing import wire_bytes

TOPOLOGY = "topology.yaml"
"""File of the fabric, beside the drills."""
_PATTERN = "near-and-far"
_PPS = 50
"""Packets per second of a queue pair: outages are told to 20 ms, and a drill costs seconds."""
_MOST_QUEUE_PAIRS = 16
_TICK_NS, _HEALTHY_NS = 10 * MS, 500 * MS
_IB_TIMEOUT = 20
"""Of NCCL 2.30: 34 s of patience, so that no queue pair dies of a failure that is repaired."""
_DOWN_NS, _SETTLE_NS = 3500 * MS, 4500 * MS
_QUIET_NS = 1500 * MS
"""Validation time, and some more: an outage or a change can only be called over after it."""
_BONDING_WAIT_MS = 2000
"""Aggregate wait of Linux bonding (802.1AX 6.4.4)."""
_MOST_NAME, _DIGEST = 48, 6
_SUMMARY = 160


@dataclass(frozen=True, slots=True)
class PlannedFailure:
    """A failure and its drill. ``unfit``: promises that cannot be judged there, each with the reason."""

    failure: Failure
    name: str
    text: str
    drill: Drill
    unfit: tuple[tuple[str, str], ...] = ()


def names_of(failures: Sequence[Failure]) -> list[str]:
    """Return a name for each failure: a valid drill name, unique among them."""
    plain = [_slug(f"{each.kind} {each.element}") for each in failures]
    often = Counter(plain)
    return [
        name if often[name] == 1 and len(name) <= _MOST_NAME else _with_digest(name, failure)
        for name, failure in zip(plain, failures, strict=True)
    ]


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _with_digest(name: str, failure: Failure) -> str:
    digest = hashlib.sha256(failure.key.encode()).hexdigest()[:_DIGEST]
    return f"{name[: _MOST_NAME - _DIGEST - 1].rstrip('-')}-{digest}"


def workload_of(fabric: Fabric) -> Workload:
    """Return the traffic of every drill: as many queue pairs for each pair of NICs as there are ways out of a rack."""
    queue_pairs = min(
        _MOST_QUEUE_PAIRS, max(2, max((_ways_out(fabric, host.name) for host in fabric.hosts), default=2))
    )
    path_mtu = max((each for each in PATH_MTUS if mtu_needed(each) <= fabric.spec.mtu), default=PATH_MTUS[0])
    slowest_bps = min((sum(link.rate_bps for link in nic.links) for nic in fabric.nics), default=1)
    needed = 2 * queue_pairs * _PPS * 8 * wire_bytes(path_mtu) / slowest_bps
    load = min(max(math.ceil(needed * 1000) / 1000, 0.001), 1.0)
    return Workload(_PATTERN, queue_pairs, load=load, path_mtu=path_mtu, ib_timeout=_IB_TIMEOUT, tick_ns=_TICK_NS)


def flows_for(fabric: Fabric) -> tuple[FlowSpec, ...]:
    """Return the flows of every drill. InputError when no NIC has a partner."""
    return flows_of(workload_of(fabric), fabric)


def _ways_out(fabric: Fabric, host: str) -> int:
    """Return the largest number of links to other switches from the ToRs of a NIC of a host."""
    return max(
        (
            sum(1 for link in nic.links for onward in fabric.links_of(link.upper.node) if onward.is_routed)
            for nic in fabric.nics_of(host)
        ),
        default=0,
    )


def planned(fabric: Fabric, failure: Failure, name: str, promises: Sequence[Promise], folder: Path) -> PlannedFailure:
    """Return the failure with its drill, whose file is in ``folder``. InputError when it makes no valid drill."""
    due = [promise for promise in promises if failure.kind in promise.of]
    unfit: list[tuple[str, str]] = []
    while due:
        data = _data(fabric, failure, name, due)
        lines: dict[Where, int] = {("expect", at): at + 2 for at in range(len(due))}
        try:
            drill = drill_from(Document(str(folder / f"{name}.yaml"), data, lines), folder)
        except InputError as error:
            told = _by_promise(error, str(folder / f"{name}.yaml"), len(due))
            if not told:
                raise InputError([each.partition(": ")[2] or each for each in error.problems]) from None
            unfit += [(due[at].text, why) for at, why in sorted(told.items())]
            due = [promise for at, promise in enumerate(due) if at not in told]
        else:
            if not isinstance(data["topology"], str):  # the file beside it has the same
                data["topology"] = TOPOLOGY
            text = yaml.safe_dump(data, sort_keys=False, width=118, allow_unicode=True)
            return PlannedFailure(failure, name, text, drill, tuple(unfit))
    raise InputError(f"no promise can be judged: {unfit[0][1]}" if unfit else f"no promise is of a {failure.kind}")


def _by_promise(error: InputError, file: str, count: int) -> dict[int, str]:
    """Return why a promise, by its place, cannot be judged."""
    found: dict[int, str] = {}
    for problem in error.problems:
        for at in range(count):
            start = f"{file}:{at + 2}: "
            if problem.startswith(start):
                found[at] = problem.removeprefix(start).partition(" can never be judged: ")[2] or problem
    return found


def _data(fabric: Fabric, failure: Failure, name: str, promises: Sequence[Promise]) -> dict[str, Plain]:
    workload, down_ns = workload_of(fabric), _down_ns(fabric, failure, promises)
    return {
        "drill": name,
        "summary": _shortened(f"audit: {failure.words}"),
        "topology": as_data(fabric.spec),
        "workload": {
            "pattern": workload.pattern,
            "queue_pairs": workload.queue_pairs,
            "load": format_percent(workload.load),
            "path_mtu": workload.path_mtu,
            "ib_timeout": workload.ib_timeout,
            "tick": format_duration(workload.tick_ns),
        },
        "timeline": {
            "healthy": format_duration(_HEALTHY_NS),
            "faults": [_entry(each, at, down_ns) for at, each in enumerate(failure.breakages, 1)],
            "settle": format_duration(settle_ns(fabric, _faults(failure))),
        },
        "expect": [promise.entry for promise in promises],
    }


def _entry(breakage: Breakage, number: int, down_ns: int) -> Plain:
    repairs_itself = FAULTS[breakage.fault].REPAIRS_ITSELF
    return {
        "id": f"failure{number}",
        "fault": breakage.fault,
        "target": breakage.target,
        "at": format_duration(_HEALTHY_NS),
        **({} if repairs_itself else {"for": format_duration(down_ns)}),
        **dict(breakage.arguments),
    }


def _down_ns(fabric: Fabric, failure: Failure, promises: Sequence[Promise]) -> int:
    """Return how long an element is down: longer than any limit, and than the timer that notices it."""
    longest_ns = max((each.longest_ns for each in promises), default=0.0)
    return math.ceil(max(_DOWN_NS, longest_ns + _QUIET_NS, _notice_ns(fabric, _faults(failure)) + _QUIET_NS))


def _faults(failure: Failure) -> list[Fault]:
    return [each.made for each in failure.breakages]


def _notice_ns(fabric: Fabric, faults: Iterable[Fault]) -> int:
    """Return the timeout of the protocol that alone notices: LACP's on access links, BGP's or BFD's above; else 0."""
    by_timers = (fault for fault in faults if fault.timers_alone_notice)
    routed = [link.is_routed for fault in by_timers for link in fault.links_hit(fabric)]
    return max((_sessions_end_ns(fabric) if each else 3 * _lacp_period_ns(fabric) for each in routed), default=0)


def _sessions_end_ns(fabric: Fabric) -> int:
    """Return how long a BGP session outlives its link at most, by the topology file's timers."""
    bgp = fabric.spec.bgp
    return bgp.hold_s * 1000 * MS if bgp.bfd is None else bgp.bfd.detect_ms * MS


def settle_ns(fabric: Fabric, faults: Sequence[Fault]) -> int:
    """Return the time in ns after the last repair: for ports to rejoin their LAG, and sessions to be set up."""
    lacp = fabric.spec.lacp
    wait_ns = max(0, lacp.aggregate_wait_ms - _BONDING_WAIT_MS) * MS + lacp.wait_to_restore_ms * MS
    late_ns = _lacp_period_ns(fabric) if _notice_ns(fabric, faults) else 0
    return _SETTLE_NS + wait_ns + late_ns + fabric.spec.bgp.fib_lag_ms * MS


def _lacp_period_ns(fabric: Fabric) -> int:
    return max(LACP_PERIOD_MS[rate] for rate in asked_rates(fabric.spec)) * MS


def _shortened(text: str) -> str:
    return text if len(text) <= _SUMMARY else f"{text[: _SUMMARY - 3]}..."
