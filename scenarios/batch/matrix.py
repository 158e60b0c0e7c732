"""One drill over host profiles, BGP daemons, LAG datapaths, kernels or engines: an entry for each axis, and its runs.

One axis at a time: each run differs from the first in one thing, so that a difference has one cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pydantic import JsonValue

from hpn.results.run.folder import RunFolder
from hpn.results.run.manifest import Manifest
from hpn.scenarios.drill.catalogue import find
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.on_fabric import on_fabric, with_keys
from hpn.scenarios.run import engines
from hpn.scenarios.run.run_order import Order
from hpn.testbed.entries import Registry
from hpn.testbed.errors import HpnError, InputError, MachineError, NoisyError
from hpn.testbed.fabric.profiles import PROFILES
from hpn.testbed.files.document import read
from hpn.testbed.lag.datapaths import DATAPATHS
from hpn.testbed.routing.daemons import DAEMONS
from hpn.testbed.vm import kernel_cache
from hpn.testbed.vm.engines import ENGINES, EngineSpec
from hpn.testbed.vm.uml import Uml

BASE = "base"
"""Name of the first run: the drill as its file and the options say."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A value of an axis: the engine that it runs on, and the keys that it sets in the topology."""

    value: str
    spec: EngineSpec
    keys: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis. ``now``: its value in a run; ``variants``: every value that there is here."""

    name: str
    summary: str
    now: Callable[[Drill, Manifest], str]
    variants: Callable[[Drill, EngineSpec], Iterator[Variant]]


def _profiles(_drill: Drill, spec: EngineSpec) -> Iterator[Variant]:
    return (Variant(name, spec, {"profile": name}) for name in PROFILES)


def _daemons(drill: Drill, spec: EngineSpec) -> Iterator[Variant]:
    own = drill.topology.bgp.model_dump(exclude_unset=True)
    return (Variant(name, spec, {"bgp": {**own, "daemon": name}}) for name in DAEMONS)


def _datapaths(_drill: Drill, spec: EngineSpec) -> Iterator[Variant]:
    return (Variant(name, spec, {"lag": name}) for name in DATAPATHS)


def _kernels(_drill: Drill, spec: EngineSpec) -> Iterator[Variant]:
    """Yield the kernels built here; each boots in virtual time only, as other engines' kernels are not ours."""
    if spec.virtual_time:
        for built in kernel_cache.usable():
            boot = partial(Uml, built.program, virtual_time=True)
            yield Variant(built.release, replace(spec, start=boot))


def _engines(_drill: Drill, _spec: EngineSpec) -> Iterator[Variant]:
    return (Variant(name, spec) for name, spec in ENGINES.items())


AXES: Registry[Axis] = Registry(
    "axis",
    lambda axis: axis.name,
    (
        Axis("profile", "hosts as in a lab, or as in production", lambda _, run: run.host_profile, _profiles),
        Axis("daemon", "BGP daemon of the switches", lambda drill, _: drill.topology.bgp.daemon, _daemons),
        Axis("datapath", "Linux bonding, or hpn's nftables", lambda _, run: run.datapath, _datapaths),
        Axis("kernel", "each kernel in the cache (hpn vm kernels)", lambda _, run: run.kernel, _kernels),
        Axis("engine", "the host, QEMU, UML, virtual time", lambda _, run: run.engine, _engines),
    ),
    of=Axis,
)
"""Axes, by the name that users write."""
DEFAULT = ("profile", "daemon", "datapath", "kernel")
"""Axes along which virtual time compares exactly."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of the matrix by name, such as 'daemon frr', or the reason why there is none."""

    name: str
    made: RunFolder | HpnError


def run(
    drill: Drill,
    axes: Sequence[str],
    spec: EngineSpec,
    out: Path,
    command: tuple[str, ...],
    tell: Callable[[str], None],
) -> Iterator[Cell]:
    """Make the base run, then one for each other value of each axis, into OUT/NAME; yield each as it ends.

    Nothing follows a base run that could not be made.
    """
    base = _made(drill, spec, out / BASE, command, tell)
    yield Cell(BASE, base)
    if not isinstance(base, RunFolder):
        return
    manifest = base.manifest()
    for axis in dict.fromkeys(axes):
        now = AXES[axis].now(drill, manifest)
        for variant in AXES[axis].variants(drill, spec):
            if variant.value != now:
                name = f"{axis} {variant.value}"
                yield Cell(name, _varied(drill, variant, out / name.replace(" ", "-"), command, tell))


def _varied(
    drill: Drill, variant: Variant, out: Path, command: tuple[str, ...], tell: Callable[[str], None]
) -> RunFolder | HpnError:
    try:
        varied = _with(drill, variant.keys) if variant.keys else drill
    except InputError as error:
        return error
    return _made(varied, variant.spec, out, command, tell)


def _with(drill: Drill, keys: Mapping[str, JsonValue]) -> Drill:
    """Return the drill on its fabric with these keys. InputError where they contradict the rest."""
    file = find(drill.source)
    return on_fabric(read(file), file.parent, with_keys(drill.topology, keys))


def _made(
    drill: Drill, spec: EngineSpec, out: Path, command: tuple[str, ...], tell: Callable[[str], None]
) -> RunFolder | HpnError:
    tell(f"{out.name}: {drill.name}")
    try:
        return engines.run_on(spec, Order(drill, out, command), engines.unwatched, tell)
    except (MachineError, NoisyError) as error:
        return error
