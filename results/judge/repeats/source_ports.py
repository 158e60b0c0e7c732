"""Note for repeats whose flows have the same source ports in every run, by the recorded paths.

Changes when repeats share something else that a reader takes for a draw.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hpn.results.run.folder import RunFolder
from hpn.testbed.errors import InputError, MachineError

_BEGIN = "begin"
_Begins = Mapping[int, tuple[int, int | None]]
"""Source port and NIC port at the start of the traffic, by flow."""


def shared_source_ports(runs: Iterable[RunFolder]) -> str:
    """Return a note if runs with other seeds have the same source ports; '' if they differ or a run lacks them.

    Reads ``paths.jsonl`` of each run until two differ. Runs of one seed are the same draw anyway, so that no choice of
    ports makes them differ.
    """
    first: _Begins = {}
    seeds, count, same_nic_ports = set[object](), 0, True
    for run in runs:
        found, seed = _recorded(run)
        if not found or (count and not _alike(first, found)):
            return ""
        first = first or found
        same_nic_ports = same_nic_ports and found == first
        seeds.add(seed)
        count += 1
    return _note(count, same_nic_ports=same_nic_ports) if len(seeds) > 1 else ""


def _note(count: int, *, same_nic_ports: bool) -> str:
    what = "source ports and NIC ports" if same_nic_ports else "source ports"
    return f"all {count} runs have the same {what}: one draw of them; 'source_ports: drawn' draws new ones in each run"


def _recorded(run: RunFolder) -> tuple[_Begins, tuple[tuple[str, int], ...]]:
    """Return the ports of each flow, and the seeds; empty for a damaged or too large file, or one of an older hpn."""
    try:
        found = {path.flow: (path.sport, path.port) for path in run.paths() if path.why == _BEGIN and path.sport}
        return found, tuple(sorted(run.manifest().seeds.items()))
    except (InputError, MachineError):
        return {}, ()


def _alike(one: _Begins, other: _Begins) -> bool:
    return one.keys() == other.keys() and all(one[flow][0] == other[flow][0] for flow in one)
