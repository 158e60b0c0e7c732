"""Start of the self-test: on this kernel in a sandbox, or by the same command in a guest.

Changes when an engine can carry more or less, or is started in another way.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

from pydantic import JsonValue

from hpn.failover.faults import SilentDrop
from hpn.failover.inject import needs
from hpn.results.judge.ground_truth import GroundTruth, from_json
from hpn.scenarios.run.remote_task import RemoteTask, answered, in_guest
from hpn.scenarios.selfcheck.selftest.exact_loss import observe
from hpn.scenarios.selfcheck.selftest.sizes import Plan
from hpn.testbed.errors import HpnError, InputError, MachineError, error_for
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.kernel.process import sandbox
from hpn.testbed.kernel.process.cleanup_process import scratch_folder
from hpn.testbed.lab.service import preflight
from hpn.testbed.vm.engines import EngineSpec

_PRESET = "tiny"
_RESULT, _ERROR = "ground-truth.json", "error.txt"
_GUEST_S = 1800.0


def run(spec: EngineSpec, on_line: Callable[[str], None]) -> GroundTruth:
    """Run the self-test here, or by this command in a guest of that engine. MachineError where it cannot run."""
    with scratch_folder("hpn-selftest-") as folder:
        return run_here(spec, folder) if spec.start is None else _in_guest(spec, folder, on_line)


def plan_for(spec: EngineSpec) -> Plan:
    """Return the plan that the engine can carry. InputError when it defines no pace."""
    if spec.selftest is None:
        raise InputError(f"the self-test does not run on engine {spec.name}, which says no pace for it")
    return Plan(spec.selftest.tick_ns, spec.selftest.fast_pps, spec.selftest.slow_pps)


def run_here(spec: EngineSpec, folder: Path) -> GroundTruth:
    """Run on this kernel, with the engine's plan; the result is also written to ``folder``."""
    plan = plan_for(spec)
    fabric = build(PRESETS[_PRESET].spec)
    preflight.check(fabric)
    needs.check([SilentDrop(fabric.links[0].name)])
    box = sandbox.spawn(lambda: _first_process(fabric, plan, spec.name, folder))
    try:
        code = box.wait()
    except KeyboardInterrupt:
        os.kill(box.first_pid, signal.SIGKILL)
        box.wait()
        raise
    if (folder / _ERROR).is_file():
        raise error_for(code, (folder / _ERROR).read_text())
    if code != 0:
        raise MachineError(f"the self-test's process ended with code {code}; its last words are above")
    return from_json((folder / _RESULT).read_bytes())


def asked(_body: JsonValue, spec: EngineSpec) -> int:
    """Run the job: in a guest, from inside the folder for the result."""
    return run_here(spec, Path()).outcome.exit_code


def _in_guest(spec: EngineSpec, folder: Path, on_line: Callable[[str], None]) -> GroundTruth:
    spec.engine().check()
    answered(spec, in_guest(RemoteTask("selftest", spec.name), spec, folder, _GUEST_S, on_line))
    return from_json((folder / _RESULT).read_bytes())


def _first_process(fabric: Fabric, plan: Plan, engine: str, folder: Path) -> int:
    """Write the result to ``folder``, or the error for the returned exit code; runs in the sandbox."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the waiting process ends us
    try:
        observed = asyncio.run(observe(fabric, plan, engine, folder))
        from hpn.scenarios.selfcheck.selftest.ground_truth import (
            analyse_truth,  # numpy is imported here, after the measurement
        )

        (folder / _RESULT).write_bytes(analyse_truth(observed).to_json())
    except HpnError as error:
        (folder / _ERROR).write_text(str(error))
        return error.exit_code
    return 0
