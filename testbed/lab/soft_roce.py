"""Soft-RoCE on a lab's NICs: an RDMA device (rdma_rxe) on the LAG interface of each, for programs that use verbs.

The driver sends by the host's routes and listens at UDP port 4791 of its namespace. So its packets go through the LAG
like all others, whichever datapath that has. By default a device is visible in every network namespace of the machine,
so its name identifies the fabric's NIC. It disappears with its interface: a killed lab leaves none.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from contextlib import suppress

from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.softroce.rdma import Rdma
from hpn.testbed.kernel.softroce.soft_roce import KIND, problem


def check(spec: FabricSpec) -> None:
    """Raise MachineError, with a remedy, if the topology requires Soft-RoCE and the kernel lacks it."""
    why_not = problem(load=True) if spec.soft_roce else None
    if why_not is not None:
        raise MachineError(why_not)


class SoftRoce:
    """The devices of a lab's NICs, from ``start`` to ``close``."""

    def __init__(self, fabric: Fabric, spaces: Mapping[str, NetNs]) -> None:
        self._fabric = fabric
        self._spaces = spaces
        self._sockets: dict[str, Rdma] = {}  # by host
        self._indexes: dict[str, int] = {}  # by NIC

    def start(self) -> None:
        """Add a device on each NIC's LAG interface. MachineError when the kernel refuses one."""
        try:
            for host in self._fabric.hosts:
                self._start_in(host.name)
        except OSError as error:
            self.close()
            hint = "; another lab has it: end that first" if error.errno in {errno.EEXIST, errno.ENFILE} else ""
            raise MachineError(f"no Soft-RoCE device ({error.strerror or error}){hint}") from error

    def counters(self) -> dict[str, dict[str, int]]:
        """Return the devices' counters since their creation (hw_counters), by NIC, then by the driver's names.

        A device that is gone is left out.
        """
        found: dict[str, dict[str, int]] = {}
        for nic in self._fabric.nics:
            with suppress(OSError):
                found[nic.name] = dict(self._sockets[nic.host].counters(self._indexes[nic.name]))
        return found

    def close(self) -> None:
        """Remove the devices that still exist."""
        for nic in self._fabric.nics:
            if nic.name in self._indexes:
                with suppress(OSError):  # removed with its interface
                    self._sockets[nic.host].delete(self._indexes.pop(nic.name))
        for opened in self._sockets.values():
            opened.close()
        self._sockets.clear()

    def _start_in(self, host: str) -> None:
        opened = self._sockets[host] = Rdma(self._spaces[host])
        nics = self._fabric.nics_of(host)
        for nic in nics:
            opened.add(nic.rdma, KIND, nic.lag)
        found = opened.devices()
        for nic in nics:
            if nic.rdma not in found:
                raise OSError(errno.ENODEV, f"{host} does not see {nic.rdma}: rdma system set netns shared")
            self._indexes[nic.name] = found[nic.rdma]
