"""Checks before a lab starts: one line with a remedy for each missing requirement, all at once (exit 3)."""

from __future__ import annotations

import os
from pathlib import Path

from hpn.testbed.doctor import neighbour_limit
from hpn.testbed.errors import HpnError, MachineError
from hpn.testbed.fabric.model import Fabric, LinkKind
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.kernel import neighbour_table
from hpn.testbed.kernel.neighbour_table import Raised
from hpn.testbed.kernel.process import open_files, sandbox
from hpn.testbed.lab.kernel_parts import kernel_parts
from hpn.testbed.lab.service import registry
from hpn.testbed.lab.wire import files_wanted, too_few_files
from hpn.testbed.routing.daemons import config_problems, kinds_of

_BYTES_PER_NODE = 1_000_000  # namespace and interfaces (measured)
_BYTES_PER_LINK = 250_000  # ports, LACP and routes in the supervisor (measured: 0.22 to 0.26 MB in large labs)


def check(fabric: Fabric, *, raising: bool = False) -> None:
    """Raise MachineError with every reason that prevents the lab. Call it outside the sandbox, which hides limits.

    ``raising``: the neighbour table's limit may be raised if it is too low and this process has the privilege.
    """
    found = problems(fabric, raising=raising)
    if found:
        raise MachineError("\n".join(found))


def problems(fabric: Fabric, *, raising: bool = False) -> list[str]:
    """Return the same reasons as lines; empty if there are none. MachineError without a folder for labs."""
    missing = [why for kind in kinds_of(fabric) if (why := kind.missing()) is not None]
    missing = missing or config_problems(fabric)
    crowded = () if raising and neighbour_table.may_raise() else _neighbours(fabric)
    return [*missing, *crowded, *_memory(fabric), *_files(fabric)]


def refusals(fabric: Fabric, name: str | None = None) -> list[str]:
    """Return every reason that prevents the lab, without starting one; ``name``: the lab's intended name.

    It includes the results of ``check`` and those of the sandbox and the lab at their start.
    """
    try:
        if name is not None:
            registry.check_name(name)
        return [*problems(fabric), *_kernel(fabric.spec)]
    except HpnError as error:
        return str(error).splitlines()


def _kernel(spec: FabricSpec) -> list[str]:
    """Return what the sandbox or the kernel lacks."""

    def lacking() -> str:
        try:
            kernel_parts(spec)
        except MachineError as error:
            return str(error)
        return ""

    try:
        return str(sandbox.ask(lacking)).splitlines()
    except MachineError as error:
        return str(error).splitlines()


def neighbour_entries(fabric: Fabric) -> int:
    """Count neighbour entries under the machine-wide limit: gateways on hosts, hosts on ToRs (FACTS trap 4)."""
    return len(fabric.nics) + sum(link.kind is LinkKind.ACCESS for link in fabric.links)


def entries_wanted(fabric: Fabric) -> int:
    """Return the neighbour entries that this lab and your running ones need together."""
    return neighbour_entries(fabric) + sum(lab.neighbours for _, lab in registry.running())


def raised_for(fabric: Fabric) -> Raised | None:
    """Raise the neighbour table's limit to what this lab and your running ones need; None if it suffices.

    It is restored when its holder releases it or dies. MachineError when this process may not raise it.
    """
    if _shortage(fabric) is None:
        return None
    return neighbour_table.raise_to(entries_wanted(fabric), registry.base_directory().resolve())


def _shortage(fabric: Fabric) -> tuple[int, int, bool] | None:
    """Return entries needed, the lower limit, and True if that applies only after all raises end; None: enough."""
    need, limit = entries_wanted(fabric), neighbour_limit()
    if need > limit:
        return need, limit, False
    # Labs that raised it themselves have ended by then.
    need = neighbour_entries(fabric) + sum(lab.neighbours for _, lab in registry.running() if not lab.neighbour_limit)
    lasting = neighbour_table.unraised()
    return None if lasting is None or need <= lasting else (need, lasting, True)


def _neighbours(fabric: Fabric) -> list[str]:
    short = _shortage(fabric)
    if short is None:
        return []
    need, limit, later = short
    when = " again once nobody has that raised" if later else ""
    raise_it = " ".join(f"net.ipv4.neigh.default.gc_thresh{i}={need * factor}" for i, factor in ((2, 2), (3, 4)))
    for_good = "" if later else f", or sysctl -w {raise_it}"
    return [
        f"your labs would need {need} neighbour entries but the machine starts to discard at {limit}{when}, its own"
        f" included; as root: hpn up --raise-neighbour-limit (so too hpn drill run){for_good}; or take fewer hosts or"
        " rails"
    ]


def _memory(fabric: Fabric) -> list[str]:
    daemon = max(kind.memory for kind in kinds_of(fabric))
    need = len(fabric.nodes) * _BYTES_PER_NODE + len(fabric.links) * _BYTES_PER_LINK + len(fabric.switches) * daemon
    available = available_memory()
    if available is None or need <= available:
        return []
    return [f"the lab needs about {need >> 20} MB of memory and {available >> 20} MB are free; take a smaller preset"]


def _files(fabric: Fabric) -> list[str]:
    count = files_wanted(fabric)
    limit = open_files.limit_below(count)
    return [] if limit is None else [too_few_files(count, limit)]


def available_memory() -> int | None:
    """Return the memory available to programs, bytes; None if the kernel does not report it."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        return None
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
