"""The self-test from outside: on this kernel in a sandbox, or by the very same command in a guest.

Changes when an engine can carry more or less, or is started in another way.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from failover.faults import SilentDrop
from failover.inject import needs
from results.ground_truth import GroundTruth, from_json
from scenarios.run.engines import ENGINES, HOST, command_in_guest
from scenarios.selftest.sizes import MS, Plan
from scenarios.selftest.truths import observe
from testbed.errors import HpnError, MachineError, error_for
from testbed.fabric.build import build
from testbed.fabric.model import Fabric
from testbed.fabric.presets import PRESETS
from testbed.kernel import sandbox
from testbed.lab.service import preflight
from testbed.vm.group import sigterm_as_interrupt

_PRESET = "tiny"
_RESULT, _ERROR = "ground-truth.json", "error.txt"
_GUEST_S = 1800.0


PLANS: Mapping[str, Plan] = {
    HOST: Plan(tick_ns=MS),
    "uml": Plan(tick_ns=2 * MS, fast_pps=1_000, slow_pps=100),  # a system call costs ten times as much there
    "uml-virtual-time": Plan(tick_ns=MS // 10),
}
"""What each engine can carry. A tick longer than a packet period makes bursts, which coarsen the resolution."""


def run(engine: str, on_line: Callable[[str], None]) -> GroundTruth:
    """On the host or, by this very command, in the guest of that name. MachineError where it cannot run."""
    with sigterm_as_interrupt(), tempfile.TemporaryDirectory(prefix="hpn-selftest-") as made:
        folder = Path(made)
        if engine == HOST:
            return run_here(engine, folder)
        return _in_guest(engine, folder, on_line)


def run_here(engine: str, folder: Path) -> GroundTruth:
    """On this kernel, with ``engine``'s plan; the result is also written to ``folder``."""
    fabric = build(PRESETS[_PRESET].spec)
    preflight.check(fabric)
    needs.check([SilentDrop(fabric.links[0].name)])
    box = sandbox.spawn(lambda: _first_process(fabric, PLANS[engine], engine, folder))
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


def _in_guest(name: str, folder: Path, on_line: Callable[[str], None]) -> GroundTruth:
    engine = ENGINES[name]()
    engine.check()
    command_in_guest(("selftest", "--folder", ".", "--as-engine", name), folder, engine, _GUEST_S, on_line)
    return from_json((folder / _RESULT).read_bytes())


def _first_process(fabric: Fabric, plan: Plan, engine: str, folder: Path) -> int:
    """In the sandbox: leaves the result in ``folder``, or the error that its exit code belongs to."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever waits for us ends us
    try:
        observed = asyncio.run(observe(fabric, plan, engine, folder))
        from scenarios.selftest.ground_truth import analyse_truth  # numpy comes in here, after the measurement

        (folder / _RESULT).write_bytes(analyse_truth(observed).to_json())
    except HpnError as error:
        (folder / _ERROR).write_text(str(error))
        return error.exit_code
    return 0
