"""A drill in a guest kernel: the very same command, run by an engine on the host's files (DESIGN rule 11).

Only this module and ``testbed.vm`` know of guests; inside, the drill finds a kernel like any other.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from results.run.folder import RunFolder, create, load
from results.run.manifest import HOST as HOST
from results.run.progress import Progress
from scenarios.drill.model import Drill
from scenarios.run import session
from scenarios.run.order import Batch, Order
from scenarios.run.tries import tried
from testbed import plugins
from testbed.errors import InputError, MachineError, NoisyError, error_for
from testbed.vm.guest import Engine, GuestJob, GuestResult
from testbed.vm.qemu import Qemu
from testbed.vm.uml import Uml

COMMAND = Path(__file__).resolve().parents[2] / "cli.py"
_JUDGED = (0, 1, 4)
_MEMORY_MB = 1536
_BOOT_S = 120.0
_SLOWNESS = 60.0  # wall seconds allowed per second of the drill: emulation is slow, a hang is slower

Watch = Callable[[str], AbstractContextManager[Callable[[Progress], None]]]
"""From a run's title to what listens to its news while it lasts."""

VIRTUAL_TIME = "uml-virtual-time"

ENGINES: Mapping[str, Callable[[], Engine]] = {
    "qemu": Qemu,
    "uml": Uml,
    VIRTUAL_TIME: lambda: Uml(virtual_time=True),
}
"""Guest engines by the name that results record."""


NAMES = (HOST, *ENGINES)
"""Every engine a suite may name."""


def run_everywhere(
    drill: Drill, out: Path, command: tuple[str, ...], on_line: Callable[[str], None]
) -> Iterator[tuple[str, RunFolder | MachineError | NoisyError]]:
    """Run one drill on every engine, one after the other, into OUT/ENGINE; an engine that cannot gives its error."""
    for name in NAMES:
        order = Order(drill, out / name, command)
        on_line(f"{name}: {drill.name}")
        try:
            if name == HOST:
                yield name, session.run(order, lambda _news: None)
            else:
                yield name, run_in_guest(order, ENGINES[name](), on_line)
        except (MachineError, NoisyError) as error:
            yield name, error


def run_batch(
    batch: Batch, engine: Engine | None, watch: Watch, on_line: Callable[[str], None]
) -> Iterator[tuple[Order, RunFolder | MachineError | NoisyError]]:
    """Make every run, on the host when ``engine`` is None; a drill that this machine cannot run is left out, once."""
    refused: set[str] = set()
    for order in batch.orders():
        if order.drill.source in refused:
            continue
        try:
            yield order, tried(partial(_make, order, engine, watch, on_line), batch.tries, on_line)
        except NoisyError as error:
            yield order, error
        except MachineError as error:
            refused.add(order.drill.source)
            yield order, error


def _make(order: Order, engine: Engine | None, watch: Watch, on_line: Callable[[str], None]) -> RunFolder:
    if engine is not None:
        return run_in_guest(order, engine, on_line)
    with watch(order.title) as listen:
        return session.run(order, listen)


def run_in_guest(order: Order, engine: Engine, on_line: Callable[[str], None]) -> RunFolder:
    """Run one drill inside a guest; its run folder is written by the guest itself.

    MachineError when the engine cannot boot here, or the guest hangs, panics or is killed; NoisyError when the run
    could say nothing from the start.
    """
    engine.check()
    folder = create(order.out.absolute())
    slow = engine.slowness if order.slow is None else order.slow
    drill = ("drill", "run", str(Path(order.drill.source).absolute()), "--phase", str(order.phase))
    inside = ("--folder", ".", "--as-engine", engine.name, "--as-repeat", str(order.repeat), "--slow", str(slow))
    asked = ("--keep-records",) if order.keep_records else ()
    timeout_s = _BOOT_S + order.phased.timeline.end_ns / 1e9 * _SLOWNESS
    result = command_in_guest((*drill, *inside, *asked), folder.path, engine, timeout_s, on_line, order.phase)
    run = load(folder.path)
    if result.exit_code == NoisyError.exit_code and not run.has_verdict:
        raise NoisyError(f"{engine.name}: {_last_words(result)}")
    return run


def command_in_guest(
    arguments: tuple[str, ...],
    folder: Path,
    engine: Engine,
    timeout_s: float,
    on_line: Callable[[str], None],
    seed: int = 1,
) -> GuestResult:
    """Run this very command in a guest, from inside ``folder``, the only one it may write; an answer was given.

    The folder's name is nowhere in the guest, so that runs in virtual time repeat to the last digit. InputError and
    MachineError as the command inside had them, with its words.
    """
    job = GuestJob(
        command=(sys.executable, "-B", str(COMMAND), *arguments),
        cwd=folder,
        writable=(folder,),
        environment={"PYTHONHASHSEED": "0", "HPN_STATE_DIR": "/run/hpn-state", **plugins.environment()},
        memory_mb=_MEMORY_MB,
        cpus=os.cpu_count() or 1,
        timeout_s=timeout_s,
        seed=seed,
    )
    result = engine.run(job, on_line)
    if result.exit_code in _JUDGED:
        return result
    words = f"{engine.name}: {_last_words(result)}"
    if result.exit_code in (InputError.exit_code, MachineError.exit_code):
        raise error_for(result.exit_code, words)
    code = result.exit_code
    how = f"was killed by signal {code - 128}" if code > 128 else f"ended with code {code}"
    raise MachineError(f"{words} (the command {how} in the guest)")


def _last_words(result: GuestResult) -> str:
    """The command's errors, else what it said last."""
    errors = [line.removeprefix("hpn: ") for line in result.console_tail if line.startswith("hpn: ")]
    return "; ".join(errors) or result.last_line or "it said nothing"
