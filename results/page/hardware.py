"""Section 'On real hardware': what a network of real switches and NICs would do otherwise. Pure.

Changes when an engine, a LAG or a fabric is nearer to hardware, or farther from it. docs/engines.md has the engines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hpn.results.run.manifest import Manifest
from hpn.results.text.values import milliseconds
from hpn.testbed.fabric.bonding import Bonding, of_lacp
from hpn.testbed.fabric.profiles import LAB, PROFILES
from hpn.testbed.fabric.spec import LacpSpec
from hpn.testbed.lag.datapath import LagKind
from hpn.testbed.lag.datapaths import DATAPATHS
from hpn.testbed.lag.host_bond import KERNEL
from hpn.testbed.vm.engines import ENGINES

TITLE = "On real hardware"
_STANDARD, _WAIT = "ib", "first_wait_ms"


_NO_PFC = (
    "Without switch: in the topology there is no PFC: congestion drops packets; a lossless network pauses senders."
)
_PFC = (
    "Pauses last as many times longer as rates are lower, and so does filling a buffer."
    " An ASIC cuts packets into cells and forwards them before their end."
)


def on_real_hardware(manifests: Iterable[Manifest], scales: Iterable[int] = (), *, pfc: bool = False) -> Sequence[str]:
    """Return the lines of the section for these runs; ``scales``: 'emulated rate = real rate / scale', if known.

    ``pfc``: all of them had lossless switches.
    """
    runs = list(manifests)
    lines = [
        "Switches are Linux routers: they detect and switch as fast as a kernel and a BGP daemon do, not as an ASIC.",
        *_times(dict.fromkeys(run.engine for run in runs)),
        *dict.fromkeys(_lag(kind, _bonding(run)) for run in runs if (kind := DATAPATHS.get(run.datapath))),
        *_retries(runs),
        _rates(sorted(set(scales))),
        _PFC if pfc else _NO_PFC,
        "Path control, where it is on, is hpn's own protocol between host and ToR: the paper leaves it open.",
    ]
    return tuple(lines) if runs else ()


def _times(engines: Iterable[str]) -> Iterator[str]:
    found = {spec.virtual_time for name in engines if (spec := ENGINES.get(name))}
    if True in found:
        yield "In virtual time, computing takes no time: reactions cost what timers and protocols cost, and no more."
    if False in found:
        yield "In real time, reactions include the delays of this machine's kernel and processes."


def _bonding(run: Manifest) -> Bonding:
    """Return the options of the run's profile."""
    return of_lacp(LacpSpec().under(run.host_profile if run.host_profile in PROFILES else LAB))


def _lag(kind: LagKind, bonding: Bonding) -> str:
    """Return how fast the LAG acts, and how fast Linux bonding does, which hosts of real networks run."""
    if kind.name == KERNEL.name:
        return f"The LAG is Linux bonding, as on real hosts. It acts {_within(kind, bonding)}."
    driver = f"Linux bonding acts {_within(KERNEL, bonding)}."
    return f"The LAG is {kind.name}, no bonding driver. It acts {_within(kind, bonding)}. {driver}"


def _within(kind: LagKind, bonding: Bonding) -> str:
    failure_ms = kind.failure_ms(bonding)
    lost = f"within {milliseconds(failure_ms)} ms" if failure_ms else "at once"
    return f"{lost} at a lost port, within {milliseconds(kind.repair_ms(bonding))} ms at a repaired one"


def _retries(runs: Iterable[Manifest]) -> Iterator[str]:
    """Yield how long a job's queue pairs wait by the standard's timer, where real adapters may wait less."""
    waits = {float(run.job[_WAIT]) for run in runs if run.job.get("retry_timer") == _STANDARD and run.job.get(_WAIT)}
    if waits:
        told = " or ".join(f"{milliseconds(each)} ms" for each in sorted(waits))
        yield (
            f"A job's queue pairs wait by InfiniBand's timer: {told} before the first retry."
            " Adapters with adaptive timers retry sooner (retry_timer: adaptive)."
        )


def _rates(scales: Sequence[int]) -> str:
    how = " and ".join(f"1:{scale:,}" for scale in scales)
    down = f"{how} of the real ones" if how else "scaled down"
    return f"Rates are {down}, so counts of packets and bytes are smaller than on hardware."
