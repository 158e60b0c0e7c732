"""Runs of a drill on an engine: here, or the same command in a guest kernel on the host's files (DESIGN rule 11).

Only this module and ``testbed.vm`` know about guests. Inside a guest a drill sees an ordinary kernel.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pydantic import JsonValue, TypeAdapter

from hpn.results.run.folder import RunFolder, claimed_run, create, load
from hpn.results.run.progress import Progress
from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.model import PutOn
from hpn.scenarios.run import guest_need, refusals, remaining, session
from hpn.scenarios.run.origin import Origin, origin
from hpn.scenarios.run.remote_task import RemoteTask, answered, in_guest, last_words
from hpn.scenarios.run.run_order import Batch, Order
from hpn.scenarios.run.walltime import dated
from hpn.testbed.errors import MachineError, NoisyError
from hpn.testbed.kernel.process.cleanup_process import cleared_up
from hpn.testbed.vm.engines import EngineSpec
from hpn.testbed.vm.guest import unattended


def tried(make: Callable[[], RunFolder], tries: int, on_line: Callable[[str], None]) -> RunFolder:
    """Return the run of ``make``, called again while the measurement is in doubt, at most ``tries`` times in all.

    A doubtful run is stored as FOLDER.doubtful-N alongside its replacement; the manifest of the last run counts its
    attempts. InputError when a doubtful run's place is taken by something other than a run folder.
    """
    run = make()
    for number in range(1, tries):
        doubts = run.verdict().doubts
        if not doubts:
            break
        on_line(f"{run.path.name}: inconclusive because {doubts[0]}; try {number + 1} of {tries}")
        _set_aside(run, number)
        run = make()
        run.write_manifest(replace(run.manifest(), attempt=number + 1))
    return run


def _set_aside(run: RunFolder, number: int) -> None:
    place = run.path.with_name(f"{run.path.name}.doubtful-{number}")
    shutil.rmtree(create(place).path)  # remove one of an earlier command with the same --out
    run.path.rename(place)


_BOOT_S = 120.0
_SLOWNESS = 60.0  # wall seconds allowed per second of the drill: emulation is slow, a hang is slower

Watch = Callable[[str], AbstractContextManager[Callable[[Progress], None]]]
"""Function from a run's title to the listener for its progress."""


def unwatched(_title: str) -> AbstractContextManager[Callable[[Progress], None]]:
    """Discard the progress of a run."""
    return nullcontext(lambda _news: None)


def run_batch(
    batch: Batch, spec: EngineSpec, watch: Watch, on_line: Callable[[str], None]
) -> Iterator[tuple[Order, RunFolder | MachineError | NoisyError]]:
    """Make every run of a batch in turn; a drill that this machine cannot run is left out, with one error."""
    yield from run_orders(batch.orders(), batch.tries, spec, watch, on_line)


def run_orders(
    orders: Iterable[Order], tries: int, spec: EngineSpec, watch: Watch, on_line: Callable[[str], None]
) -> Iterator[tuple[Order, RunFolder | MachineError | NoisyError]]:
    """Make the given runs in turn, each with at most ``tries`` attempts."""
    refused: set[str] = set()
    for order in orders:
        if order.drill.source in refused:
            continue
        try:
            yield order, tried(partial(run_on, spec, order, watch, on_line), tries, on_line)
        except NoisyError as error:
            yield order, error
        except MachineError as error:
            refused.add(order.drill.source)
            yield order, error


def run_on(spec: EngineSpec, order: Order, watch: Watch, on_line: Callable[[str], None]) -> RunFolder:
    """Make one run, here with its progress sent to ``watch``, or in the engine's guest. Errors as ``run_in_guest``.

    ``on_line`` also gets the remaining time of a long run in a guest. The actual time is stored for the next estimate.
    """
    known = replace(order, origin=origin())
    with remaining.following(order, spec, on_line) as followed:
        if spec.start is not None:
            return run_in_guest(known, spec, followed.line, followed.look)
        with watch(order.title) as listen:
            return session.run(replace(known, engine=spec.name), followed.hearing(listen))


@dataclass(frozen=True, slots=True)
class RunBody:
    """Description of a run for a guest: the drill as its file; the run folder is the guest's working directory.

    The rest is as in ``Order``, but ``slow`` is decided. ``seed`` replaces that of the file's topology. ``topology``:
    fabric that replaces the drill's own, or None.
    """

    file: str
    command: tuple[str, ...]
    repeat: int
    phase: int
    slow: int
    keep_records: bool
    seed: int | None = None
    topology: PutOn = None
    origin: Origin = Origin()  # noqa: RUF009 - frozen

    def as_json(self) -> JsonValue:
        """Return the body of a job."""
        body: JsonValue = _BODY.dump_python(self, mode="json")
        return body

    def order(self, spec: EngineSpec) -> Order:
        """Return the order, inside the guest. InputError for a file that is gone or invalid."""
        drill = catalogue.load(self.file, self.topology)
        return Order(
            drill.seeded(drill.topology.seed if self.seed is None else self.seed).slowed(self.slow),
            Path(),
            self.command,
            self.repeat,
            spec.name,
            keep_records=self.keep_records,
            phase=self.phase,
            slowed=self.slow,
            origin=self.origin,
        )


_BODY = TypeAdapter(RunBody)


def body_from(body: JsonValue) -> RunBody:
    """Return the run described by the body of a job."""
    return _BODY.validate_python(body)


def run_in_guest(
    order: Order, spec: EngineSpec, on_line: Callable[[str], None], look: Callable[[], None] = unattended
) -> RunFolder:
    """Run one drill inside a guest, which writes the run folder itself; ``look`` as in ``GuestJob``.

    MachineError when the engine cannot boot here, or the guest hangs, panics or is killed. NoisyError when the run was
    invalid from the start.
    """
    refusals.check_guest(order.drill, spec)
    with (
        claimed_run(order.out.absolute()) as claim,
        cleared_up(lambda: session.clear_up(claim), {claim.descriptor}),
        dated(claim),
    ):
        return _in_guest(order, spec, spec.engine().slowness, claim.path, on_line, look)


def _in_guest(
    order: Order,
    spec: EngineSpec,
    slowness: int,
    folder: Path,
    on_line: Callable[[str], None],
    look: Callable[[], None],
) -> RunFolder:
    """Run one drill inside a guest, into a folder that is already claimed."""
    body = RunBody(
        file=str(Path(order.drill.source).absolute()),
        command=order.command,
        repeat=order.repeat,
        phase=order.phase,
        slow=slowness if order.slow is None else order.slow,
        keep_records=order.keep_records,
        seed=order.drill.topology.seed,
        topology=order.drill.put_on,
        origin=order.origin,
    )
    timeout_s = _BOOT_S + order.phased.timeline.end_ns / 1e9 * _SLOWNESS * guest_need.times_as_long(order.drill)
    job = RemoteTask("run", spec.name, body.as_json())
    more_mb = guest_need.more_mb(order.drill)
    result = answered(
        spec, in_guest(job, spec, folder, timeout_s, on_line, seed=order.phase, more_mb=more_mb, look=look)
    )
    run = load(folder)
    if result.exit_code == NoisyError.exit_code and not run.has_verdict:
        raise NoisyError(f"{spec.name}: {last_words(result)}")
    return run
