"""Checks that this kernel supports what a port needs: a queue for control frames, and classes of a shared buffer."""

from __future__ import annotations

import os
from functools import partial

from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.kernel import ns
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink import mmu
from hpn.testbed.kernel.rtnetlink.htb import add_fifo, port_queues
from hpn.testbed.kernel.rtnetlink.mmu import PortClass, PortOptions
from hpn.testbed.kernel.rtnetlink.netlink import refusal
from hpn.testbed.kernel.rtnetlink.red import LOOPBACK, ROOT

_ANY_BYTES = 65536
_WAY_OUT = (
    "run a drill with --engine uml-virtual-time, and a lab in a guest:"
    " hpn vm shell --engine uml-virtual-time -- sh -c 'hpn up FILE && hpn inspect queues'"
)
_ANY_OPTIONS = PortOptions(_ANY_BYTES, 1000, 0, (PortClass(alpha=1.0),) * mmu.CLASSES, bytes(64))


def check() -> None:
    """Raise MachineError, with a remedy, if it lacks the first. Needs the right to create network namespaces."""
    way_out = "modprobe sch_htb cls_u32, or run it with --engine uml-virtual-time"
    requests = list(port_queues(LOOPBACK, partial(add_fifo, LOOPBACK, _ANY_BYTES), parent=ROOT))
    _try(requests, "no queue for control frames in this kernel", way_out)


def check_buffers(spec: FabricSpec) -> None:
    """Raise MachineError, with a remedy, if the topology has ``switch:`` and the kernel lacks it."""
    if spec.switch is not None:
        _try([_any_buffer()], "this kernel cannot have switch: (PFC, classes)", _WAY_OUT)


def buffers_problem(space: NetNs) -> str | None:
    """Return why this kernel cannot have ``switch:``, None if it can; tested in ``space``."""
    return refusal(space, [_any_buffer()])


def _any_buffer() -> bytes:
    return mmu.add_mmu(LOOPBACK, _ANY_OPTIONS, ROOT)


def _try(requests: list[bytes], problem: str, way_out: str) -> None:
    probe = ns.create("class-probe")
    try:
        why = refusal(probe, requests)
    finally:
        os.close(probe.fd)
    if why is not None:
        raise MachineError(f"{problem} ({why}); {way_out}")
