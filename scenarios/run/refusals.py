"""Reasons why a drill or a lab cannot start on this machine, and where it could, checked before the start.

Changes when something else can prevent a run. A run makes the same checks (``check``, ``check_guest``). So ``hpn drill
validate`` and ``hpn plan`` report what ``hpn drill run`` and ``hpn up`` would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from hpn.failover.inject import needs
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.run import client_site, guest_need
from hpn.scenarios.run.remote_task import MEMORY_MB
from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.lab.service import preflight
from hpn.testbed.vm.engines import ENGINES, EngineSpec


@dataclass(frozen=True, slots=True)
class Refused:
    """Reasons against a run on this machine's kernel.

    ``elsewhere``: what an engine in virtual time lacks, '' if it could run the drill.
    """

    reasons: tuple[str, ...]
    elsewhere: str

    def lines(self, run_it: str) -> Iterator[str]:
        """Yield the reasons as lines for the user; ``run_it`` is the command that runs the drill elsewhere."""
        yield from self.reasons
        if self.elsewhere:
            yield f"nor would it run in virtual time: {self.elsewhere}"
        else:
            yield f"it can run in virtual time: {run_it} --engine uml-virtual-time"


def check(drill: Drill, fabric: Fabric, *, raising: bool = False, alike: bool = False) -> None:
    """Raise MachineError with the first obstacle to a run here.

    Call it outside the sandbox, which hides limits. ``alike``: every drill makes the same probes.
    """
    for each in _checks(drill, fabric, raising=raising, alike=alike):
        each()


def check_guest(drill: Drill, spec: EngineSpec) -> None:
    """Raise MachineError with the first obstacle to a run in a guest of that engine."""
    spec.engine().check()
    client_site.check(drill)
    if spec.maps_pages:
        guest_need.check_maps(drill)


def of_drill(drill: Drill) -> Refused | None:
    """Return why a drill cannot run on this machine's kernel, or None if it can."""
    fabric = build(drill.topology)
    checks: list[Callable[[], None]] = [*_checks(drill, fabric), partial(_raise, preflight.refusals(fabric))]
    reasons = tuple(dict.fromkeys(line for each in checks for line in _said(each)))
    return Refused(reasons, _elsewhere(drill)) if reasons else None


def _checks(
    drill: Drill, fabric: Fabric, *, raising: bool = False, alike: bool = False
) -> Sequence[Callable[[], None]]:
    return (
        partial(preflight.check, fabric, raising=raising),
        partial(needs.check, [planned.fault for planned in drill.timeline.faults], every=alike),
        partial(client_site.check, drill),
    )


def _elsewhere(drill: Drill) -> str:
    """Return the obstacles to a run in virtual time, or ''."""
    spec = next((each for each in ENGINES.values() if each.virtual_time), None)
    if spec is None:
        return "no engine has virtual time"
    return "; ".join([*_said(partial(check_guest, drill, spec)), *_said(partial(_check_memory, drill))])


def _check_memory(drill: Drill) -> None:
    """Raise MachineError when the guest's lab needs more memory than is free.

    A usual guest touches little of its memory and is not checked.
    """
    more_mb, free = guest_need.more_mb(drill), preflight.available_memory()
    if more_mb and free is not None and MEMORY_MB + more_mb > free >> 20:
        raise MachineError(f"its guest needs {MEMORY_MB + more_mb} MB of memory and {free >> 20} MB are free")


def _said(check_it: Callable[[], None]) -> list[str]:
    try:
        check_it()
    except MachineError as error:
        return str(error).splitlines()
    return []


def _raise(lines: Sequence[str]) -> None:
    if lines:
        raise MachineError("\n".join(lines))
