"""Check that this kernel supports separate queues for control frames and a second data class at a port."""

from __future__ import annotations

import os
from functools import partial

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel import ns
from hpn.testbed.kernel.rtnetlink.htb import add_fifo, port_queues
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.kernel.rtnetlink.red import LOOPBACK, ROOT

_ANY_BYTES = 65536


def check() -> None:
    """Raise MachineError, with a remedy, if it does not. Needs the right to create network namespaces."""
    probe = ns.create("class-probe")
    link = Netlink(probe)
    try:
        link.run(list(port_queues(LOOPBACK, partial(add_fifo, LOOPBACK, _ANY_BYTES), parent=ROOT)))
    except OSError as error:
        way_out = "modprobe sch_htb cls_u32, or run it with --engine uml-virtual-time"
        text = f"no queue for control frames in this kernel ({error.strerror or error}); {way_out}"
        raise MachineError(text) from error
    finally:
        link.close()
        os.close(probe.fd)
