"""Capabilities of this machine, the fallback for each that is missing, and the command that provides it.

Each one is probed by trying it, inside a throw-away sandbox if it touches the kernel. Nothing is inferred from
version numbers.
"""

from __future__ import annotations

import ctypes.util
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel import ns
from hpn.testbed.kernel.process import programs, sandbox
from hpn.testbed.kernel.rtnetlink.htb import add_fifo, port_queues
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.kernel.rtnetlink.red import LOOPBACK, ROOT, add_red
from hpn.testbed.kernel.rtnetlink.seg6_support import REMEDY, seg6_problem
from hpn.testbed.kernel.softroce import soft_roce

_RMEM_WANTED = 4 << 20


@dataclass(frozen=True, slots=True)
class Capability:
    """A feature that a lab may use. ``needed``: no lab runs without it. ``instead``: the fallback when it is absent."""

    name: str
    present: bool
    needed: bool
    detail: str
    instead: str = ""
    provide: str = ""


def examine() -> list[Capability]:
    """Probe everything but guests (``testbed.vm.doctor``); takes about 0.1 s."""
    return [*_tools(), *_kernel(), *_machine()]


def _tools() -> Iterator[Capability]:
    yield _tool("bird", "bird2", "BGP in every switch", needed=True)
    yield _tool("bgpd", "frr", "FRR in place of BIRD", instead="topologies with bgp: {daemon: frr} are refused")
    library = ctypes.util.find_library("nftables")
    yield Capability(
        "libnftables", library is not None, False, "LAG datapath without the bonding driver", "kernel bonding only",
        "" if library else "apt install libnftables1",
    )  # fmt: skip
    yield _tool("nft", "nftables", "looking at rules by hand", instead="nothing; labs do not need the tool")
    yield _tool(
        "iperf3", "iperf3", "client iperf3; foreign judge of throughput", instead="such drills and tests are left out"
    )
    yield _tool("tshark", "tshark", "foreign judge of packets", instead="those tests are skipped")
    yield _tool("mnexec", "mininet", "stock Mininet for 'hpn bench'", instead="the bench leaves Mininet out")
    yield _client("torch", _has("torch"), "pip install torch --index-url https://download.pytorch.org/whl/cpu")
    mpiexec = programs.find("mpiexec.hydra", beside=sys.executable)
    yield _client("mpi", _has("mpi4py") and mpiexec is not None, "pip install mpi4py mpich")
    mininet = importlib.util.find_spec("mininet") is not None
    provide = "" if mininet else "pip install mininet==2.3.0.dev6"
    yield Capability("mininet (Python)", mininet, True, "hpn shell, net.get, node.cmd", "", provide)


def _tool(command: str, package: str, use: str, *, needed: bool = False, instead: str = "") -> Capability:
    path = programs.find(command)
    provide = "" if path else f"apt install {package}"
    return Capability(command, path is not None, needed, path or use, instead, provide)


def _client(name: str, present: bool, provide: str) -> Capability:
    instead = "such drills are left out of --all, and refused"
    return Capability(f"client {name}", present, False, "programs in drills", instead, "" if present else provide)


def _has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _kernel() -> Iterator[Capability]:
    try:
        found = probe_kernel()
    except MachineError as error:
        yield Capability("sandbox (namespaces)", False, True, str(error))
        return
    how = "user namespace" if sandbox.needs_user_namespace() else "as root"
    yield Capability("sandbox (namespaces)", True, True, how)
    yield Capability(
        "bonding driver", found["bonding"], False, "LAG datapath 'kernel'",
        "LAG datapath 'nft', same LACP", "" if found["bonding"] else "modprobe bonding (where the kernel ships it)",
    )  # fmt: skip
    yield Capability(
        "netem", found["netem"], False, "delay, jitter, reordering", "those faults are refused",
        "" if found["netem"] else "modprobe sch_netem (where the kernel ships it)",
    )  # fmt: skip
    yield Capability(
        "RED", found["red"], False, "marks (ecn) by a port's queue", "a phantom queue marks: no figure about queues",
        "" if found["red"] else "modprobe sch_red (where the kernel ships it)",
    )  # fmt: skip
    yield Capability(
        "ECMP seed per switch", found["ecmp_seed"], False, "net.ipv4.fib_multipath_hash_seed",
        "all switches hash alike: traffic polarises", "" if found["ecmp_seed"] else "Linux 6.11 or newer",
    )  # fmt: skip
    yield Capability(
        "policy routing", found["rules"], False, "preset ports of Cores, a host's NICs by source address",
        "topologies without Cores, or core_ports: hash; not dcn-plus",
        "" if found["rules"] else "a kernel with CONFIG_IP_MULTIPLE_TABLES",
    )  # fmt: skip
    yield Capability(
        "SRv6 uSIDs", found["srv6"], False, "static paths (srv6)", "topologies with srv6: are refused",
        "" if found["srv6"] else REMEDY,
    )  # fmt: skip
    yield _soft_roce()
    yield Capability("tbf shaper", found["tbf"], True, "link rates", "", "" if found["tbf"] else "modprobe sch_tbf")
    yield Capability(
        "HTB and u32", found["htb"], True, "control frames before data at each port", "",
        "" if found["htb"] else "modprobe sch_htb cls_u32",
    )  # fmt: skip


def _soft_roce() -> Capability:
    reason = sandbox.ask(lambda: soft_roce.problem(load=False))
    use, instead = "RDMA devices (soft_roce, clients that speak verbs)", "those topologies and clients are refused"
    return Capability("Soft-RoCE", reason is None, False, use, instead, "" if reason is None else str(reason))


def probe_kernel() -> dict[str, bool]:
    """Try the kernel features inside a sandbox. MachineError when no sandbox can be created."""
    found = sandbox.ask(_try_everything)
    if not isinstance(found, dict):
        raise MachineError(f"the process in the sandbox answers {found!r} when it is asked what the kernel has")
    return {str(name): bool(value) for name, value in found.items()}


def _try_everything() -> dict[str, bool]:
    from pyroute2 import IPRoute, NetlinkError

    with IPRoute() as route:

        def works(action: Callable[[], object]) -> bool:
            try:
                action()
            except (NetlinkError, OSError):
                return False
            return True

        return {
            "bonding": works(lambda: route.link("add", ifname="probe0", kind="bond", bond_mode=4)),
            "netem": works(lambda: route.tc("add", "netem", 1, delay=1000)),
            "tbf": works(lambda: route.tc("add", "tbf", 1, rate=10**6, burst=10_000, latency="20ms")),
            "red": works(partial(_put, [add_red(LOOPBACK, (10_000, 20_000), 0.5, 40_000, ROOT)])),
            "htb": works(partial(_put, list(port_queues(LOOPBACK, partial(add_fifo, LOOPBACK, 40_000), parent=ROOT)))),
            "rules": works(lambda: route.rule("add", src="10.0.0.1", table=100, priority=1000)),
            "srv6": _seg6_works(),
            "ecmp_seed": Path("/proc/sys/net/ipv4/fib_multipath_hash_seed").exists(),
        }


def _seg6_works() -> bool:
    space = ns.current("doctor")
    try:
        return seg6_problem(space) is None
    finally:
        os.close(space.fd)


def _put(requests: Sequence[bytes]) -> None:
    space = ns.current("doctor")
    link = Netlink(space)
    try:
        link.run(requests)
    finally:
        link.close()
        os.close(space.fd)


def _machine() -> Iterator[Capability]:
    limit = neighbour_limit()
    yield Capability("neighbour table", True, False, f"{limit} entries for the whole machine before collection")
    psi = Path("/proc/pressure/cpu").exists()
    yield Capability(
        "CPU pressure (PSI)", psi, False, "detects a starved run", "run-queue delay and steal alone",
        "" if psi else "boot with psi=1",
    )  # fmt: skip
    realtime = _may_run_realtime()
    yield Capability(
        "real-time priority", realtime, False, "steadier senders", "ordinary priority; the noise floor shows it",
        "" if realtime else "run as root, or: ulimit -r 50",
    )  # fmt: skip
    buffer = _number("/proc/sys/net/core/rmem_max")
    small = buffer is not None and buffer < _RMEM_WANTED
    yield Capability(
        "receive buffers", not small, False, f"net.core.rmem_max {buffer}", "smaller ones; drops are told apart",
        f"sysctl -w net.core.rmem_max={_RMEM_WANTED}" if small else "",
    )  # fmt: skip
    cores = os.cpu_count() or 1
    yield Capability("cores", cores > 1, False, f"{cores}")


def neighbour_limit() -> int:
    """Return how many neighbours all namespaces may have before the kernel evicts young ones (gc_thresh2).

    See FACTS trap 4.
    """
    found = _number("/proc/sys/net/ipv4/neigh/default/gc_thresh2")
    return 512 if found is None else found  # not visible inside a namespace: the kernel's default


def _number(path: str) -> int | None:
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):
        return None


def _may_run_realtime() -> bool:
    import resource

    return os.geteuid() == 0 or resource.getrlimit(resource.RLIMIT_RTPRIO)[1] > 0
