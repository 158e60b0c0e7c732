"""Functions of the public API that combine several steps of the command line."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from hpn.results.judge.repeats import spread
from hpn.results.run import folder
from hpn.results.run.folder import RunFolder
from hpn.results.run.progress import Progress
from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.run import engines
from hpn.scenarios.run.run_order import Order
from hpn.testbed.errors import InputError
from hpn.testbed.events import Event
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.kernel.process import sandbox
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.service import preflight
from hpn.testbed.vm.engines import HOST, named

if TYPE_CHECKING:
    from hpn.results.judge.repeats.spread import Spread
    from hpn.scenarios.run.analyse import Analysed

_CONVERGE_S = 60.0


def run(
    drill: Drill,
    out: str | os.PathLike[str],
    *,
    engine: str = HOST.name,
    phase: int = 1,
    keep_records: bool = False,
    on_news: Callable[[str], None] = lambda _line: None,
) -> RunFolder:
    """Run a drill once in a lab of its own, wait for it, and return its run folder, which is ``out``.

    ``engine``: one of ``ENGINES``. ``phase`` draws when in the protocols' timers faults occur, and seeds.
    ``keep_records`` stores every packet's record, for ``analyse``. ``on_news`` receives lines of progress.

    InputError if the drill or ``out`` is wrong, MachineError when this machine cannot run it, NoisyError
    when it was too busy to begin. The outcome of the drill, pass or fail, is ``verdict()`` of the folder.
    """
    spec = named(engine)
    order = Order(drill, Path(out), ("hpn.run",), keep_records=keep_records, phase=phase)

    def tell(news: Progress) -> None:
        if news.kind != "traffic":
            on_news(news.text)

    as_filed = Path(drill.source).is_file() and _filed(drill) == drill
    if spec.start is not None and not as_filed:
        raise InputError(f"a guest reads {drill.name} from its file, which says something else: write the change there")
    return engines.run_on(spec, order, lambda _title: nullcontext(tell), on_news)


def _filed(drill: Drill) -> Drill:
    """Return the drill as its file defines it, on the same fabric."""
    return catalogue.load(drill.source, drill.put_on)


def load_run(path: str | os.PathLike[str]) -> RunFolder:
    """Load an existing run folder. InputError if it is not a valid one."""
    return folder.load(Path(path))


def analyse(run: RunFolder) -> Analysed:
    """Recompute metrics and verdict from the stored records of ``keep_records``. InputError if missing or damaged."""
    from hpn.scenarios.run.analyse import analyse as analysed  # numpy, which a drill loads only after its measurement

    return analysed(run)


def compare(runs: Iterable[RunFolder]) -> Sequence[Spread]:
    """Compare the figures of several runs of one drill: their spread, by edge and figure."""
    return spread.compare([each.metrics() for each in runs])


def on_lab(
    fabric: Fabric, use: Callable[[Lab], Awaitable[object]], on_event: Callable[[Event], None] = lambda _event: None
) -> object:
    """Start a lab of ``fabric`` in a sandbox, wait until it has converged, await ``use``, and take the lab down.

    ``use`` must return JSON, because the sandbox is another process. Its other changes are not visible here, and
    ``on_event`` is called there. MachineError when this machine cannot run the lab, or when ``use`` raised.
    """
    preflight.check(fabric)

    async def body() -> object:
        lab = Lab.start(fabric, on_event)
        await lab.converged(_CONVERGE_S)
        found = await use(lab)
        lab.close()
        return found

    return sandbox.ask(lambda: asyncio.run(body()))
