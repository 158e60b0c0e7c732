"""User-mode-linux kernels: those available, their features, and the modules that a lab needs from them.

A UML kernel is a program: ``--showconfig`` prints its configuration, ``--version`` its release, ``--help`` its
parameters. Nothing is inferred from version numbers.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hpn.testbed.errors import MachineError
from hpn.testbed.vm import kernel_cache
from hpn.testbed.vm.kernel_cache import numbers

DISTRIBUTION = "linux.uml"
MODULES = Path("/usr/lib/uml/modules")
TIME_TRAVEL = "UML_TIME_TRAVEL_SUPPORT"

_NEEDED = (
    "HOSTFS", "NULL_CHAN", "TMPFS", "PROC_FS", "SYSFS", "DEVTMPFS", "NET_NS", "PID_NS", "PACKET", "VETH",
    "IP_ROUTE_MULTIPATH", "NET_SCH_TBF", "NET_SCH_HTB", "NET_CLS_U32",
)  # fmt: skip
_EITHER = (("BONDING",), ("NF_TABLES_NETDEV", "NFT_FWD_NETDEV", "NFT_DUP_NETDEV", "NFT_HASH"))
_MODULES = {  # modules that a lab may need, with parameters: no unrequested devices
    "veth": "",
    "bonding": "max_bonds=0",
    "ifb": "numifbs=0",
    "nf_tables": "",
    "sch_tbf": "",
    "sch_netem": "",
    "sch_red": "",
    "sch_htb": "",
    "sch_ingress": "",
    "act_mirred": "",
    "cls_u32": "",
}
_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class UmlKernel:
    """One kernel. ``options`` without CONFIG_, with 'y' or 'm'; ``parameters`` is its own help text."""

    path: Path
    release: str
    options: Mapping[str, str]
    parameters: str

    @property
    def time_travel(self) -> bool:
        """True if it can run in virtual time."""
        return TIME_TRAVEL in self.options

    @property
    def seccomp(self) -> bool:
        """True if it can catch system calls by seccomp, which is several times faster than by ptrace (6.16)."""
        return "seccomp=" in self.parameters


def find(wanted: Path | None, *, time_travel: bool) -> UmlKernel:
    """Return the kernel to boot: the requested one; else the distribution's, or for virtual time our own. MachineError.

    Without a distribution's package, or if its kernel cannot run on this CPU, our own serves in real time too.
    """
    if platform.machine() != "x86_64":
        raise MachineError(f"user-mode Linux needs an x86-64 machine, this is {platform.machine()}; use --engine qemu")
    path = wanted or _choose(time_travel)
    kernel = describe(path)
    missing = list(_missing(kernel, time_travel))
    if missing:
        raise MachineError(
            f"{path} ({kernel.release}) lacks {', '.join(f'CONFIG_{name}' for name in missing)}: hpn vm build-kernel"
        )
    return kernel


def _choose(time_travel: bool) -> Path:
    own = kernel_cache.newest()
    found = None if time_travel else shutil.which(DISTRIBUTION)
    installed = None if found is None else Path(found)
    unfit = installed is not None and cpu_state_too_large(describe(installed))
    if installed is not None and not unfit:
        return installed
    if own is not None:
        return own.program
    if unfit:
        raise MachineError(
            f"{installed} cannot save this CPU's registers (AMX, Linux before 6.13); one that can: hpn vm build-kernel"
        )
    if time_travel:
        raise MachineError("virtual time needs a UML kernel of our own: hpn vm build-kernel (once, some minutes)")
    raise MachineError("no user-mode-linux kernel: apt install user-mode-linux, or hpn vm build-kernel")


def cpu_state_too_large(kernel: UmlKernel, cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Return True if an unpatched kernel dies here: before Linux 6.13 its register buffer had a fixed size."""
    return numbers(kernel.release) < (6, 13) and "amx_tile" in cpuinfo.read_text().split()


def describe(path: Path) -> UmlKernel:
    """Query a kernel's properties. MachineError when it is not a UML kernel."""
    release, config, parameters = (_ask(path, what) for what in ("--version", "--showconfig", "--help"))
    options = dict(re.findall(r"^CONFIG_(\w+)=([ym])$", config, re.MULTILINE))
    if not options or "User Mode Linux" not in parameters:
        raise MachineError(f"{path} is no user-mode-linux kernel")
    return UmlKernel(path, release.strip(), options, parameters)


def _ask(path: Path, what: str) -> str:
    try:
        done = subprocess.run(
            [path.absolute(), what], stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_S, check=False
        )
    except OSError as error:
        raise MachineError(f"cannot run the UML kernel {path}: {error.strerror}") from error
    except subprocess.TimeoutExpired:
        raise MachineError(f"{path} does not answer {what}; is it a user-mode-linux kernel?") from None
    return done.stdout.decode(errors="replace")


def _missing(kernel: UmlKernel, time_travel: bool) -> Iterator[str]:
    yield from (name for name in _NEEDED if name not in kernel.options)
    if time_travel and not kernel.time_travel:
        yield TIME_TRAVEL
    if not any(all(name in kernel.options for name in names) for names in _EITHER):
        yield from _EITHER[0]


def modules(kernel: UmlKernel, folder: Path = MODULES) -> tuple[tuple[str, str], ...]:
    """Return files to load, each after its dependencies, with parameters; empty when everything is built in.

    MachineError when the modules are not installed.
    """
    if kernel.options.get("VETH") != "m":
        return ()
    home = folder / kernel.release
    try:
        lines = (home / "modules.dep").read_text().splitlines()
    except OSError as error:
        raise MachineError(
            f"the modules of {kernel.path} are not in {home}: apt install --reinstall user-mode-linux"
        ) from error
    needs = {file: after.split() for file, _, after in (line.partition(":") for line in lines)}
    by_name = {Path(file).stem: file for file in needs}
    order: dict[str, str] = {}
    for name, parameters in _MODULES.items():
        if name in by_name:
            for file in reversed(needs[by_name[name]]):  # modules.dep lists the nearest first
                order.setdefault(file, _MODULES.get(Path(file).stem, ""))
            order[by_name[name]] = parameters
    return tuple((str(home / file), parameters) for file, parameters in order.items())
