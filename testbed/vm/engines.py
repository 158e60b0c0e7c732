"""The engines: every place where a command of hpn can run, an entry for each.

Code that lists or uses engines reads ``ENGINES``. A new engine is a module with the protocol of
``testbed.vm.guest.Engine`` and an entry here; a plug-in adds its own with ``ENGINES.add``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hpn.testbed.entries import Registry
from hpn.testbed.errors import InputError
from hpn.testbed.vm.guest import Engine
from hpn.testbed.vm.qemu import Qemu
from hpn.testbed.vm.uml import Uml

_MS = 1_000_000
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


@dataclass(frozen=True, slots=True)
class Pace:
    """Packet rates of an engine that still measure outages to the packet: the self-test's flows.

    ``tick_ns`` is the interval between transmissions: longer than a packet's period it makes bursts, which coarsen the
    resolution. ``fast_pps`` and ``slow_pps``: packets a second of a fast flow and of a slow one.
    """

    tick_ns: int
    fast_pps: float = 10_000
    slow_pps: float = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """Description of an engine.

    ``name``: as in results, suites and ``--engine``. With ``--virtual-time``, for older command lines, ``--engine``
    takes ``word`` too. ``start`` creates the engine; None: commands run where they are called. ``cores`` that a run
    keeps busy, 0 for all: a measurement that shares its cores is worth little. ``virtual_time``: its clock stands still
    while anything computes, and runs repeat to the last digit. ``own_kernel``: this machine's kernel features and noise
    do not apply to a run there. ``instead``: a drill's alternative if it cannot start. ``boot_target_s``: boot time
    target of an interactive guest (``hpn vm shell``, ``hpn bench``), from its start to the first command; None: it is
    not one. ``selftest`` and ``campaigns``: supported there. ``maps_pages``: memory of a guest's process consists of
    mappings of a process here, whose number this machine limits.
    """

    name: str
    word: str = ""
    start: Callable[[], Engine] | None
    cores: int = 1
    virtual_time: bool = False
    own_kernel: bool = True
    instead: str = ""
    boot_target_s: float | None = None
    selftest: Pace | None = None
    campaigns: bool = False
    maps_pages: bool = False

    @property
    def title(self) -> str:
        """Name in the doctor's list: 'engine uml-virtual-time'."""
        return f"engine {self.name}"

    def engine(self) -> Engine:
        """Create an engine. InputError when its commands run where they are called."""
        if self.start is None:
            raise InputError(f"engine {self.name} is this kernel, not one to start")
        return self.start()


def _lacks(spec: EngineSpec) -> Iterator[str]:
    if not _NAME.fullmatch(spec.name):
        yield "name in a-z, 0-9 and '-'"
    if spec.start is not None and not spec.instead:
        yield "instead"


HOST = EngineSpec(name="host", start=None, cores=0, own_kernel=False, selftest=Pace(_MS), campaigns=True)
"""This machine's kernel."""

ENGINES: Registry[EngineSpec] = Registry(
    "engine",
    lambda spec: spec.name,
    (
        HOST,
        EngineSpec(
            name="qemu",
            start=Qemu,
            cores=0,
            instead="engine uml: Linux bonding and netem too, one CPU",
            boot_target_s=15.0,
        ),
        EngineSpec(
            name="uml",
            start=Uml,
            instead="engine qemu, or the host's own kernel",
            boot_target_s=3.0,
            selftest=Pace(2 * _MS, fast_pps=1_000, slow_pps=100),  # a system call costs ten times as much there
            campaigns=True,
            maps_pages=True,
        ),
        EngineSpec(
            name="uml-virtual-time",
            word="uml",
            start=lambda: Uml(virtual_time=True),
            virtual_time=True,
            instead="real time: figures carry the noise of this machine",
            boot_target_s=3.0,
            selftest=Pace(_MS // 10),
            campaigns=True,
            maps_pages=True,
        ),
    ),
    _lacks,
    of=EngineSpec,
)
"""Every engine, in listed order."""


def named(name: str) -> EngineSpec:
    """Return the engine of that name. InputError, listing the names, for another."""
    if name not in ENGINES:
        raise InputError(f"no engine {name!r}; write {' or '.join(ENGINES)}")
    return ENGINES[name]


def words(offered: Callable[[EngineSpec], bool] = lambda _spec: True) -> tuple[str, ...]:
    """Return the values of ``--engine`` for a command that offers such engines."""
    return tuple(spec.name for spec in ENGINES.values() if offered(spec))


def asked_for(word: str, virtual_time: bool) -> EngineSpec:
    """Return the engine of --engine; with --virtual-time the virtual-time one of that name or word. InputError."""
    if not virtual_time:
        return named(word)
    for spec in ENGINES.values():
        if spec.virtual_time and word in (spec.name, spec.word):
            return spec
    able = words(lambda spec: spec.virtual_time)
    raise InputError(f"--virtual-time needs --engine {' or '.join(able)}")


def has_virtual_time(name: str) -> bool:
    """Return True if that engine's clock is virtual; False for an unknown one."""
    found = ENGINES.get(name)
    return found is not None and found.virtual_time
