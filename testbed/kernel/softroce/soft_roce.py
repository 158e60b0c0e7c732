"""Probe of the kernel's Soft-RoCE (rdma_rxe) for a lab, whose hosts are network namespaces; it tries to use it.

Changes when kernels fail a lab in another way. The driver had one listening socket, in the machine's first
network namespace, until it got one for each that has a device (drivers/infiniband/sw/rxe/rxe_ns.c).
"""

from __future__ import annotations

import errno
import os
import socket
import subprocess

from hpn.testbed.kernel import ns
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.process import programs
from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.kernel.softroce.rdma import ROCE_PORT, Rdma

KIND = "rxe"
"""The kernel's name for such devices."""

MODULES = ("rdma_rxe", "ib_uverbs", "rdma_ucm")
"""The driver, and its interfaces for programs and the connection manager; the last two are not loaded automatically."""

_ELSEWHERE = "run it with --engine uml-virtual-time and a kernel of 'hpn vm build-kernel'"
_LOAD = f"modprobe -a {' '.join(MODULES)} where it ships them, or {_ELSEWHERE}"
_PROBE, _PROBE_IFINDEX, _PROBE_FAR_IFINDEX, _PROBE_MTU = "roce", 100, 101, 1500


def problem(*, load: bool) -> str | None:
    """Return why Soft-RoCE is not available to a lab, with a remedy; None if it is.

    It adds a device in a throw-away network namespace. With ``load`` it first loads missing kernel modules if this
    process may. Needs the right to create network namespaces.
    """
    probe = ns.create("roce-probe")
    try:
        return _tried(probe, load)
    finally:
        os.close(probe.fd)


def _tried(probe: NetNs, load: bool) -> str | None:
    try:
        link = _opened(probe, load)
    except OSError as error:
        return f"no RDMA in this kernel ({error.strerror}): {_LOAD}"
    name = f"rxe-probe-{os.fstat(probe.fd).st_ino}"  # a process ID is unique only in its own sandbox
    try:
        _interface(probe)
        link.add(name, KIND, _PROBE)
        listens = _taken(probe)
        link.delete(link.devices()[name])
    except OSError as error:
        return _why(error)
    finally:
        link.close()
    if not listens:
        return (
            "this kernel's Soft-RoCE listens in the machine's first network namespace only, and a lab's hosts have"
            f" their own: {_ELSEWHERE}, or a newer Linux"
        )
    return None


def _opened(probe: NetNs, load: bool) -> Rdma:
    """Open a request socket. OSError if there is none, even after what ``load`` allows."""
    try:
        return Rdma(probe)
    except OSError as error:
        modprobe = programs.find("modprobe") if load else None
        if error.errno != errno.EPROTONOSUPPORT or modprobe is None:
            raise
        subprocess.run((modprobe, "-q", "-a", *MODULES), stdin=subprocess.DEVNULL, capture_output=True, check=False)
        return Rdma(probe)


def _interface(probe: NetNs) -> None:
    link = Netlink(probe)
    ends = (_PROBE, _PROBE_IFINDEX, None, _PROBE + "i", _PROBE_FAR_IFINDEX, None)
    try:
        link.run([rtnl.add_veth(*ends, mac="02:00:00:00:00:01", peer_mac="02:00:00:00:00:02", mtu=_PROBE_MTU)])
    finally:
        link.close()


def _taken(probe: NetNs) -> bool:
    """Return True if RoCE's port is in use there, which only the driver can do."""
    sock = probe.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    try:
        sock.bind(("0.0.0.0", ROCE_PORT))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return True
        raise
    finally:
        sock.close()
    return False


def _why(error: OSError) -> str:
    if error.errno == errno.EPERM:
        return f"Soft-RoCE devices are made by the machine's root only: run hpn as root, or {_ELSEWHERE}"
    text = error.strerror or str(error)
    return f"no Soft-RoCE in this kernel ({text}): {_LOAD}"
